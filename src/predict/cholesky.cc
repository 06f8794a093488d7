#include "predict/cholesky.h"

#include <array>
#include <cmath>

namespace strobe::predict {
namespace {

// Eight sums at once, so that the compiler may use vectors without changing what is added to what.
double dot(const double* a, const double* b, size_t n) {
  std::array<double, 8> sums{};
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    for (size_t j = 0; j < 8; ++j) sums[j] += a[i + j] * b[i + j];
  }
  double sum = ((sums[0] + sums[1]) + (sums[2] + sums[3])) + ((sums[4] + sums[5]) + (sums[6] + sums[7]));
  for (; i < n; ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

std::optional<Cholesky> Cholesky::of(std::vector<double> a, size_t n) {
  for (size_t i = 0; i < n; ++i) {
    double* row = a.data() + i * n;
    for (size_t j = 0; j < i; ++j) {
      const double* other = a.data() + j * n;
      row[j] = (row[j] - dot(row, other, j)) / other[j];
    }
    const double rest = row[i] - dot(row, row, i);
    if (!(rest > 0)) return std::nullopt;
    row[i] = std::sqrt(rest);
  }
  return Cholesky(std::move(a), n);
}

std::vector<double> Cholesky::half_solve(std::span<const double> b) const {
  std::vector<double> y(n_);
  for (size_t i = 0; i < n_; ++i) {
    const double* row = l_.data() + i * n_;
    y[i] = (b[i] - dot(row, y.data(), i)) / row[i];
  }
  return y;
}

std::vector<double> Cholesky::solve(std::span<const double> b) const {
  std::vector<double> x = half_solve(b);
  for (size_t i = n_; i-- > 0;) {
    const double* row = l_.data() + i * n_;
    x[i] /= row[i];
    for (size_t j = 0; j < i; ++j) x[j] -= row[j] * x[i];
  }
  return x;
}

std::vector<double> Cholesky::inverse() const {
  // Rows of M = (L^-1)': row j holds column j of L^-1, which starts at j. A^-1 = M M'.
  std::vector<double> columns(n_ * n_, 0);
  for (size_t j = 0; j < n_; ++j) {
    double* column = columns.data() + j * n_;
    column[j] = 1 / l_[j * n_ + j];
    for (size_t i = j + 1; i < n_; ++i) {
      column[i] = -dot(l_.data() + i * n_ + j, column + j, i - j) / l_[i * n_ + i];
    }
  }
  std::vector<double> inverse(n_ * n_);
  for (size_t i = 0; i < n_; ++i) {
    for (size_t j = 0; j <= i; ++j) {
      const double value = dot(columns.data() + i * n_ + i, columns.data() + j * n_ + i, n_ - i);
      inverse[i * n_ + j] = inverse[j * n_ + i] = value;
    }
  }
  return inverse;
}

}  // namespace strobe::predict
