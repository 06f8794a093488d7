// Light scattered by a sphere: Mie theory after Bohren & Huffman, "Absorption and Scattering of Light by Small
// Particles" (1983), chapter 4 and appendix A, for spheres that do not absorb.
#pragma once

namespace strobe::sensors {

struct MieEfficiencies {
  double extinction = 0;   // Q_ext: extinction cross section / geometric cross section
  double backscatter = 0;  // Q_back: radar back-scatter cross section / geometric cross section
};

// index: real refractive index of the sphere relative to the medium, > 0; size: pi * diameter / wavelength, > 0.
// Cost: proportional to size; the memory of one double for each of its max(N, index * size) terms.
MieEfficiencies mie_efficiencies(double index, double size);

}  // namespace strobe::sensors
