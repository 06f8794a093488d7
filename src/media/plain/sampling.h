// preprocess() and picture_bytes() of RGB pictures (media/preprocess.h).
#pragma once

#include "media/plain/picture.h"
#include "media/preprocess.h"

namespace strobe::media {

Result<void> sample_rgb(const RgbPicture& picture, const InputFormat& format, float* output);
Result<PictureBytes> bytes_of_rgb(const RgbPicture& picture, std::shared_ptr<const void> owner,
                                  const InputFormat& format);

}  // namespace strobe::media
