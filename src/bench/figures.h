// The figures of one process: ranges -> the "data", "mean_data" and "total_batches" of benchmark.json. Times are
// milliseconds rounded to 3 decimals; docs/bench.md defines every key.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/ranges.h"
#include "strobe/bench/perf.h"

namespace strobe::bench {

using Json = nlohmann::ordered_json;

inline constexpr double kMsDigits = 1000;  // three decimals
double round_ms(double ms);

// Batches with items, by the path one level above them.
std::map<std::string, int64_t> total_batches(const RangeTimes& ranges);
// Whether the batch with this index, of `total`, is in neither warm-up.
bool counts(int64_t index, int64_t total, const Warmup& warmup);

Json data_of(const RangeTimes& ranges, const Warmup& warmup, Rules rules);
// data: what data_of() made of the same ranges.
Json mean_data_of(const Json& data, const RangeTimes& ranges, const Warmup& warmup, Rules rules);

// A whole benchmark.json. meta's members come after ours; "strobe" of meta holds what ours needs to make the figures
// again with another warm-up.
Json benchmark_of(const std::string& obj_name, const RangeTimes& ranges, const Warmup& warmup, Rules rules, Json meta);

}  // namespace strobe::bench
