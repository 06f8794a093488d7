#pragma once

#include "media/sink.h"

namespace strobe::media {

Result<std::unique_ptr<VideoWriter>> make_video_writer(const std::filesystem::path& path, int width, int height,
                                                       const WriterOptions& options);
Result<void> encode_picture(const std::filesystem::path& path, const Frame& frame, const PictureOptions& options);

}  // namespace strobe::media
