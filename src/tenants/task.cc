#include "tenants/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/suggest.h"
#include "collect/core_set.h"
#include "engines/loader.h"
#include "engines/request.h"
#include "models/lidar_detector.h"
#include "models/model.h"
#include "tenants/fusion_task.h"
#include "tenants/image_task.h"
#include "tenants/lidar_task.h"
#include "tenants/spin_task.h"

namespace strobe::tenants {

Result<StreamNeeds> needs_of(const std::string& model) {
  if (is_spin(model)) {
    STROBE_TRY(parse_spin(model));
    return StreamNeeds{};
  }
  if (is_lidar_model(model)) return StreamNeeds{.pictures = false, .points = true};
  if (is_fusion_model(model)) return StreamNeeds{.pictures = true, .points = !is_monocular_model(model)};
  return StreamNeeds{.pictures = true, .points = false};
}

namespace {

// What is still ${NAME} in a path, the environment did not know.
Result<void> check_path(const char* key, const std::string& path) {
  const size_t at = path.find("${"), end = at == std::string::npos ? at : path.find('}', at);
  if (end == std::string::npos) return {};
  return usage_error(fmt::format("{}: {}: the environment has no {}", key, path.substr(at, end + 1 - at),
                                 path.substr(at + 2, end - at - 2)));
}

// A built-in model, or a file that there is.
Result<void> check_model(const std::string& model) {
  std::vector<std::string> names = models::builtin_names();
  for (const auto& more : {models::lidar_detector_names(), fusion_model_names()})
    names.insert(names.end(), more.begin(), more.end());
  std::error_code ignored;
  if (std::find(names.begin(), names.end(), model) != names.end() || std::filesystem::exists(model, ignored)) return {};
  return not_found(fmt::format("model '{}' is no built-in network and no file; {}", model, suggest(model, names)));
}

}  // namespace

Result<void> check_tenant(const TenantSpec& tenant) {
  STROBE_ASSIGN(const StreamNeeds needs, needs_of(tenant.model));
  STROBE_TRY(check_path("source", tenant.source.path));
  STROBE_TRY(check_path("weights", tenant.weights.string()));
  STROBE_TRY(check_path("model", tenant.model));
  if (!tenant.cores.empty()) STROBE_TRY(collect::check_cores(tenant.cores));
  STROBE_TRY(engines::check_device_word(tenant.device));
  const auto engine = engines::check_engine(tenant.engine);
  if (is_spin(tenant.model)) {
    if (!engine && engine.error().kind() == ErrorKind::kUsage)
      return engine.error();  // it needs none, but a word is wrong
    if (tenant.device != "cpu")
      return unsupported(fmt::format("device {}: work of known length is a CPU's", tenant.device));
    if (tenant.batch > 1)
      return unsupported(fmt::format("batch {}: work of known length has no pictures", tenant.batch));
    return {};
  }
  if (!engine) return engine.error();
  STROBE_TRY(check_model(tenant.model));
  std::error_code ignored;
  if (!tenant.weights.empty() && !std::filesystem::exists(tenant.weights, ignored))
    return not_found("no such file").at(tenant.weights.string());
  if (tenant.batch > 1 && (needs.points || is_fusion_model(tenant.model)))
    return unsupported(fmt::format("batch {}: model {} takes one frame at a time", tenant.batch, tenant.model));
  const SourceSpec& source = tenant.source;
  if (source.kind == SourceSpec::Kind::kSynthetic)
    return usage_error("a synthetic source has no pictures and no sweeps, which model " + tenant.model + " takes");
  if (!source.weather.empty() && !needs.points)
    return usage_error("weather falls on LiDAR sweeps, which model " + tenant.model + " does not take");
  return {};
}

bool needs_points(const std::string& model) {
  const auto needs = needs_of(model);
  return needs && needs->points;
}

Result<std::unique_ptr<Task>> open_task(const TenantSpec& tenant, const SensorFrame& sample) {
  if (is_spin(tenant.model)) return open_spin_task(tenant);
  if (is_lidar_model(tenant.model)) return open_lidar_task(tenant);
  if (is_fusion_model(tenant.model)) return open_fusion_task(tenant, sample);
  return open_image_task(tenant);
}

}  // namespace strobe::tenants
