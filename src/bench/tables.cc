// The tables of a benchmark's results.
#include <algorithm>

#include "analyze/bootstrap.h"
#include "base/statistics.h"
#include "bench/interval.h"
#include "bench/results.h"

namespace strobe::bench {

std::optional<analyze::RatioInterval> mean_interval(const std::vector<double>& values) {
  if (values.size() < analyze::least_samples(analyze::Statistic::kMean) || mean(values) <= 0) return std::nullopt;
  // Over a constant 1 the ratio's interval is the mean's own.
  const std::vector<double> ones(values.size(), 1.0);
  return analyze::ratio_interval(ones, values, analyze::Statistic::kMean);
}

Table stage_table(const std::vector<ProcessResult>& processes, const Warmup& warmup) {
  const auto all = stage_series(processes, warmup);
  const bool gpu = std::any_of(all.begin(), all.end(), [](const StageSeries& series) {
    return std::any_of(series.gpu_ms.begin(), series.gpu_ms.end(), [](double ms) { return ms > 0; });
  });
  std::vector<Column> columns{
      {"level", "Path above the batches", 3, true},
      {"stage", "Range inside the batch; (batch): the batch itself", 3, true},
      {"mean_ms", "Mean of the batches that count", 3},
      {"ci95_low_ms", "95 % confidence interval of the mean (moving-block bootstrap)", 3},
      {"ci95_high_ms", "", 3},
      {"p50_ms", "Median of the batches", 3},
      {"p99_ms", "99th percentile of the batches", 3},
      {"ms_per_item", "Time over the batches' items", 3},
  };
  if (gpu) columns.push_back({"gpu_ms", "Mean time on the GPU, from the first to the last operation", 3});
  columns.push_back({"batches", "That count"});
  columns.push_back({"processes", ""});
  Table table("Stages", std::move(columns));
  for (const auto& series : all) {
    const auto interval = mean_interval(series.cpu_ms);
    double sum = 0;
    for (const double ms : series.cpu_ms) sum += ms;
    std::vector<Cell> row{series.level,
                          series.stage.empty() ? "(batch)" : series.stage,
                          mean(series.cpu_ms),
                          interval ? Cell(interval->low) : Cell(),
                          interval ? Cell(interval->high) : Cell(),
                          quantile(series.cpu_ms, 0.5),
                          quantile(series.cpu_ms, 0.99),
                          series.items > 0 ? Cell(sum / static_cast<double>(series.items)) : Cell()};
    if (gpu) row.emplace_back(mean(series.gpu_ms));
    row.emplace_back(static_cast<int64_t>(series.cpu_ms.size()));
    row.emplace_back(static_cast<int64_t>(series.processes));
    table.add_row(std::move(row));
  }
  const size_t least = analyze::least_samples(analyze::Statistic::kMean);
  if (std::any_of(all.begin(), all.end(), [least](const StageSeries& series) { return series.cpu_ms.size() < least; }))
    table.notes.push_back("fewer than " + std::to_string(least) + " batches give no confidence interval");
  const auto empty = levels_left_empty(processes, warmup);
  table.notes.insert(table.notes.end(), empty.begin(), empty.end());
  if (all.empty() && empty.empty()) table.notes.emplace_back("no range was a batch");
  return table;
}

std::optional<Table> latency_table(const std::vector<ProcessResult>& processes) {
  static constexpr const char* kKeys[] = {"offered_per_s", "completed_per_s", "mean", "p50", "p90", "p99",
                                          "max",           "wait_p99"};
  std::vector<Column> columns{{"process", "", 3, true}, {"arrivals", "", 3, true}, {"requests", ""}};
  for (const std::string key : kKeys)
    columns.push_back({key.ends_with("_per_s") ? key : key + "_ms", "From the intended arrival", 3});
  Table table("Latency from the intended arrival", std::move(columns));
  for (const auto& process : processes) {
    const Json& meta = process.read.meta;
    if (!meta.contains("strobe") || !meta["strobe"].is_object() || !meta["strobe"].contains("latency")) continue;
    const Json& latency = meta["strobe"]["latency"];
    if (!latency.is_object()) continue;
    const auto number = [&latency](const char* key) {
      return latency.contains(key) && latency[key].is_number() ? Cell(latency[key].get<double>()) : Cell();
    };
    const bool named = latency.contains("arrivals") && latency["arrivals"].is_string();
    std::vector<Cell> row{process.name, named ? Cell(latency["arrivals"].get<std::string>()) : Cell()};
    const bool counted = latency.contains("requests") && latency["requests"].is_number_integer();
    row.push_back(counted ? Cell(latency["requests"].get<int64_t>()) : Cell());
    for (const char* key : kKeys) row.push_back(number(key));
    table.add_row(std::move(row));
  }
  if (table.row_count() == 0) return std::nullopt;
  return table;
}

}  // namespace strobe::bench
