// What the report shows of tenants beyond their traces: how their cells ended, what their LiDARs saw and what was found
// in it.
#pragma once

#include <filesystem>
#include <string>

#include "report/tenants_page.h"
#include "report_scene.h"
#include "strobe/trace/timeline.h"

namespace strobe::app {

// Gathers the runs of a page. Traces that are none of tenants add nothing.
class TenantsCollector {
 public:
  // Adds the run of a trace: its tables, the words of the cell.json beside it, and the scenes of its LiDAR tenants,
  // whose sweeps are read again where they came from (weather falls on them as it did). What cannot be read is a note
  // of the run.
  void add(const std::string& label, const trace::Timeline& timeline, const std::filesystem::path& trace);
  const report::TenantsPage& page() const { return page_; }
  report::TenantsPage& page() { return page_; }

 private:
  report::TenantsPage page_;
  SceneCollector scenes_{page_};
};

// Cells of an experiment's folder that left no trace, each with its reason.
void add_failed_cells(report::TenantsPage& page, const std::filesystem::path& folder);

}  // namespace strobe::app
