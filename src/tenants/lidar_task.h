// Detectors on LiDAR sweeps: voxelisation and scatter on the CPU around the networks that an engine runs.
#pragma once

#include <memory>
#include <string>

#include "tenants/task.h"

namespace strobe::tenants {

bool is_lidar_model(const std::string& model);
Result<std::unique_ptr<Task>> open_lidar_task(const TenantSpec& tenant);

}  // namespace strobe::tenants
