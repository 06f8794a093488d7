#include "predict/extra_trees.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <numeric>
#include <thread>

namespace strobe::predict {

namespace {

// splitmix64 (Steele, Lea and Flood 2014): the same numbers on every machine.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9E3779B97F4A7C15U;
    z = (z ^ z >> 30U) * 0xBF58476D1CE4E5B9U;
    z = (z ^ z >> 27U) * 0x94D049BB133111EBU;
    return z ^ z >> 31U;
  }
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }  // [0, 1)

 private:
  uint64_t state_;
};

// A threshold needs no more digits than a file should hold: seven, where they still part the same samples.
double shortened(double threshold, double low, double high) {
  char text[40];
  const auto written = std::to_chars(std::begin(text), std::end(text), threshold, std::chars_format::scientific, 6);
  double brief = threshold;
  std::from_chars(text, written.ptr, brief);
  return brief >= low && brief < high ? brief : threshold;
}

}  // namespace

class TreeGrower {
 public:
  // rows: the samples, `features` numbers each.
  TreeGrower(std::span<const double> rows, size_t features, std::span<const double> targets,
             const ExtraTreesOptions& options)
      : rows_(rows),
        features_(features),
        targets_(targets),
        options_(options),
        low_(features),
        high_(features),
        threshold_(features),
        left_(features),
        left_sum_(features),
        right_sum_(features) {}

  ExtraTrees::Tree grow(uint64_t seed) {
    random_ = Random(seed);
    order_.resize(targets_.size());
    std::iota(order_.begin(), order_.end(), 0U);
    tree_.clear();
    // Nodes still to be made, in preorder; `parent` gets to know its right child.
    struct Open {
      size_t begin, end;
      int64_t parent;  // -1: nothing to tell
    };
    std::vector<Open> open = {{0, order_.size(), -1}};
    while (!open.empty()) {
      const Open now = open.back();
      open.pop_back();
      const size_t at = tree_.size();
      if (now.parent >= 0) tree_[static_cast<size_t>(now.parent)].right = static_cast<uint32_t>(at);
      const std::span<uint32_t> samples(order_.data() + now.begin, now.end - now.begin);
      const Split split = best_split(samples);
      if (split.feature < 0) {
        tree_.push_back({-1, 0, mean(samples)});
        continue;
      }
      tree_.push_back({split.feature, 0, split.threshold});
      const auto feature = static_cast<size_t>(split.feature);
      const auto middle = std::partition(samples.begin(), samples.end(),
                                         [&](uint32_t sample) { return row_of(sample)[feature] <= split.threshold; });
      const size_t border = now.begin + static_cast<size_t>(middle - samples.begin());
      open.push_back({border, now.end, static_cast<int64_t>(at)});
      open.push_back({now.begin, border, -1});
    }
    return std::move(tree_);
  }

 private:
  struct Split {
    int32_t feature = -1;
    double threshold = 0;
    double gain = -std::numeric_limits<double>::infinity();
  };

  const double* row_of(uint32_t sample) const { return rows_.data() + sample * features_; }

  double mean(std::span<const uint32_t> samples) const {
    double sum = 0;
    for (const uint32_t sample : samples) sum += targets_[sample];
    return sum / static_cast<double>(samples.size());
  }

  bool all_equal(std::span<const uint32_t> samples) const {
    return std::all_of(samples.begin(), samples.end(),
                       [&](uint32_t sample) { return targets_[sample] == targets_[samples.front()]; });
  }

