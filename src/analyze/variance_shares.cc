#include "analyze/variance_shares.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <set>

namespace strobe::analyze {
namespace {

constexpr size_t kMostFactors = 12;

struct CellMean {
  double count = 0, mean = 0;
  std::vector<size_t> levels;  // by factor
};

// Sum of squares that the main effects of the chosen factors explain: projection of the cell means on dummy variables,
// weighted by their counts (modified Gram-Schmidt; columns that depend on others fall away).
double explained_by(const std::vector<CellMean>& cells, const std::vector<size_t>& level_counts, size_t chosen,
                    double grand_mean) {
  const size_t n = cells.size();
  std::vector<std::vector<double>> basis;
  std::vector<double> target(n), weight(n);
  for (size_t i = 0; i < n; ++i) {
    weight[i] = std::sqrt(cells[i].count);
    target[i] = weight[i] * (cells[i].mean - grand_mean);
  }
  const auto add = [&](std::vector<double> column) {
    double norm_before = 0, norm = 0;
    for (const double x : column) norm_before += x * x;
    for (int pass = 0; pass < 2; ++pass)
      for (const auto& unit : basis) {
        double along = 0;
        for (size_t i = 0; i < n; ++i) along += unit[i] * column[i];
        for (size_t i = 0; i < n; ++i) column[i] -= along * unit[i];
      }
    for (const double x : column) norm += x * x;
    if (norm <= 1e-12 * norm_before) return;
    for (double& x : column) x /= std::sqrt(norm);
    basis.push_back(std::move(column));
  };
  add(weight);
  for (size_t f = 0; f < level_counts.size(); ++f) {
    if ((chosen >> f & 1) == 0) continue;
    for (size_t level = 1; level < level_counts[f]; ++level) {
      std::vector<double> column(n);
      for (size_t i = 0; i < n; ++i) column[i] = cells[i].levels[f] == level ? weight[i] : 0;
      add(std::move(column));
    }
  }
  double sum = 0;
  for (const auto& unit : basis) {
    double along = 0;
    for (size_t i = 0; i < n; ++i) along += unit[i] * target[i];
    sum += along * along;
  }
  return sum;
}

}  // namespace

Result<VarianceShares> variance_shares(const std::vector<FactorCell>& cells) {
  std::map<std::string, std::set<std::string>> levels;
  std::map<std::string, size_t> seen;
  std::vector<const FactorCell*> used;
  for (const FactorCell& cell : cells) {
    if (cell.values.empty()) continue;
    used.push_back(&cell);
    for (const auto& [factor, level] : cell.factors) {
      levels[factor].insert(level);
      ++seen[factor];
    }
  }
  if (used.size() < 2) return usage_error("shares of variance need at least two cells with values");
  std::vector<std::string> names;
  for (const auto& [factor, values] : levels)
    if (values.size() > 1 && seen[factor] == used.size()) names.push_back(factor);
  if (names.empty()) return usage_error("no factor has several levels");
  if (names.size() > kMostFactors) return usage_error("more than " + std::to_string(kMostFactors) + " factors vary");

  VarianceShares result;
  result.cells = used.size();
  double total = 0, sum = 0;
  std::vector<CellMean> means;
  for (const FactorCell* cell : used) {
    CellMean one;
    one.count = static_cast<double>(cell->values.size());
    for (const double value : cell->values) one.mean += value / one.count;
    for (const std::string& name : names)
      one.levels.push_back(
          static_cast<size_t>(std::distance(levels[name].begin(), levels[name].find(cell->factors.at(name)))));
    sum += one.mean * one.count;
    result.values += cell->values.size();
    means.push_back(std::move(one));
  }
  const double grand_mean = sum / static_cast<double>(result.values);
  double between = 0;
  for (size_t i = 0; i < used.size(); ++i) {
    for (const double value : used[i]->values) total += (value - grand_mean) * (value - grand_mean);
    between += means[i].count * (means[i].mean - grand_mean) * (means[i].mean - grand_mean);
  }
  if (!(total > 0)) return usage_error("all values are the same: there is no variance to share");
  std::vector<size_t> level_counts;
  for (const std::string& name : names) level_counts.push_back(levels[name].size());
  const size_t k = names.size();
  std::vector<double> r2(size_t{1} << k);
  for (size_t chosen = 1; chosen < r2.size(); ++chosen)
    r2[chosen] = explained_by(means, level_counts, chosen, grand_mean) / total;
  std::vector<double> factorial(k + 1, 1);
  for (size_t i = 1; i <= k; ++i) factorial[i] = factorial[i - 1] * static_cast<double>(i);
  for (size_t f = 0; f < k; ++f) {
    double share = 0;
    for (size_t chosen = 0; chosen < r2.size(); ++chosen) {
      if ((chosen >> f & 1) != 0) continue;
      const auto size = static_cast<size_t>(std::popcount(chosen));
      share += factorial[size] * factorial[k - size - 1] / factorial[k] * (r2[chosen | size_t{1} << f] - r2[chosen]);
    }
    result.shares.emplace_back(names[f], share);
  }
  std::sort(result.shares.begin(), result.shares.end(),
            [](const auto& a, const auto& b) { return a.second > b.second; });
  result.explained = r2.back();
  result.interactions = std::max(0.0, between / total - result.explained);
  result.within = 1 - between / total;
  return result;
}

}  // namespace strobe::analyze
