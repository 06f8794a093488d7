#include "pperf_files.h"

#include <algorithm>

#include "analyze/gpu_use.h"
#include "analyze/pperf_tables.h"
#include "analyze/tenant_tables.h"
#include "analyze/tenant_trace.h"
#include "base/file.h"
#include "report/table_format.h"

namespace strobe::app {

namespace fs = std::filesystem;

namespace {

// A name as a part of a file's name.
std::string file_word(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '/' || c == ' ' || c == ':' || c == 92; }, '-');
  return text;
}

}  // namespace

Result<std::vector<fs::path>> write_pperf_files(const trace::Timeline& timeline, const fs::path& folder,
                                                const std::string& index) {
  const std::vector<analyze::ModelWork> work = analyze::model_work(timeline);
  const bool of_tenants = analyze::is_tenant_trace(timeline);
  if (work.empty() && !of_tenants) return not_found("the trace has no tenants and no work of a device");
  STROBE_TRY(make_writable_folder(folder));
  std::vector<fs::path> written;
  const auto write = [&](const Table& table, const std::string& name) -> Result<void> {
    written.push_back(folder / name);
    return write_file(written.back(), report::format_table(table, report::Format::kCsv));
  };
  if (of_tenants) {
    STROBE_ASSIGN(const analyze::TenantTrace trace, analyze::tenant_trace(timeline));
    STROBE_TRY(write(analyze::tenant_delays(trace, timeline), "delays_" + index + ".csv"));
    STROBE_TRY(write(analyze::tenant_layer_timings(trace, timeline), "layer_timings_" + index + ".csv"));
  }
  if (const Table samples = analyze::gpu_samples(timeline); samples.row_count() > 0)
    STROBE_TRY(write(samples, "gpu_" + index + ".csv"));
  if (work.empty()) return written;
  STROBE_TRY(write(analyze::kernel_timings(work), "kernel_timings_" + index + ".csv"));
  if (const Table copies = analyze::memcpy_intervals(work); copies.row_count() > 0)
    STROBE_TRY(write(copies, "memcpy_analysis.csv"));
  const std::vector<std::string> models = analyze::models_of(work);
  for (const std::string& primary : models)
    for (const std::string& other : models)
      if (primary != other)
        STROBE_TRY(write(analyze::e2e_kernels(work, primary, other),
                         "e2e_analysis_results_" + file_word(primary) + "_" + file_word(other) + ".csv"));
  return written;
}

}  // namespace strobe::app
