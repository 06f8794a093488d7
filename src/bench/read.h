// benchmark.json and benchmark_mean.json as they are found in folders: written by us, by CV-CUDA's benchmark.py, or by
// its CvCudaPerf alone.
#pragma once

#include <string>
#include <string_view>

#include "bench/figures.h"
#include "bench/ranges.h"
#include "strobe/base/result.h"

namespace strobe::bench {

struct ReadBenchmark {
  std::string obj_name;
  RangeTimes ranges;
  Json meta;
  bool placeholder = false;  // left by CvCudaPerf alone: all times are zero, to be filled from a timeline
};

// Errors: kBadData (not JSON; no data or meta; a path, time or batch that cannot be one).
Result<ReadBenchmark> read_benchmark(std::string_view text);

// A benchmark_mean.json: an object with "mean_all_batches" and "mean_data". Errors: kBadData.
Result<Json> read_mean(std::string_view text);

}  // namespace strobe::bench
