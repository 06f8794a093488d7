// VideoWriter: encodes frames to a file (mp4 by default) that appears under its name when complete.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "media/frame.h"
#include "strobe/base/result.h"

namespace strobe::media {

struct WriterOptions {
  std::string codec = "h264";  // h264 (libx264), mpeg4, mjpeg; by FFmpeg's encoder names otherwise
  double fps = 30;
  int threads = 1;   // encoder threads
  int quality = 23;  // CRF of h264, lower is better
  std::string preset = "ultrafast";
};

class VideoWriter {
 public:
  virtual ~VideoWriter() = default;
  // A frame of another size than the video's is fitted into it, undistorted, with black beside it; odd sizes are
  // cropped by one pixel as 4:2:0 needs. Errors: kIo (no space), kEngine (encoder).
  virtual Result<void> write(const Frame& frame) = 0;
  // Flushes the encoder, writes the trailer and gives the file its name. A writer destroyed without it leaves no file.
  virtual Result<void> finish() = 0;
};

// path empty: encodes and throws the packets away (to measure the encoder alone).
// Errors: kUnsupported (codec not in this FFmpeg: says which are), kIo.
Result<std::unique_ptr<VideoWriter>> open_video_writer(const std::filesystem::path& path, int width, int height,
                                                       const WriterOptions& options);

struct PictureOptions {
  int quality = 100;          // of a .jpg: 1 to 100, higher is better
  int width = 0, height = 0;  // to scale to; 0: what keeps the shape; both 0: the frame's own size
};

// One picture as .jpg or .png, by the extension of path. Errors: kUnsupported, kIo.
Result<void> write_picture(const std::filesystem::path& path, const Frame& frame, const PictureOptions& options = {});

}  // namespace strobe::media