  Split best_split(std::span<const uint32_t> samples) {
    Split best;
    const auto least = static_cast<size_t>(options_.min_samples_leaf);
    if (samples.size() < static_cast<size_t>(options_.min_samples_split) || samples.size() < 2 * least ||
        all_equal(samples))
      return best;
    find_ranges(samples);
    for (size_t feature = 0; feature < features_; ++feature) {
      const double low = low_[feature], high = high_[feature];
      threshold_[feature] = high;  // parts nothing
      if (!(low < high)) continue;
      const double drawn = low + random_.uniform() * (high - low);
      threshold_[feature] = drawn < high ? drawn : low;
    }
    add_up_sides(samples);
    for (size_t feature = 0; feature < features_; ++feature) {
      const auto left = static_cast<size_t>(left_[feature]);
      const size_t right = samples.size() - left;
      if (left < least || right < least) continue;
      const double gain = left_sum_[feature] * left_sum_[feature] / static_cast<double>(left) +
                          right_sum_[feature] * right_sum_[feature] / static_cast<double>(right);
      if (gain > best.gain) best = {static_cast<int32_t>(feature), threshold_[feature], gain};
    }
    if (best.feature >= 0) best.threshold = shortened_between(samples, best);
    return best;
  }

  // The loops over features are the inner ones: a sample's numbers lie side by side, and several are done at a time.
  void find_ranges(std::span<const uint32_t> samples) {
    double* low = low_.data();
    double* high = high_.data();
    std::copy_n(row_of(samples.front()), features_, low);
    std::copy_n(low, features_, high);
    for (const uint32_t sample : samples.subspan(1)) {
      const double* row = row_of(sample);
      for (size_t i = 0; i < features_; ++i) {
        low[i] = row[i] < low[i] ? row[i] : low[i];
        high[i] = row[i] > high[i] ? row[i] : high[i];
      }
    }
  }

  // Of each feature, the samples at or below its threshold, and the sums of targets on both sides: around the mean, so
  // that the squares of sums do not cancel.
  void add_up_sides(std::span<const uint32_t> samples) {
    const double centre = mean(samples);
    const double* threshold = threshold_.data();
    double *left = left_.data(), *left_sum = left_sum_.data(), *right_sum = right_sum_.data();
    std::fill_n(left, features_, 0);
    std::fill_n(left_sum, features_, 0);
    std::fill_n(right_sum, features_, 0);
    for (const uint32_t sample : samples) {
      const double* row = row_of(sample);
      const double target = targets_[sample] - centre;
      for (size_t i = 0; i < features_; ++i) {
        const bool is_left = row[i] <= threshold[i];
        left[i] += is_left ? 1.0 : 0.0;
        left_sum[i] += is_left ? target : 0.0;
        right_sum[i] += is_left ? 0.0 : target;
      }
    }
  }

  double shortened_between(std::span<const uint32_t> samples, const Split& split) const {
    const auto feature = static_cast<size_t>(split.feature);
    double low = low_[feature], high = high_[feature];
    for (const uint32_t sample : samples) {
      const double value = row_of(sample)[feature];
      if (value <= split.threshold)
        low = std::max(low, value);
      else
        high = std::min(high, value);
    }
    return shortened(split.threshold, low, high);
  }

  std::span<const double> rows_;
  size_t features_;
  std::span<const double> targets_;
  const ExtraTreesOptions& options_;
  Random random_{0};
  std::vector<uint32_t> order_;
  // Of the node at hand, by feature.
  std::vector<double> low_, high_, threshold_, left_, left_sum_, right_sum_;
  ExtraTrees::Tree tree_;
};

namespace {

Result<void> check_samples(std::span<const double> rows, size_t features, std::span<const double> targets,
                           const ExtraTreesOptions& options) {
  if (targets.empty() || features == 0) return bad_data("no samples to fit trees on");
  if (rows.size() != targets.size() * features)
    return bad_data(fmt::format("{} numbers for {} samples of {} features", rows.size(), targets.size(), features));
  if (targets.size() > std::numeric_limits<uint32_t>::max() / 2) return bad_data("too many samples to fit trees on");
  const auto finite = [](double value) { return std::isfinite(value); };
  if (!std::all_of(rows.begin(), rows.end(), finite) || !std::all_of(targets.begin(), targets.end(), finite))
    return bad_data("samples for trees are not finite");
  if (options.trees < 1 || options.min_samples_leaf < 1 || options.min_samples_split < 2)
    return bad_data("trees need at least 1 tree, 1 sample a leaf and 2 a split");
  return {};
}

}  // namespace

