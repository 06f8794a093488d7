// The CSV files of pPerf's analyses, out of any trace (docs/experiments.md).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::app {

// Into the folder, which is made: of tenants delays_<i>.csv and layer_timings_<i>.csv; of devices that were sampled
// gpu_<i>.csv; of what held a device
// kernel_timings_<i>.csv, memcpy_analysis.csv (where anything was copied) and, of every two models,
// e2e_analysis_results_<primary>_<other>.csv. Returns what was written. Errors: kIo; kNotFound (the trace has neither
// tenants nor work of a device).
Result<std::vector<std::filesystem::path>> write_pperf_files(const trace::Timeline& timeline,
                                                             const std::filesystem::path& folder,
                                                             const std::string& index);

}  // namespace strobe::app
