// Streams out of MCAP bags: sweeps, pictures, or both joined, with their places where the bag tells them.
#pragma once

#include <memory>

#include "tenants/frame_stream.h"

namespace strobe::tenants {

// Messages PointCloud2 and CompressedImage in the order of log times; of a model that needs one of them the first topic
// with it, or the first of the source's channels. Where the bag has transforms, frames have their pose in the root of
// their tree, and with CameraInfo pictures have their camera.
// Of a model that needs both, each sweep is joined with the picture of every camera whose stamp is nearest to its own,
// at most 100 ms away; the cameras are the topics of pictures (of the channels, where they are told) by name. Sweeps
// without one of them are left out, which a note tells.
// Errors: those of MCAP and messages; kNotFound (nothing that fits), kUnsupported (pictures and sweeps to be joined
// without CameraInfo or transforms between them).
Result<std::unique_ptr<FrameStream>> open_bag(const SourceSpec& source, const StreamNeeds& needs, uint64_t seed);

}  // namespace strobe::tenants
