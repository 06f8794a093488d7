// What libstrobe_media_plain.so exports: the Backend of a build without FFmpeg. Synthetic and PPM pictures in, PPM
// pictures out, boxes without labels.
#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "media/backend.h"
#include "media/plain/picture.h"
#include "media/plain/sampling.h"
#include "media/plain/sources.h"

namespace strobe::media {
namespace {

// The border of a box, two pixels wide, as far as it lies in the picture.
void outline(RgbPicture& picture, const Annotation& box) {
  constexpr int kLine = 2;
  const auto bounded = [](float value, int most) {
    return static_cast<int>(std::clamp(std::round(value), 0.0F, static_cast<float>(most)));
  };
  const int left = bounded(box.x, picture.width), right = bounded(box.x + box.width, picture.width);
  const int top = bounded(box.y, picture.height), bottom = bounded(box.y + box.height, picture.height);
  for (int y = top; y < bottom; ++y) {
    for (int x = left; x < right; ++x) {
      if (x >= left + kLine && x < right - kLine && y >= top + kLine && y < bottom - kLine) x = right - kLine;
      uint8_t* const pixel =
          picture.rgb.data() + static_cast<size_t>(y) * picture.stride() + 3 * static_cast<size_t>(x);
      pixel[0] = static_cast<uint8_t>(box.rgb >> 16);
      pixel[1] = static_cast<uint8_t>(box.rgb >> 8);
      pixel[2] = static_cast<uint8_t>(box.rgb);
    }
  }
}

class PlainBackend : public Backend {
 public:
  std::string version() const override { return "no FFmpeg: synthetic and PPM pictures only"; }

  Result<std::unique_ptr<Source>> open_source(const std::string& input, const SourceOptions& options) override {
    return open_plain_source(input, options);
  }
  Result<std::unique_ptr<PictureDecoder>> make_picture_decoder() override {
    return needs_ffmpeg("decoding JPEG, PNG and WebP");
  }
  Result<std::unique_ptr<VideoWriter>> open_video_writer(const std::filesystem::path& path, int, int,
                                                         const WriterOptions&) override {
    return needs_ffmpeg(path.string() + ": writing a video (--no-video goes without)");
  }
  Result<void> write_picture(const std::filesystem::path& path, const Frame& frame,
                             const PictureOptions& options) override {
    if (!frame.picture) return internal_error("a frame without a picture was given to write");
    if (path.extension() != ".ppm") return needs_ffmpeg(path.string() + ": writing anything but .ppm");
    if (options.width > 0 || options.height > 0) return needs_ffmpeg(path.string() + ": scaling a picture");
    return write_file(path, ppm_bytes(picture_of(frame)));
  }
  Result<void> preprocess(const Frame& frame, const InputFormat& format, float* output) override {
    if (!frame.picture) return internal_error("a frame without a picture was given to preprocess");
    return sample_rgb(picture_of(frame), format, output);
  }
  Result<PictureBytes> picture_bytes(const Frame& frame, const InputFormat& format) override {
    if (!frame.picture) return internal_error("a frame without a picture was given to preprocess");
    return bytes_of_rgb(picture_of(frame), frame.picture, format);
  }
  Result<Frame> draw(const Frame& frame, std::span<const Annotation> annotations) override {
    if (!frame.picture) return internal_error("a frame without a picture was given to draw");
    auto drawn = std::make_shared<RgbPicture>(picture_of(frame));
    for (const Annotation& box : annotations) outline(*drawn, box);
    return frame_of(std::move(drawn), frame.index, frame.time_s);
  }
  void free_picture(AVFrame*) override {}  // frames of this plugin own theirs
};

}  // namespace
}  // namespace strobe::media

extern "C" __attribute__((visibility("default"))) int strobe_media_abi() {
  return strobe::media::kMediaAbi;
}
extern "C" __attribute__((visibility("default"))) strobe::media::Backend* strobe_media_create() {
  static strobe::media::PlainBackend backend;
  return &backend;
}
