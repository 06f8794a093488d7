// Extremely randomised trees for regression (Geurts, Ernst and Wehenkel 2006, "Extremely randomized trees", Machine
// Learning 63): each tree sees all samples; at each node one threshold is drawn for every feature, uniformly between
// the least and the greatest value there, and the split that lowers the squared error most is taken. The meaning of the
// options is that of scikit-learn's ExtraTreesRegressor with max_features=1.0 and bootstrap=False.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::predict {

struct ExtraTreesOptions {
  int trees = 300;
  int min_samples_split = 2;  // nodes with fewer are leaves
  int min_samples_leaf = 1;
  uint64_t seed = 1;
  int threads = 0;  // 0: as many as the machine has; the result does not depend on it
};

class ExtraTrees {
 public:
  // rows: samples, one after the other, `features` numbers each; targets: one a sample. All finite.
  // Errors: kBadData for no samples, sizes that do not fit, numbers that are not finite.
  static Result<ExtraTrees> fit(std::span<const double> rows, size_t features, std::span<const double> targets,
                                const ExtraTreesOptions& options);

  size_t features() const { return features_; }
  size_t tree_count() const { return trees_.size(); }
  // Mean over the trees. row: features() numbers.
  double predict(std::span<const double> row) const;
  // What each tree says; a measure of what the samples leave open.
  std::vector<double> predict_each(std::span<const double> row) const;

  nlohmann::json to_json() const;
  // Errors: kBadData saying which part is not as expected.
  static Result<ExtraTrees> from_json(const nlohmann::json& json);

 private:
  // Nodes in preorder: the left child of node i is i + 1.
  struct Node {
    int32_t feature = -1;  // -1: a leaf
    uint32_t right = 0;    // index of the right child
    double value = 0;      // threshold (left: at most this), or the leaf's mean
  };
  using Tree = std::vector<Node>;
  friend class TreeGrower;

  static Result<Tree> tree_from_json(const nlohmann::json& json, size_t features, std::span<const double> leaf_values);
  static double ask(const Tree& tree, std::span<const double> row);
  size_t features_ = 0;
  std::vector<Tree> trees_;
};

}  // namespace strobe::predict
