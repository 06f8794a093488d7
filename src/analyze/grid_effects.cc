#include "analyze/grid_effects.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analyze/bootstrap.h"
#include "analyze/cells.h"
#include "base/statistics.h"

namespace strobe::analyze {

namespace {

constexpr size_t kFewestForP99 = 100;
using Factors = std::map<std::string, std::string>;

struct Levels {
  std::string factor;
  std::vector<std::string> levels;  // in the order in which runs have them
};

// Factors that all runs have and that vary.
std::vector<Levels> varying(const std::vector<RunLatencies>& runs) {
  std::vector<Levels> all;
  if (runs.empty()) return all;
  for (const auto& [factor, first] : runs.front().factors) {
    Levels one{factor, {}};
    bool everywhere = true;
    for (const RunLatencies& run : runs) {
      const auto found = run.factors.find(factor);
      everywhere = everywhere && found != run.factors.end();
      if (everywhere && std::find(one.levels.begin(), one.levels.end(), found->second) == one.levels.end())
        one.levels.push_back(found->second);
    }
    if (everywhere && one.levels.size() > 1) all.push_back(std::move(one));
  }
  return all;
}

std::vector<std::string> tenants_of(const std::vector<RunLatencies>& runs) {
  std::vector<std::string> names;
  for (const RunLatencies& run : runs)
    for (const LatencyGroup& group : run.groups)
      if (std::find(names.begin(), names.end(), group.name) == names.end()) names.push_back(group.name);
  return names;
}

const LatencyGroup* group_of(const RunLatencies& run, const std::string& name) {
  for (const LatencyGroup& group : run.groups)
    if (group.name == name) return &group;
  return nullptr;
}

struct Moments {
  double mean, std, min, p25, p50, p75, p99, max;
};
Moments moments_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const auto at = [&](double q) { return quantile_sorted(values, q); };
  return {mean(values), standard_deviation(values), values.front(), at(0.25), at(0.5), at(0.75), at(0.99),
          values.back()};
}

// A cell of the design for one tenant: the statistic, and what it was in each resample.
struct DesignCell {
  double value = 0, tail = 0.025;
  std::vector<double> drawn;
};
using Design = std::map<Factors, DesignCell>;

// Repetitions of a cell are averaged; in a resample some of them are drawn several times, others not at all.
DesignCell cell_of(const std::vector<const LatencyGroup*>& repetitions, Statistic statistic,
                   const EffectOptions& options, uint64_t seed) {
  DesignCell cell;
  cell.drawn.assign(static_cast<size_t>(options.resamples), 0);
  std::vector<Resamples> drawn;
  const auto count = static_cast<double>(repetitions.size());
  for (size_t i = 0; i < repetitions.size(); ++i) {
    cell.value += value_of(repetitions[i]->latency_ms, statistic) / count;
    drawn.push_back(resamples_of(repetitions[i]->latency_ms, statistic, options.resamples, seed + 7919 * i));
    cell.tail = std::min(cell.tail, drawn.back().tail);
  }
  uint64_t state = seed;
  for (size_t r = 0; r < cell.drawn.size(); ++r)
    for (size_t i = 0; i < repetitions.size(); ++i) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;  // Knuth's MMIX
      const size_t chosen = repetitions.size() == 1 ? 0 : (state >> 33) % repetitions.size();
      cell.drawn[r] += drawn[chosen].values[r] / count;
    }
  return cell;
}

// Empty where a run has too few frames of the tenant for the statistic.
Design design_of(const std::vector<RunLatencies>& runs, const std::vector<Levels>& factors, const std::string& tenant,
                 Statistic statistic, const EffectOptions& options) {
  std::map<Factors, std::vector<const LatencyGroup*>> by_factors;
  for (const RunLatencies& run : runs) {
    const LatencyGroup* group = group_of(run, tenant);
    if (group == nullptr || group->latency_ms.empty()) continue;  // a cell that failed has no partner
    if (group->latency_ms.size() < least_samples(statistic)) {
      if (statistic == Statistic::kP99) return {};
      continue;
    }
    Factors key;
    for (const Levels& one : factors) key[one.factor] = run.factors.at(one.factor);
    by_factors[key].push_back(group);
  }
  Design design;
  uint64_t seed = options.seed;
  for (const auto& [key, groups] : by_factors) design[key] = cell_of(groups, statistic, options, seed += 104'729);
  return design;
}

// A mean of signed sums of cells, in the runs and in each resample.
class Contrast {
 public:
  explicit Contrast(int resamples) : drawn_(static_cast<size_t>(resamples), 0) {}
  void add(const std::vector<std::pair<const DesignCell*, double>>& terms) {
    ++count_;
    for (const auto& [cell, sign] : terms) {
      value_ += sign * cell->value;
      tail_ = std::min(tail_, cell->tail);
      for (size_t i = 0; i < drawn_.size(); ++i) drawn_[i] += sign * cell->drawn[i];
    }
  }
  int64_t count() const { return count_; }
  double value() const { return value_ / static_cast<double>(count_); }
  std::pair<double, double> interval() const {
    std::vector<double> sorted = drawn_;
    std::sort(sorted.begin(), sorted.end());
    return {quantile_sorted(sorted, tail_) / static_cast<double>(count_),
            quantile_sorted(sorted, 1 - tail_) / static_cast<double>(count_)};
  }

 private:
  std::vector<double> drawn_;
  double value_ = 0, tail_ = 0.025;
  int64_t count_ = 0;
};

const DesignCell* find_cell(const Design& design, Factors key, const std::string& factor, const std::string& level) {
  key[factor] = level;
  const auto found = design.find(key);
  return found == design.end() ? nullptr : &found->second;
}

std::string whose(const std::string& factor, const std::string& tenant, const std::vector<std::string>& tenants) {
  const std::string name = factor.substr(0, factor.find('.'));
  if (factor.find('.') == std::string::npos || std::find(tenants.begin(), tenants.end(), name) == tenants.end())
    return "both";
  return name == tenant ? "own" : "co-runner";
}

}  // namespace

