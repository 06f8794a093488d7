// The bodies of preprocess() and picture_bytes(): rows of the picture are blended, sampled and converted, one network
// row at a time.
#pragma once

#include "media/preprocess.h"

namespace strobe::media {

Result<void> sample_picture(const Frame& frame, const InputFormat& format, float* output);
Result<PictureBytes> bytes_of_picture(const Frame& frame, const InputFormat& format);

}  // namespace strobe::media
