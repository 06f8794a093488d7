// The HTML report: one self-contained file (plotly inside) out of one or several traces.
#pragma once

#include <span>
#include <string>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::report {

struct ReportInput {
  std::string label;  // shown as the run's name, e.g. the engine
  const trace::Timeline* timeline = nullptr;
};

struct TenantsPage;

struct ReportOptions {
  std::string title = "Strobe report";
  std::string plotly_js;                 // path of plotly.min.js; empty: searched where the set-up puts it
  const TenantsPage* tenants = nullptr;  // of traces of tenants: their sections stand first
};

// Sections: the comparison table, a timeline of lanes that zooms and pans, latency over frames, ECDF of latency, stage
// breakdown, limits, top layers and fusion, machine facts, losses and notes. Errors: kNotFound (plotly.min.js: says how
// to get it), kUsage (no trace).
Result<std::string> html_report(std::span<const ReportInput> runs, const ReportOptions& options);

}  // namespace strobe::report
