// What was to be found on the pictures of a tenant, beside what it found.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

#include "strobe/base/result.h"
#include "tenants/experiment.h"

namespace strobe::app {

// By tenant and frame: s from its stamp until its result was ready.
using FrameDelays = std::map<std::pair<std::string, int64_t>, double>;

// Of a tenant whose predictions (tenants/prediction_file.h) are on pictures of a nuScenes database with annotations: a
// data set in COCO's format, with nuScenes' numbers of classes as image_pred_<i>.json has them. A result is held
// against the moment at which it was there: of each picture (its `id` is its token, as `image_id` of the predictions)
// the boxes are those of the picture of the same camera (`offset_token`, `file_name`) that is nearest to its stamp and
// delay, on the picture's own view. Writes nothing for other tenants. Errors: those of the database; kIo.
Result<void> write_picture_truth(const tenants::TenantSpec& tenant, const std::filesystem::path& predictions,
                                 const FrameDelays& delays, const std::filesystem::path& to);

}  // namespace strobe::app
