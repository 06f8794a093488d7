// What the page shows of tenants: each run's frames, blame and layers, the grid that the runs form, the LiDAR scenes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "analyze/predictability.h"
#include "report/lidar_scene.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::report {

// One run of tenants, usually a cell of an experiment.
struct TenantRun {
  std::string label;
  std::string status, reason;      // how the cell ended; empty: not known
  std::vector<std::string> notes;  // what must be said with its results: synthetic streams, seeded weights
  // {"frames": {tenant: packed columns}, "summary", "blame": {"all", "misses", "tail"}, "resources", "layers": tables,
  // "sentences": [...], "policy", "isolation"}; null where the trace has none of it.
  nlohmann::ordered_json data;
  analyze::RunLatencies latencies;
};

// Everything of a run out of its timeline, which is not needed afterwards. Errors: those of tenant_trace().
Result<TenantRun> tenant_run(std::string label, const trace::Timeline& timeline);

struct TenantsPage {
  std::vector<TenantRun> runs;
  std::vector<PointStream> streams;
  std::vector<LidarScene> scenes;
};

// {"runs": [...], "grid": {"cells", "levels", "shares", "effects", "interactions": tables}, "streams", "scenes"}; the
// grid is there where factors vary.
nlohmann::ordered_json tenants_json(const TenantsPage& page);

}  // namespace strobe::report
