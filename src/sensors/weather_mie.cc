#include "sensors/weather_mie.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace strobe::sensors {

MieEfficiencies mie_efficiencies(double index, double size) {
  const double inside = index * size;
  const auto terms = static_cast<int>(size + 4 * std::cbrt(size) + 2);
  // The logarithmic derivative of psi is stable only downwards. What is wrong with its start of 0 dies out above n = m
  // x and stays below, and the width of that zone grows as (m x)^(1/3): the book's margin of 15 is too small for m x
  // > 10.
  const int start = std::max(terms, static_cast<int>(inside + 8 * std::cbrt(inside))) + 15;
  thread_local std::vector<double> derivative;
  derivative.assign(static_cast<size_t>(terms) + 1, 0.0);
  double below = 0;
  const double inverse_inside = 1 / inside;
  for (int n = start; n >= 1; --n) {
    if (n <= terms) derivative[static_cast<size_t>(n)] = below;
    const double ratio = n * inverse_inside;
    below = ratio - 1 / (below + ratio);
  }

  // Riccati-Bessel functions upwards: psi_n and chi_n with xi_n = psi_n - i chi_n. With a real index,
  // a_n = p / (p - i q), p from psi and q from chi, and b_n likewise.
  double psi_before = std::cos(size), psi = std::sin(size), chi_before = -std::sin(size), chi = std::cos(size);
  double extinction = 0, back_real = 0, back_imaginary = 0, sign = -1;
  const double inverse_size = 1 / size, inverse_index = 1 / index;
  for (int n = 1; n <= terms; ++n) {
    const double up = (2 * n - 1) * inverse_size;
    const double psi_next = up * psi - psi_before, chi_next = up * chi - chi_before;
    const double d = derivative[static_cast<size_t>(n)], over = n * inverse_size;
    const double electric = d * inverse_index + over, magnetic = d * index + over;
    const double p = electric * psi_next - psi, q = electric * chi_next - chi;
    const double s = magnetic * psi_next - psi, t = magnetic * chi_next - chi;
    const double a = p / (p * p + q * q), b = s / (s * s + t * t);
    const double weight = 2 * n + 1;
    extinction += weight * (a * p + b * s);
    back_real += sign * weight * (a * p - b * s);
    back_imaginary += sign * weight * (a * q - b * t);
    sign = -sign;
    psi_before = psi, psi = psi_next, chi_before = chi, chi = chi_next;
  }
  const double scale = inverse_size * inverse_size;
  return {2 * scale * extinction, scale * (back_real * back_real + back_imaginary * back_imaginary)};
}

}  // namespace strobe::sensors
