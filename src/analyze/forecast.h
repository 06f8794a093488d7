// Co-location forecast: the latencies of tenants that would share a device, from a trace of each by itself. It is the
// replay of their merged traces; how they stand to each other in time is drawn, so that the answer is a distribution.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/what_if_tenants.h"
#include "base/table.h"
#include "strobe/base/result.h"

namespace strobe::analyze {

struct ForecastOptions {
  std::optional<ServePolicy> policy;  // nothing: that of the first trace
  std::optional<Calibration> calibration;
  size_t draws = 100;
  bool all_sets = false;                // of every set of two or more tenants, not of all together alone
  std::optional<int64_t> memory_bytes;  // the largest set that fits into it and meets its deadlines
  double most_misses = 0.01;            // share of frames that may miss
  uint64_t seed = 1;
};

struct ForecastFigures {
  double p50_ms = 0, p99_ms = 0, miss_rate = 0;                 // medians of the draws
  double p50_low = 0, p50_high = 0, p99_low = 0, p99_high = 0;  // 2.5 % and 97.5 % of the draws
  double miss_low = 0, miss_high = 0;
};

struct ForecastRow {
  std::vector<int32_t> set;  // tenants
  int32_t tenant = 0;
  ForecastFigures forecast;
  // Baselines: every resource is split equally among those who use it; nobody is in anybody's way.
  ForecastFigures equal_share, no_interference;
};

struct ForecastSet {
  std::vector<int32_t> tenants;
  int64_t memory_bytes = 0;
  double miss_rate = 0;  // of its worst tenant
};

struct Forecast {
  std::vector<std::string> tenants;
  std::vector<int64_t> memory_bytes;  // of each; -1: its trace does not tell
  ServePolicy policy = ServePolicy::kFifo;
  std::vector<ForecastRow> rows;
  std::optional<ForecastSet> largest;  // with memory_bytes; nothing: not even one tenant fits
  std::vector<std::string> notes;
  Table table() const;
};

// Each trace may hold one tenant or several; equal names get "#2", "#3". Errors: those of tenant_trace with the number
// of the trace as place, kUsage (fewer than one trace; more than 12 tenants with all_sets or memory).
Result<Forecast> forecast(const std::vector<const trace::Timeline*>& solo, const ForecastOptions& options);

}  // namespace strobe::analyze
