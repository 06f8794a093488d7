// V4L2 cameras. libavdevice is opened when the first camera is: it loads half a desktop's libraries.
#pragma once

#include <string>

#include "media/ffmpeg/av.h"
#include "strobe/base/result.h"

namespace strobe::media {

// FFmpeg's demuxer of cameras. Errors: kNotFound (no such device: names those that are there), kUnsupported.
Result<const AVInputFormat*> camera_format(const std::string& device);

// Why a camera that is there could not be opened.
Error camera_error(int code);

}  // namespace strobe::media