Table grid_cells(const std::vector<RunLatencies>& runs) {
  std::set<std::string> factors;
  for (const RunLatencies& run : runs)
    for (const auto& [factor, level] : run.factors) factors.insert(factor);
  std::vector<Column> columns = {{"run", "", 0}, {"tenant", "", 0}};
  for (const std::string& factor : factors) columns.push_back({factor, "", 0});
  for (const Column& column :
       {Column{"frames", "that finished", 0}, Column{"mean_ms", "latency, stamp to done", 3}, Column{"std_ms", "", 3},
        Column{"min_ms", "", 3}, Column{"p50_ms", "", 3}, Column{"p99_ms", "from 100 frames on", 3},
        Column{"max_ms", "", 3}, Column{"range_ms", "max - min", 3}})
    columns.push_back(column);
  Table table("Latency by run", columns);
  for (const RunLatencies& run : runs)
    for (const LatencyGroup& group : run.groups) {
      std::vector<Cell> row = {run.name, group.name};
      for (const std::string& factor : factors) {
        const auto found = run.factors.find(factor);
        row.push_back(cell(found == run.factors.end() ? std::string() : found->second));
      }
      row.emplace_back(static_cast<int64_t>(group.latency_ms.size()));
      if (group.latency_ms.empty()) {
        row.insert(row.end(), 7, Cell());
      } else {
        const Moments all = moments_of(group.latency_ms);
        for (const double value : {all.mean, all.std, all.min, all.p50}) row.emplace_back(value);
        row.push_back(cell_if(group.latency_ms.size() >= kFewestForP99, all.p99));
        row.emplace_back(all.max);
        row.emplace_back(all.max - all.min);
      }
      table.add_row(std::move(row));
    }
  return table;
}

Table grid_levels(const std::vector<RunLatencies>& runs) {
  Table table("Latency by level", {{"factor", "", 0},
                                   {"level", "", 0},
                                   {"tenant", "", 0},
                                   {"runs", "", 0},
                                   {"frames", "", 0},
                                   {"mean_ms", "", 3},
                                   {"std_ms", "", 3},
                                   {"min_ms", "", 3},
                                   {"p25_ms", "", 3},
                                   {"p50_ms", "", 3},
                                   {"p75_ms", "", 3},
                                   {"p99_ms", "from 100 frames on", 3},
                                   {"max_ms", "", 3},
                                   {"range_ms", "max - min", 3},
                                   {"width_ms", "p99 - p0", 3},
                                   {"mean_change", "%, against the factor's first level", 2},
                                   {"width_change", "%, the same of the width", 2}});
  const std::vector<std::string> tenants = tenants_of(runs);
  for (const Levels& factor : varying(runs))
    for (const std::string& tenant : tenants) {
      std::optional<Moments> first;
      bool first_has_p99 = false;
      for (const std::string& level : factor.levels) {
        std::vector<double> pooled;
        int64_t count = 0;
        for (const RunLatencies& run : runs) {
          const LatencyGroup* group = group_of(run, tenant);
          if (group == nullptr || run.factors.at(factor.factor) != level) continue;
          ++count;
          pooled.insert(pooled.end(), group->latency_ms.begin(), group->latency_ms.end());
        }
        if (pooled.empty()) continue;
        const Moments all = moments_of(pooled);
        const bool has_p99 = pooled.size() >= kFewestForP99;
        if (!first) first = all, first_has_p99 = has_p99;
        const double width = all.p99 - all.min, reference = first->p99 - first->min;
        table.add_row({factor.factor, level, tenant, count, static_cast<int64_t>(pooled.size()), all.mean, all.std,
                       all.min, all.p25, all.p50, all.p75, cell_if(has_p99, all.p99), all.max, all.max - all.min,
                       cell_if(has_p99, width), cell_if(first->mean > 0, 100 * (all.mean / first->mean - 1)),
                       cell_if(has_p99 && first_has_p99 && reference > 0, 100 * (width / reference - 1))});
      }
    }
  return table;
}

