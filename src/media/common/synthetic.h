// Pictures made by rule, for machines without cameras, videos or FFmpeg: "synthetic://WIDTHxHEIGHT[@FPS][/FRAMES]".
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "media/source.h"
#include "strobe/base/result.h"

namespace strobe::media {

// "synthetic://640x480@30/300": size, frame rate (30) and how many (300). Errors: kUsage.
Result<SourceInfo> parse_synthetic(const std::string& input);

// Colours that drift and a white square that moves by a pixel a frame: 8-bit RGB, rows `stride` bytes apart. The same
// picture for the same index, everywhere.
void paint_synthetic(int64_t index, int width, int height, uint8_t* rgb, size_t stride);

}  // namespace strobe::media
