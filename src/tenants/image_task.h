// Networks on pictures: detectors and classifiers of any engine.
#pragma once

#include <memory>

#include "tenants/task.h"

namespace strobe::tenants {

Result<std::unique_ptr<Task>> open_image_task(const TenantSpec& tenant);

}  // namespace strobe::tenants
