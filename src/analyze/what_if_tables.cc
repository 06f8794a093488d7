#include "analyze/what_if_tables.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "analyze/cells.h"
#include "base/statistics.h"

namespace strobe::analyze {

namespace {

constexpr double kNanosecondsPerMillisecond = 1e6;

struct Metric {
  const char* name;
  double quantile;  // of latency; negative: throughput
};
constexpr Metric kMetrics[] = {{"p50_ms", 0.5}, {"p95_ms", 0.95}, {"p99_ms", 0.99}, {"max_ms", 1}, {"throughput", -1}};

double value_of(const Series& series, const Metric& metric) {
  if (metric.quantile < 0)
    return series.duration_ns > 0 ? static_cast<double>(series.latency_ns.size()) / series.duration_ns * 1e9 : 0;
  return quantile(series.latency_ns, metric.quantile) / kNanosecondsPerMillisecond;
}

// Time from the end of one unit to the end of the next, in the order of ends.
std::vector<double> intervals(const Series& series) {
  std::vector<double> ends = series.finished_ns;
  std::sort(ends.begin(), ends.end());
  for (size_t i = ends.size(); i-- > 1;) ends[i] -= ends[i - 1];
  if (!ends.empty()) ends.erase(ends.begin());
  return ends;
}

struct Interval {
  double low, high;
};

// Values of which many samples are drawn: a sample is how often each rank is in it, so that none needs sorting.
struct Ranked {
  explicit Ranked(const std::vector<double>& values) : rank(values.size()), ascending(values.size()) {
    std::vector<uint32_t> order(values.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return values[a] < values[b]; });
    for (uint32_t i = 0; i < order.size(); ++i) {
      rank[order[i]] = i;
      ascending[i] = values[order[i]];
    }
  }

  // Those of kMetrics, whose quantiles ascend, of a sample of as many values as there are; 0 for the throughput.
  std::vector<double> quantiles(const std::vector<uint32_t>& drawn) const {
    std::vector<double> found(std::size(kMetrics), 0);
    size_t place = 0, below = 0;  // values of ranks before `place`
    const auto seek = [&](size_t index, size_t& at, size_t& before) {
      while (before + drawn[at] <= index) before += drawn[at++];
      return ascending[at];
    };
    for (size_t m = 0; m < std::size(kMetrics); ++m) {
      if (kMetrics[m].quantile < 0) continue;
      const double position = kMetrics[m].quantile * static_cast<double>(ascending.size() - 1);
      const auto low = static_cast<size_t>(position);
      const double value = seek(low, place, below);
      size_t next_place = place, next_below = below;  // the next quantile may lie between the same two
      const double next = seek(std::min(low + 1, ascending.size() - 1), next_place, next_below);
      found[m] = value + (position - static_cast<double>(low)) * (next - value);
    }
    return found;
  }

  std::vector<uint32_t> rank;
  std::vector<double> ascending;
};

// Units are correlated in time, so whole blocks are drawn; the same ones of both replays, which differ by the change
// alone.
std::vector<Interval> bootstrap(const Series& replay, const Series& after, uint64_t seed) {
  const size_t count = replay.latency_ns.size();
  constexpr size_t kFewest = 10;
  constexpr int kResamples = 400;
  if (count < kFewest || after.latency_ns.size() != count) return {};
  const auto block = static_cast<size_t>(std::ceil(2 * std::cbrt(static_cast<double>(count))));
  const std::vector<double> gaps_before = intervals(replay), gaps_after = intervals(after);
  std::vector<std::vector<double>> changes(std::size(kMetrics));
  const Ranked before(replay.latency_ns), now(after.latency_ns);
  std::vector<uint32_t> drawn_before(count), drawn_now(count);
  std::mt19937_64 random(seed);
  for (int round = 0; round < kResamples; ++round) {
    std::fill(drawn_before.begin(), drawn_before.end(), 0);
    std::fill(drawn_now.begin(), drawn_now.end(), 0);
    double time_before = 0, time_now = 0;
    for (size_t drawn = 0; drawn < count;) {
      const size_t start = random() % count;
      for (size_t i = 0; i < block && drawn < count; ++i, ++drawn) {
        const size_t at = (start + i) % count;
        ++drawn_before[before.rank[at]];
        ++drawn_now[now.rank[at]];
        time_before += gaps_before[at % gaps_before.size()];
        time_now += gaps_after[at % gaps_after.size()];
      }
    }
    const std::vector<double> quantiles_before = before.quantiles(drawn_before),
                              quantiles_now = now.quantiles(drawn_now);
    for (size_t m = 0; m < std::size(kMetrics); ++m) {
      const bool is_throughput = kMetrics[m].quantile < 0;
      const double from = is_throughput ? time_now : quantiles_before[m],
                   to = is_throughput ? time_before : quantiles_now[m];
      if (from > 0) changes[m].push_back(to / from - 1);
    }
  }
  std::vector<Interval> result;
  for (std::vector<double>& list : changes) {
    std::sort(list.begin(), list.end());
    result.push_back({quantile_sorted(list, 0.025), quantile_sorted(list, 0.975)});
  }
  return result;
}

std::string percent(double share) {
  const double tenths = std::round(share * 1000) / 10;
  std::string text = std::to_string(tenths);
  return text.substr(0, text.find('.') + 2) + " %";
}

}  // namespace