Result<ExtraTrees> ExtraTrees::fit(std::span<const double> rows, size_t features, std::span<const double> targets,
                                   const ExtraTreesOptions& options) {
  STROBE_TRY(check_samples(rows, features, targets, options));
  ExtraTrees forest;
  forest.features_ = features;
  forest.trees_.resize(static_cast<size_t>(options.trees));
  std::atomic<size_t> next = 0;
  const auto work = [&] {
    TreeGrower grower(rows, features, targets, options);
    for (size_t tree = next++; tree < forest.trees_.size(); tree = next++)
      forest.trees_[tree] = grower.grow(Random(options.seed * 0x10001 + tree).next());
  };
  const int wanted = options.threads > 0 ? options.threads : static_cast<int>(std::thread::hardware_concurrency());
  std::vector<std::jthread> helpers;
  for (int i = 1; i < std::min(wanted, options.trees); ++i) helpers.emplace_back(work);
  work();
  helpers.clear();  // joins
  return forest;
}

double ExtraTrees::ask(const Tree& tree, std::span<const double> row) {
  size_t at = 0;
  while (tree[at].feature >= 0)
    at = row[static_cast<size_t>(tree[at].feature)] <= tree[at].value ? at + 1 : tree[at].right;
  return tree[at].value;
}

double ExtraTrees::predict(std::span<const double> row) const {
  double sum = 0;
  for (const Tree& tree : trees_) sum += ask(tree, row);
  return sum / static_cast<double>(trees_.size());
}

std::vector<double> ExtraTrees::predict_each(std::span<const double> row) const {
  std::vector<double> values;
  values.reserve(trees_.size());
  for (const Tree& tree : trees_) values.push_back(ask(tree, row));
  return values;
}

// {"features": n, "leaves": [distinct values], "trees": [{"nodes": [feature or -1, ...], "thresholds": [of inner
// nodes], "leaves": [index into "leaves"]}]}: preorder, so that children need no index; leaves of full trees repeat
// samples.
nlohmann::json ExtraTrees::to_json() const {
  std::vector<double> leaves;
  for (const Tree& tree : trees_)
    for (const Node& node : tree)
      if (node.feature < 0) leaves.push_back(node.value);
  std::sort(leaves.begin(), leaves.end());
  leaves.erase(std::unique(leaves.begin(), leaves.end()), leaves.end());
  nlohmann::json trees = nlohmann::json::array();
  for (const Tree& tree : trees_) {
    nlohmann::json nodes = nlohmann::json::array(), thresholds = nodes, places = nodes;
    for (const Node& node : tree) {
      nodes.push_back(node.feature);
      if (node.feature >= 0)
        thresholds.push_back(node.value);
      else
        places.push_back(std::lower_bound(leaves.begin(), leaves.end(), node.value) - leaves.begin());
    }
    trees.push_back(
        {{"nodes", std::move(nodes)}, {"thresholds", std::move(thresholds)}, {"leaves", std::move(places)}});
  }
  return {{"features", features_}, {"leaves", std::move(leaves)}, {"trees", std::move(trees)}};
}

namespace {

using nlohmann::json;

Result<const json*> list_in(const json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || !found->is_array())
    return bad_data(fmt::format("{}: expected a list", key));
  return &*found;
}

Result<std::vector<double>> numbers_in(const json& object, const char* key) {
  STROBE_ASSIGN(const json* list, list_in(object, key));
  std::vector<double> values;
  values.reserve(list->size());
  for (const json& value : *list) {
    if (!value.is_number() || !std::isfinite(value.get<double>()))
      return bad_data(fmt::format("{}[{}]: expected a number", key, values.size()));
    values.push_back(value.get<double>());
  }
  return values;
}

