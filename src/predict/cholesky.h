// Symmetric positive definite systems.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace strobe::predict {

// The lower triangle L of A = L L', A being n x n in rows.
class Cholesky {
 public:
  // Of a copy of `a` that is overwritten; only its lower triangle is read. Nothing where A is not positive definite.
  static std::optional<Cholesky> of(std::vector<double> a, size_t n);

  size_t size() const { return n_; }
  std::vector<double> solve(std::span<const double> b) const;  // x of A x = b
  // y of L y = b, so that b' A^-1 b = y' y.
  std::vector<double> half_solve(std::span<const double> b) const;
  std::vector<double> inverse() const;  // of A, n x n in rows

 private:
  Cholesky(std::vector<double> l, size_t n) : l_(std::move(l)), n_(n) {}
  std::vector<double> l_;
  size_t n_ = 0;
};

}  // namespace strobe::predict
