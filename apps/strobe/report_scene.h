// The LiDAR scenes of a cell for the report: the sweeps that its tenants saw, their boxes and the true ones.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "report/tenants_page.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"
#include "tenants/experiment.h"
#include "tenants/frame_stream.h"

namespace strobe::app {

// The facts by which a source is found again: tenant.NAME.source_kind, .source_scene, .source_channels (with ","),
// .source_weather, .source_weather_rate, and tenants.seed.
void write_source_facts(const tenants::CellSpec& cell, trace::Timeline& timeline);

// A stream that was read, with what brings predictions into its sensor's frame.
struct OpenStream {
  std::string key;
  std::vector<tenants::SensorFrame> frames;
};

// Several runs on the same sweeps share them.
class SceneCollector {
 public:
  explicit SceneCollector(report::TenantsPage& page) : page_(page) {}
  // Adds a scene for each tenant of the run whose model takes sweeps; what cannot be read becomes a note. folder: of
  // the cell, with its predictions.
  void add(const std::string& run, const trace::Timeline& timeline, const std::filesystem::path& folder,
           std::vector<std::string>& notes);

 private:
  Result<void> add_tenant(const std::string& run, const trace::Timeline& timeline, const std::filesystem::path& folder,
                          const std::string& tenant, bool first);
  Result<size_t> stream_of(const tenants::SourceSpec& source, bool pictures, uint64_t seed);

  report::TenantsPage& page_;
  std::vector<OpenStream> open_;  // as TenantsPage::streams
};

}  // namespace strobe::app
