// The tenants' predictions in the forms that pPerf and nuScenes know.
#pragma once

#include <filesystem>

#include "strobe/base/result.h"
#include "tenants/experiment.h"

namespace strobe::app {

// Out of from/<tenant>.jsonl: to/lidar_pred_<i>.json, a nuScenes submission of the tenants whose boxes lie in space,
// and to/image_pred_<i>.json, a list of {"image_id", "category_id" (1-based nuScenes class), "bbox" [x, y, w, h],
// "score"} of those on pictures, cars, trucks, buses, bicycles, motorcycles and pedestrians only. Where several tenants
// are of one kind, each of the further ones has a file of its own, _<tenant> behind the number. What a tenant left of a
// last line is ignored. Errors: kIo.
Result<void> merge_predictions(const tenants::Cell& cell, const std::filesystem::path& from,
                               const std::filesystem::path& to);

}  // namespace strobe::app