double median(const std::vector<double>& values) {
  return quantile(values, 0.5);
}

WhatIf compare(const Series& measured, const Series& replay, const Series& after, uint64_t seed) {
  WhatIf result;
  Table table("What if", {{"metric", "Of latency (ms), and units a second", 0},
                          {"measured", "In the trace", 3},
                          {"replay", "Of the trace, replayed without any change", 3},
                          {"error", "replay / measured - 1", 4},
                          {"after", "Replayed with the change", 3},
                          {"change", "after / replay - 1", 4},
                          {"low", "Of its 95 % interval", 4},
                          {"high", "", 4}});
  const std::vector<Interval> spread = bootstrap(replay, after, seed);
  for (size_t m = 0; m < std::size(kMetrics); ++m) {
    const double was = value_of(measured, kMetrics[m]), replayed = value_of(replay, kMetrics[m]),
                 now = value_of(after, kMetrics[m]);
    const double error = was > 0 ? replayed / was - 1 : 0;
    if (kMetrics[m].quantile == 0.5) result.p50_error = error;
    if (kMetrics[m].quantile == 0.99) result.p99_error = error;
    const bool known = m < spread.size();
    table.add_row({std::string(kMetrics[m].name), was, replayed, cell_if(was > 0, error), now,
                   cell_if(replayed > 0, now / replayed - 1), cell_if(known, known ? spread[m].low : 0),
                   cell_if(known, known ? spread[m].high : 0)});
  }
  constexpr double kMostAtP50 = 0.03, kMostAtP99 = 0.10;
  result.is_reliable = std::abs(result.p50_error) <= kMostAtP50 && std::abs(result.p99_error) <= kMostAtP99;
  if (!result.is_reliable)
    table.notes.push_back("not reliable here: the replay without any change misses the measured p50 by " +
                          percent(result.p50_error) + " and p99 by " + percent(result.p99_error) +
                          " (allowed: 3 % and 10 %)");
  result.answer = std::move(table);
  return result;
}

Table path_table(const std::map<std::string, double>& before, const std::map<std::string, double>& after) {
  Table table(
      "Critical path before and after",
      {{"name", "", 0}, {"before_share", "Of the replay's critical path", 4}, {"after_share", "With the change", 4}});
  const auto sum = [](const std::map<std::string, double>& of) {
    double total = 0;
    for (const auto& [name, time] : of) total += time;
    return std::max(total, 1e-9);
  };
  const double whole_before = sum(before), whole_after = sum(after);
  std::map<std::string, std::pair<double, double>> shares;
  for (const auto& [name, time] : before) shares[name].first = time / whole_before;
  for (const auto& [name, time] : after) shares[name].second = time / whole_after;
  std::vector<std::pair<std::string, std::pair<double, double>>> rows(shares.begin(), shares.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& a, const auto& b) { return a.second.second > b.second.second; });
  for (const auto& [name, share] : rows) table.add_row({name, share.first, share.second});
  return table;
}

Table sweep_table(std::vector<SweepItem> items, double p50_ns, double throughput) {
  std::vector<Column> columns{{"item", "What is made faster", 0},
                              {"time_share", "Of the time of all items", 4},
                              {"throughput_slope", "A speed-up of 1 % gains so many % of throughput", 3},
                              {"p50_slope", "A speed-up of 1 % takes so many % off the median latency", 3}};
  for (const double factor : kSweepFactors) {
    std::string text = std::to_string(static_cast<int>(std::lround(factor * 100)));
    columns.push_back({"throughput_at_" + text, "Throughput, as a share of now, at " + text + " % of its time", 4});
    columns.push_back({"p50_at_" + text, "Median latency likewise", 4});
  }
  Table table("What a faster part is worth", columns);
  const double step = 1 - kSweepFactors[0];
  const auto slope = [&](const SweepItem& item) {
    return std::pair((item.throughput[0] / throughput - 1) / step, (1 - item.p50_ns[0] / p50_ns) / step);
  };
  std::stable_sort(items.begin(), items.end(),
                   [&](const SweepItem& a, const SweepItem& b) { return slope(a) > slope(b); });
  for (const SweepItem& item : items) {
    const auto [gain, off] = slope(item);
    std::vector<Cell> row{item.name, item.time_share, gain, off};
    for (size_t i = 0; i < std::size(kSweepFactors); ++i) {
      row.emplace_back(item.throughput[i] / throughput);
      row.emplace_back(item.p50_ns[i] / p50_ns);
    }
    table.add_row(std::move(row));
  }
  return table;
}

}  // namespace strobe::analyze
