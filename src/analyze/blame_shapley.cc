#include "analyze/blame_shapley.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <numeric>
#include <random>

#include "base/statistics.h"

namespace strobe::analyze {
namespace {

constexpr double kMs = 1e6;
constexpr size_t kMostExact = 6;

// The latency of each tenant for a set of those who are there.
class Sets {
 public:
  Sets(const ReplayModel& model, ShapleyOf what) : model_(model), what_(what) {}

  const std::vector<double>& at(uint64_t set) {
    const auto [known, is_new] = known_.try_emplace(set);
    if (!is_new) return known->second;
    const size_t count = model_.tenants.size();
    for (size_t i = 0; i < count; ++i) model_.tenants[i].is_there = (set >> i & 1U) != 0;
    const ReplayResult result = replay(model_);
    for (size_t i = 0; i < count; ++i) {
      const std::vector<double> values = finished_latencies(model_, result, static_cast<int32_t>(i));
      double figure = 0;
      if (!values.empty()) figure = what_ == ShapleyOf::kMean ? mean(values) : quantile(values, 0.99);
      known->second.push_back(figure);
    }
    return known->second;
  }

 private:
  ReplayModel model_;
  ShapleyOf what_;
  std::map<uint64_t, std::vector<double>> known_;
};

void exactly(Sets& sets, size_t count, Shapley& answer) {
  std::vector<double> factorial(count + 1, 1);
  for (size_t i = 1; i <= count; ++i) factorial[i] = factorial[i - 1] * static_cast<double>(i);
  for (size_t i = 0; i < count; ++i)
    for (size_t j = 0; j < count; ++j) {
      if (i == j) continue;
      const uint64_t self = uint64_t{1} << i, other = uint64_t{1} << j;
      for (uint64_t set = 0; set < uint64_t{1} << count; ++set) {
        if ((set & self) == 0 || (set & other) != 0) continue;
        const auto players = static_cast<size_t>(std::popcount(set)) - 1;
        const double weight = factorial[players] * factorial[count - 2 - players] / factorial[count - 1];
        answer.values[i][j] += weight * (sets.at(set | other)[i] - sets.at(set)[i]);
      }
    }
}

void by_samples(Sets& sets, size_t count, size_t samples, uint64_t seed, Shapley& answer) {
  answer.is_exact = false;
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < count; ++i) {
    std::vector<size_t> others;
    for (size_t j = 0; j < count; ++j)
      if (j != i) others.push_back(j);
    std::vector<double> sums(count, 0), squares(count, 0);
    for (size_t sample = 0; sample < samples; ++sample) {
      std::shuffle(others.begin(), others.end(), random);
      uint64_t set = uint64_t{1} << i;
      for (const size_t j : others) {
        const double before = sets.at(set)[i];
        set |= uint64_t{1} << j;
        const double gain = sets.at(set)[i] - before;
        sums[j] += gain;
        squares[j] += gain * gain;
      }
    }
    const auto n = static_cast<double>(samples);
    for (const size_t j : others) {
      const double average = sums[j] / n;
      answer.values[i][j] = average;
      answer.standard_errors[i][j] =
          std::sqrt(std::max(0.0, squares[j] / n - average * average) / std::max(1.0, n - 1));
    }
  }
}

}  // namespace

Shapley shapley(const ReplayModel& model, ShapleyOf what, size_t samples, uint64_t seed) {
  const size_t count = model.tenants.size();
  constexpr size_t kMostTenants = 60;
  Shapley answer;
  answer.values.assign(count, std::vector<double>(count, 0));
  answer.standard_errors = answer.values;
  if (count > kMostTenants) return answer;
  Sets sets(model, what);
  const uint64_t all = (uint64_t{1} << count) - 1;
  for (size_t i = 0; i < count; ++i) {
    answer.alone.push_back(sets.at(uint64_t{1} << i)[i]);
    answer.together.push_back(sets.at(all)[i]);
  }
  if (count <= kMostExact)
    exactly(sets, count, answer);
  else
    by_samples(sets, count, samples, seed, answer);
  return answer;
}

Table shapley_table(const ReplayModel& model, const Shapley& shapley, ShapleyOf what) {
  const std::string figure = what == ShapleyOf::kMean ? "mean latency" : "p99 of the latency";
  Table table("What a tenant's " + figure + " owes to each other one (Shapley, by replay)",
              {{"tenant", "whose latency"},
               {"without", "who is taken away"},
               {"gain_ms", "its share in what the tenant loses by company"},
               {"standard_error_ms", "of the sampling; 0: exact"},
               {"alone_ms", "the tenant by itself"},
               {"together_ms", "with all others"}});
  for (size_t i = 0; i < shapley.alone.size(); ++i)
    for (size_t j = 0; j < shapley.alone.size(); ++j)
      if (i != j)
        table.add_row({model.tenants[i].name, model.tenants[j].name, shapley.values[i][j] / kMs,
                       shapley.standard_errors[i][j] / kMs, shapley.alone[i] / kMs, shapley.together[i] / kMs});
  return table;
}

}  // namespace strobe::analyze
