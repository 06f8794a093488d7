// The border between the facade that everyone links and the plugin that holds FFmpeg: opening the plugin costs tens of
// milliseconds, so it happens at the first call that needs it. The functions are those of source.h, sink.h,
// preprocess.h and draw.h.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "media/draw.h"
#include "media/frame.h"
#include "media/preprocess.h"
#include "media/sink.h"
#include "media/source.h"

namespace strobe::media {

// Raised with every change of this header or of those that it includes; a plugin of another value is refused.
inline constexpr int kMediaAbi = 6;

// Thread-safe.
class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string version() const = 0;  // "FFmpeg 5.1.9 (libavcodec 59.37.100)"
  virtual Result<std::unique_ptr<Source>> open_source(const std::string& input, const SourceOptions& options) = 0;
  virtual Result<std::unique_ptr<PictureDecoder>> make_picture_decoder() = 0;
  virtual Result<std::unique_ptr<VideoWriter>> open_video_writer(const std::filesystem::path& path, int width,
                                                                 int height, const WriterOptions& options) = 0;
  virtual Result<void> write_picture(const std::filesystem::path& path, const Frame& frame,
                                     const PictureOptions& options) = 0;
  virtual Result<void> preprocess(const Frame& frame, const InputFormat& format, float* output) = 0;
  virtual Result<PictureBytes> picture_bytes(const Frame& frame, const InputFormat& format) = 0;
  virtual Result<Frame> draw(const Frame& frame, std::span<const Annotation> annotations) = 0;
  virtual void free_picture(AVFrame* picture) = 0;
};

// The plugin, opened once. Errors: kUnsupported (media was not built, or FFmpeg's libraries are not there: says which
// packages give them).
Result<Backend*> backend();

}  // namespace strobe::media

// What the plugin exports.
extern "C" {
using strobe_media_abi_fn = int (*)();
using strobe_media_create_fn = strobe::media::Backend* (*)();
}