Result<std::vector<int64_t>> integers_in(const json& object, const char* key, int64_t low, int64_t high) {
  STROBE_ASSIGN(const json* list, list_in(object, key));
  std::vector<int64_t> values;
  values.reserve(list->size());
  for (const json& value : *list) {
    // Numbers above int64_t's are unsigned in the library; they are out of range here anyway.
    const bool fits = value.is_number_integer() &&
                      (!value.is_number_unsigned() || value.get<uint64_t>() <= static_cast<uint64_t>(high));
    if (!fits || value.get<int64_t>() < low || value.get<int64_t>() > high)
      return bad_data(fmt::format("{}[{}]: expected a whole number from {} to {}", key, values.size(), low, high));
    values.push_back(value.get<int64_t>());
  }
  return values;
}

}  // namespace

Result<ExtraTrees::Tree> ExtraTrees::tree_from_json(const json& json, size_t features,
                                                    std::span<const double> leaf_values) {
  STROBE_ASSIGN(const auto nodes, integers_in(json, "nodes", -1, static_cast<int64_t>(features) - 1));
  STROBE_ASSIGN(const auto thresholds, numbers_in(json, "thresholds"));
  STROBE_ASSIGN(const auto leaves, integers_in(json, "leaves", 0, static_cast<int64_t>(leaf_values.size()) - 1));
  Tree tree;
  tree.reserve(nodes.size());
  size_t thresholds_used = 0, leaves_used = 0;
  std::vector<size_t> without_right;  // inner nodes whose right child is still to come
  for (const int64_t feature : nodes) {
    if (!tree.empty() && tree.back().feature < 0) {
      if (without_right.empty()) return bad_data("nodes: more than one tree");
      tree[without_right.back()].right = static_cast<uint32_t>(tree.size());
      without_right.pop_back();
    }
    const bool leaf = feature < 0;
    if (leaf ? leaves_used == leaves.size() : thresholds_used == thresholds.size())
      return bad_data(fmt::format("{}: fewer than there are such nodes", leaf ? "leaves" : "thresholds"));
    if (!leaf) without_right.push_back(tree.size());
    tree.push_back({static_cast<int32_t>(feature), 0,
                    leaf ? leaf_values[static_cast<size_t>(leaves[leaves_used++])] : thresholds[thresholds_used++]});
  }
  if (tree.empty() || !without_right.empty() || tree.back().feature >= 0) return bad_data("nodes: no whole tree");
  if (thresholds_used != thresholds.size() || leaves_used != leaves.size())
    return bad_data("thresholds, leaves: more than there are such nodes");
  return tree;
}

Result<ExtraTrees> ExtraTrees::from_json(const json& json) {
  constexpr int64_t kMostFeatures = 1 << 20;
  if (!json.is_object()) return bad_data("expected an object with features, leaves and trees");
  const auto features = json.find("features");
  if (features == json.end() || !features->is_number_unsigned() || features->get<uint64_t>() < 1 ||
      features->get<uint64_t>() > kMostFeatures)
    return bad_data(fmt::format("features: expected a whole number from 1 to {}", kMostFeatures));
  ExtraTrees forest;
  forest.features_ = features->get<size_t>();
  STROBE_ASSIGN(const std::vector<double> leaves, numbers_in(json, "leaves"));
  STROBE_ASSIGN(const auto* trees, list_in(json, "trees"));
  if (trees->empty()) return bad_data("trees: expected at least one");
  for (const auto& tree : *trees) {
    auto parsed = tree_from_json(tree, forest.features_, leaves);
    if (!parsed) return std::move(parsed).error().at(fmt::format("trees[{}]", forest.trees_.size()));
    forest.trees_.push_back(std::move(*parsed));
  }
  return forest;
}

}  // namespace strobe::predict
