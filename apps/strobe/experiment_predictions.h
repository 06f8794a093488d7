// The tenants' predictions in the forms that pPerf and nuScenes know.
#pragma once

#include <filesystem>
#include <string_view>

#include "experiment_picture_truth.h"
#include "strobe/base/result.h"
#include "tenants/experiment.h"

namespace strobe::app {

// Out of from/<tenant>.jsonl: to/lidar_pred_<i>.json, a nuScenes submission of the tenants whose boxes lie in space,
// and to/image_pred_<i>.json, a list of {"image_id", "category_id" (1-based nuScenes class), "bbox" [x, y, w, h],
// "score"} of those on pictures, cars, trucks, buses, bicycles, motorcycles and pedestrians only. Where several tenants
// are of one kind, each of the further ones has a file of its own, _<tenant> behind the number. Beside
// image_pred_<i>.json stands image_gt_<i>.json where the truth is known (experiment_picture_truth.h). What a tenant
// left of a last line is ignored. Errors: kIo, and those of the databases.
Result<void> merge_predictions(const tenants::Cell& cell, const FrameDelays& delays, const std::filesystem::path& from,
                               const std::filesystem::path& to);

// The 1-based number of a class of nuScenes, also by COCO's name of it; 0: none of them.
int nuscenes_category(std::string_view label);
// Whether COCO has this class of nuScenes, too, so that detectors on pictures may find it.
bool is_picture_class(std::string_view nuscenes_name);

}  // namespace strobe::app
