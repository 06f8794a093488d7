// preprocess() of RGB pictures (media/preprocess.h).
#pragma once

#include "media/plain/picture.h"
#include "media/preprocess.h"

namespace strobe::media {

Result<void> sample_rgb(const RgbPicture& picture, const InputFormat& format, float* output);

}  // namespace strobe::media
