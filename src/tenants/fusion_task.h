// Detectors on pictures and sweeps together, and on single pictures in space.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tenants/task.h"

namespace strobe::tenants {

std::vector<std::string> fusion_model_names();      // of either kind
bool is_fusion_model(const std::string& model);     // either kind
bool is_monocular_model(const std::string& model);  // of one picture
// sample: a frame with the pictures' cameras; later ones have as many, each where it stands then. Errors: kUnsupported
// (pictures whose cameras are not known).
Result<std::unique_ptr<Task>> open_fusion_task(const TenantSpec& tenant, const SensorFrame& sample);

}  // namespace strobe::tenants
