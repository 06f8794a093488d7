// Numbers drawn by law. Each depends on the seed and on what it is drawn for alone, so that a change of the scenario
// leaves all other draws as they were.
#pragma once

#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

#include "simulate/scenario.h"

namespace strobe::simulate {

// SplitMix64 (Steele, Lea and Flood 2014) as a standard generator.
class Random {
 public:
  using result_type = uint64_t;
  explicit Random(uint64_t seed) : state_(seed) {}
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<uint64_t>::max(); }
  result_type operator()() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15ULL;
    z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9ULL;
    z = (z ^ (z >> 27U)) * 0x94D049BB133111EBULL;
    return z ^ (z >> 31U);
  }
  double uniform() { return static_cast<double>((*this)() >> 11U) * 0x1.0p-53; }  // [0, 1)
  double normal();

 private:
  uint64_t state_;
};

// A seed for one purpose.
uint64_t mixed(uint64_t a, uint64_t b);
uint64_t text_seed(std::string_view text);  // FNV-1a

// Nanoseconds, not negative. frame: the frame's number; units: of its input.
double draw(const Law& law, Random random, int64_t frame, double units);

// Stamps of the frames within [0, duration), ascending.
std::vector<double> stamps(const Arrivals& arrivals, double duration_ns, Random random);

}  // namespace strobe::simulate
