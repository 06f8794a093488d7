// Streams out of sensor data: folders of sweeps, nuScenes scenes.
#pragma once

#include <memory>

#include "tenants/frame_stream.h"

namespace strobe::tenants {

// KITTI's .bin (4 numbers a point) and nuScenes' .pcd.bin (5): one file, or a folder of them by name.
Result<std::unique_ptr<FrameStream>> open_sweeps(const SourceSpec& source, uint64_t seed);
// Whether there are frames of the source, without reading any. Errors: kNotFound (scene, channel), those of the tables.
Result<void> check_nuscenes(const SourceSpec& source, const StreamNeeds& needs);
Result<std::unique_ptr<FrameStream>> open_nuscenes(const SourceSpec& source, const StreamNeeds& needs, uint64_t seed);

}  // namespace strobe::tenants
