// The body of preprocess(): rows of the picture are blended, sampled and converted, one network row at a time.
#pragma once

#include "media/preprocess.h"

namespace strobe::media {

Result<void> sample_picture(const Frame& frame, const InputFormat& format, float* output);

}  // namespace strobe::media
