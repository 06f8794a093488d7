// The sources that need no FFmpeg.
#pragma once

#include <memory>
#include <string>

#include "media/plain/picture.h"
#include "media/source.h"

namespace strobe::media {

// synthetic://..., a .ppm file, or a folder of them. Errors: kUnsupported (anything else: says which packages read it),
// and kNotFound, kIo, kBadData.
Result<std::unique_ptr<Source>> open_plain_source(const std::string& input, const SourceOptions& options);

// "PATH: WHAT needs FFmpeg, ...": the line of whatever is not possible here.
Error needs_ffmpeg(const std::string& what);

}  // namespace strobe::media
