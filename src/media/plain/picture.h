// What a frame of the plain plugin holds crosses the facade under FFmpeg's name, as a handle that nobody but this
// plugin looks into.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "media/common/ppm.h"
#include "media/frame.h"

namespace strobe::media {

inline Frame frame_of(std::shared_ptr<const RgbPicture> picture, int64_t index, double time_s) {
  const auto* handle = reinterpret_cast<const AVFrame*>(picture.get());
  return {index, time_s, picture->width, picture->height, std::shared_ptr<const AVFrame>(std::move(picture), handle)};
}
inline const RgbPicture& picture_of(const Frame& frame) {
  return *reinterpret_cast<const RgbPicture*>(frame.picture.get());
}

}  // namespace strobe::media
