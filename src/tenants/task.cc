#include "tenants/task.h"

#include "tenants/image_task.h"
#include "tenants/spin_task.h"

namespace strobe::tenants {

Result<StreamNeeds> needs_of(const std::string& model) {
  if (is_spin(model)) {
    STROBE_TRY(parse_spin(model));
    return StreamNeeds{};
  }
  return StreamNeeds{.pictures = true, .points = false};
}

bool needs_points(const std::string& model) {
  const auto needs = needs_of(model);
  return needs && needs->points;
}

Result<std::unique_ptr<Task>> open_task(const TenantSpec& tenant) {
  if (is_spin(tenant.model)) return open_spin_task(tenant);
  return open_image_task(tenant);
}

}  // namespace strobe::tenants
