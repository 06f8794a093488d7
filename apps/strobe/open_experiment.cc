#include "open_experiment.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include "base/file.h"
#include "engines/loader.h"
#include "engines/request.h"
#include "in_child.h"
#include "report/table_format.h"
#include "tenants/mps_server.h"
#include "tenants/spin_task.h"
#include "tenants/task.h"

namespace strobe::app {

namespace fs = std::filesystem;

namespace {

// A source that many cells have is looked at once.
Result<void> check_source(const tenants::TenantSpec& tenant,
                          std::vector<std::pair<tenants::SourceSpec, std::string>>& seen) {
  std::pair<tenants::SourceSpec, std::string> source{tenant.source, tenant.model};
  if (std::find(seen.begin(), seen.end(), source) != seen.end()) return {};
  STROBE_ASSIGN(const tenants::StreamNeeds needs, tenants::needs_of(tenant.model));
  STROBE_TRY(tenants::check_source(tenant.source, needs));
  seen.push_back(std::move(source));
  return {};
}

// Whether the engine runs on the device, found out in a process of its own: a framework that has opened a GPU here
// would be of no use in the cells' processes, which are forks of this one. Errors: those of engines::check_runs_on,
// kEngine.
Result<void> check_device(const std::string& engine, const std::string& device) {
  constexpr int kTimeout = 120;  // s; a framework's first look at a GPU takes some
  STROBE_ASSIGN(const std::string answer, in_child(
                                              [&]() -> std::string {
                                                auto opened = engines::open_engine(engine);
                                                if (!opened) return opened.error().to_string();
                                                auto runs = engines::check_runs_on(**opened, device);
                                                return runs ? "" : runs.error().to_string();
                                              },
                                              kTimeout));
  if (!answer.empty()) return unsupported(answer);
  return {};
}

}  // namespace

Result<OpenedExperiment> open_experiment(const ExperimentOptions& options) {
  STROBE_TRY(report::parse_format(options.format));
  OpenedExperiment opened;
  STROBE_ASSIGN(opened.text, read_file(options.file));
  auto experiment = tenants::read_experiment(opened.text, fs::absolute(options.file).parent_path(), options.changes);
  if (!experiment && experiment.error().kind() == ErrorKind::kUsage) return std::move(experiment).error().at("--set");
  if (!experiment) return Error(experiment.error().kind(), options.file + ":" + experiment.error().message());
  for (const std::string& change : options.changes) opened.text += "# --set " + change + "\n";
  for (const tenants::Cell& cell : experiment->cells)
    for (const tenants::TenantSpec& tenant : cell.spec.tenants)
      if (auto right = tenants::check_tenant(tenant); !right)
        return std::move(right).error().at("tenant " + tenant.name).at(options.file);
  std::set<std::pair<std::string, std::string>> devices;
  for (const tenants::Cell& cell : experiment->cells)
    for (const tenants::TenantSpec& tenant : cell.spec.tenants)
      if (!tenants::is_spin(tenant.model) && devices.emplace(tenant.engine, tenant.device).second)
        if (auto there = check_device(tenant.engine, tenant.device); !there)
          return std::move(there).error().at("tenant " + tenant.name).at(options.file);
  std::vector<std::pair<tenants::SourceSpec, std::string>> sources;  // and for which model
  for (const tenants::Cell& cell : experiment->cells)
    for (const tenants::TenantSpec& tenant : cell.spec.tenants)
      if (auto there = check_source(tenant, sources); !there)
        return std::move(there).error().at("tenant " + tenant.name).at(options.file);
  for (const tenants::Cell& cell : experiment->cells) {
    if (!cell.spec.mps.value_or(false)) continue;
    if (auto there = tenants::MpsServer::find_program(); !there)
      return std::move(there).error().at("cell " + cell.folder).at(options.file);
  }
  opened.experiment = std::move(*experiment);
  return opened;
}

}  // namespace strobe::app
