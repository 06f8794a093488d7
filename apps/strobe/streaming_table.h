// `strobe sensors evaluate --delays`: accuracy of results at the moment at which they were ready.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/table_format.h"
#include "sensors/streaming_accuracy.h"
#include "strobe/base/result.h"

namespace strobe::app {

// A file of delays (docs/experiments.md, or pPerf's own) and of whom it tells.
struct DelaysFile {
  std::vector<sensors::TimedResult> results;
  std::string tenant;    // or the model, where the file has no tenants
  bool swapped = false;  // its end-to-end delays stood in the column of inference, as one version of pPerf wrote them
};

// who: a tenant or a model; empty: the only one whose results lie in space. Errors: kBadData (columns, numbers, at the
// line), kUsage (several: which), kNotFound.
Result<DelaysFile> read_delays(const std::filesystem::path& path, const std::string& who);

// What must be said with the figures; text has it in itself.
std::vector<std::string> streaming_notes(const DelaysFile& delays, const sensors::StreamingAccuracy& accuracy);

// text, csv (pPerf's columns class_name, dist_th, ap, behind them when: still or stream), json.
std::string streaming_text(const DelaysFile& delays, const sensors::StreamingAccuracy& accuracy, report::Format format);

}  // namespace strobe::app
