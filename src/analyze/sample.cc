#include "analyze/sample.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <thread>

#include "analyze/cells.h"

namespace strobe::analyze {

namespace {

constexpr size_t kMuch = 200'000;

// Type 7 quantiles asked for in ascending order: each selection leaves the smaller values before `from_`.
class Quantiles {
 public:
  explicit Quantiles(std::span<int64_t> values) : values_(values) {}
  double at(double q) {
    const double position = q * static_cast<double>(values_.size() - 1);
    const auto low = static_cast<size_t>(position);
    const double fraction = position - static_cast<double>(low);
    select(low);
    const auto value = static_cast<double>(values_[low]);
    if (fraction == 0) return value;
    select(low + 1);
    return value + fraction * (static_cast<double>(values_[low + 1]) - value);
  }

 private:
  void select(size_t index) {
    if (index < from_) return;
    const auto begin = values_.begin();
    const auto at = [&](size_t i) { return begin + static_cast<std::ptrdiff_t>(i); };
    if (index == from_)
      std::iter_swap(at(index), std::min_element(at(index), values_.end()));
    else
      std::nth_element(at(from_), at(index), values_.end());
    from_ = index + 1;
  }

  std::span<int64_t> values_;
  size_t from_ = 0;  // everything before is in its place
};

}  // namespace

Sample summarize(std::span<int64_t> ns) {
  Sample sample;
  if (ns.empty()) return sample;
  sample.count = static_cast<int64_t>(ns.size());
  sample.min_ns = sample.max_ns = ns.front();
  double steps = 0;
  int64_t previous = ns.front();
  for (const int64_t value : ns) {
    sample.total_ns += value;
    sample.min_ns = std::min(sample.min_ns, value);
    sample.max_ns = std::max(sample.max_ns, value);
    steps += std::abs(static_cast<double>(value) - static_cast<double>(previous));
    previous = value;
  }
  const auto count = static_cast<double>(ns.size());
  sample.mean_ns = static_cast<double>(sample.total_ns) / count;
  if (ns.size() > 1) {
    double squares = 0;
    for (const int64_t value : ns) {
      const double off = static_cast<double>(value) - sample.mean_ns;
      squares += off * off;
    }
    sample.std_ns = std::sqrt(squares / (count - 1));
    sample.jitter_ns = steps / (count - 1);
  }
  Quantiles quantiles(ns);
  sample.p50_ns = quantiles.at(0.5);
  sample.p90_ns = quantiles.at(0.9);
  sample.p95_ns = quantiles.at(0.95);
  sample.p99_ns = quantiles.at(0.99);
  return sample;
}

void for_each_group(size_t count, bool much, const std::function<void(size_t)>& work) {
  std::atomic<size_t> next{0};
  const auto take = [&] {
    for (size_t i = next++; i < count; i = next++) work(i);
  };
  if (much && count > 1) {
    std::thread other(take);
    take();
    other.join();
  } else {
    take();
  }
}

std::vector<Sample> summarize_groups(std::span<const uint32_t> group_of, std::span<const int64_t> values,
                                     size_t group_count) {
  std::vector<size_t> begin(group_count + 1, 0);
  for (const uint32_t group : group_of) ++begin[group + 1];
  for (size_t i = 0; i < group_count; ++i) begin[i + 1] += begin[i];
  std::vector<int64_t> grouped(values.size());
  std::vector<size_t> next(begin.begin(), begin.end() - 1);
  for (size_t i = 0; i < values.size(); ++i) grouped[next[group_of[i]]++] = values[i];
  // The largest first, so that both threads end together.
  std::vector<uint32_t> order(group_count);
  for (uint32_t i = 0; i < group_count; ++i) order[i] = i;
  const auto size = [&](uint32_t group) { return begin[group + 1] - begin[group]; };
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return size(a) > size(b); });
  std::vector<Sample> samples(group_count);
  for_each_group(group_count, values.size() > kMuch, [&](size_t i) {
    const uint32_t group = order[i];
    samples[group] = summarize(std::span(grouped).subspan(begin[group], size(group)));
  });
  return samples;
}

std::vector<Column> sample_columns() {
  return {{"count", "how often", 0},
          {"total_ns", "sum", 0},
          {"mean_ns", "mean", 0},
          {"std_ns", "standard deviation", 0},
          {"min_ns", "smallest", 0},
          {"p50_ns", "median", 0},
          {"p90_ns", "90th percentile", 0},
          {"p95_ns", "95th percentile", 0},
          {"p99_ns", "99th percentile", 0},
          {"max_ns", "largest", 0},
          {"jitter_ns", "mean difference, without its sign, between one and the next", 0}};
}

void add_sample(const Sample& sample, std::vector<Cell>& row) {
  row.emplace_back(sample.count);
  row.emplace_back(sample.total_ns);
  row.emplace_back(sample.mean_ns);
  row.emplace_back(sample.std_ns);
  row.emplace_back(sample.min_ns);
  for (const double value : {sample.p50_ns, sample.p90_ns, sample.p95_ns, sample.p99_ns}) row.emplace_back(value);
  row.emplace_back(sample.max_ns);
  row.push_back(cell_if(sample.count > 1, sample.jitter_ns));
}

}  // namespace strobe::analyze