Result<Table> main_effects(const std::vector<RunLatencies>& runs, const EffectOptions& options) {
  const std::vector<Levels> factors = varying(runs);
  if (factors.empty()) return usage_error("no factor has several levels in these runs");
  const std::vector<std::string> tenants = tenants_of(runs);
  Table table("Main effects", {{"tenant", "", 0},
                               {"factor", "", 0},
                               {"whose", "own: a setting of this tenant; co-runner: of another one; both", 0},
                               {"level", "", 0},
                               {"reference", "", 0},
                               {"statistic", "of the latency", 0},
                               {"pairs", "of cells alike in all other factors", 0},
                               {"difference_ms", "level - reference, mean over the pairs", 3},
                               {"low_ms", "95 % interval", 3},
                               {"high_ms", "", 3},
                               {"change", "%, of the reference", 2}});
  for (const std::string& tenant : tenants)
    for (const Statistic statistic : {Statistic::kP50, Statistic::kMean, Statistic::kP99}) {
      const Design design = design_of(runs, factors, tenant, statistic, options);
      for (const Levels& factor : factors)
        for (size_t l = 1; l < factor.levels.size(); ++l) {
          Contrast contrast(options.resamples);
          double reference = 0;
          for (const auto& [key, cell] : design) {
            if (key.at(factor.factor) != factor.levels[l]) continue;
            const DesignCell* partner = find_cell(design, key, factor.factor, factor.levels[0]);
            if (partner == nullptr) continue;
            contrast.add({{&cell, 1}, {partner, -1}});
            reference += partner->value;
          }
          if (contrast.count() == 0) continue;
          reference /= static_cast<double>(contrast.count());
          const auto [low, high] = contrast.interval();
          table.add_row({tenant, factor.factor, whose(factor.factor, tenant, tenants), factor.levels[l],
                         factor.levels[0], statistic_name(statistic), contrast.count(), contrast.value(), low, high,
                         cell_if(reference > 0, 100 * contrast.value() / reference)});
        }
    }
  if (table.row_count() == 0) return usage_error("no two runs with frames are alike in all factors but one");
  return table;
}

Table interactions(const std::vector<RunLatencies>& runs, const EffectOptions& options) {
  Table table("Interactions", {{"tenant", "", 0},
                               {"factor_a", "", 0},
                               {"level_a", "", 0},
                               {"factor_b", "", 0},
                               {"level_b", "", 0},
                               {"statistic", "of the latency", 0},
                               {"quadruples", "of cells alike in all other factors", 0},
                               {"difference_ms", "of both changes together beyond the sum of each", 3},
                               {"low_ms", "95 % interval", 3},
                               {"high_ms", "", 3}});
  const std::vector<Levels> factors = varying(runs);
  for (const std::string& tenant : tenants_of(runs))
    for (const Statistic statistic : {Statistic::kP50, Statistic::kMean, Statistic::kP99}) {
      const Design design = design_of(runs, factors, tenant, statistic, options);
      for (size_t a = 0; a < factors.size(); ++a)
        for (size_t b = a + 1; b < factors.size(); ++b)
          for (size_t la = 1; la < factors[a].levels.size(); ++la)
            for (size_t lb = 1; lb < factors[b].levels.size(); ++lb) {
              Contrast contrast(options.resamples);
              for (const auto& [key, both] : design) {
                if (key.at(factors[a].factor) != factors[a].levels[la] ||
                    key.at(factors[b].factor) != factors[b].levels[lb])
                  continue;
                const DesignCell* only_b = find_cell(design, key, factors[a].factor, factors[a].levels[0]);
                const DesignCell* only_a = find_cell(design, key, factors[b].factor, factors[b].levels[0]);
                Factors neither_key = key;
                neither_key[factors[a].factor] = factors[a].levels[0];
                const DesignCell* neither = find_cell(design, neither_key, factors[b].factor, factors[b].levels[0]);
                if (only_a != nullptr && only_b != nullptr && neither != nullptr)
                  contrast.add({{&both, 1}, {only_a, -1}, {only_b, -1}, {neither, 1}});
              }
              if (contrast.count() == 0) continue;
              const auto [low, high] = contrast.interval();
              table.add_row({tenant, factors[a].factor, factors[a].levels[la], factors[b].factor, factors[b].levels[lb],
                             statistic_name(statistic), contrast.count(), contrast.value(), low, high});
            }
    }
  return table;
}

}  // namespace strobe::analyze
