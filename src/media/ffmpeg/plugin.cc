// What libstrobe_media.so exports: the Backend over FFmpeg.
#include "media/backend.h"
#include "media/ffmpeg/av.h"
#include "media/ffmpeg/drawing.h"
#include "media/ffmpeg/sampling.h"
#include "media/ffmpeg/sources.h"
#include "media/ffmpeg/video_writer.h"

namespace strobe::media {
namespace {

class FfmpegBackend : public Backend {
 public:
  FfmpegBackend() {
    capture_log();
    avformat_network_init();
  }

  std::string version() const override {
    return std::string("FFmpeg ") + av_version_info() + " (" + LIBAVCODEC_IDENT + ")";
  }

  Result<std::unique_ptr<Source>> open_source(const std::string& input, const SourceOptions& options) override {
    const InputKind kind = input_kind(input);
    if (kind == InputKind::kSynthetic) return open_synthetic_source(input, options);
    if (kind == InputKind::kPicture || kind == InputKind::kFolder) return open_picture_source(input, kind, options);
    return is_live(kind) ? open_live_source(input, kind, options) : open_file_source(input, options);
  }

  Result<std::unique_ptr<PictureDecoder>> make_picture_decoder() override { return open_picture_decoder(); }

  Result<std::unique_ptr<VideoWriter>> open_video_writer(const std::filesystem::path& path, int width, int height,
                                                         const WriterOptions& options) override {
    return make_video_writer(path, width, height, options);
  }

  Result<void> write_picture(const std::filesystem::path& path, const Frame& frame,
                             const PictureOptions& options) override {
    return encode_picture(path, frame, options);
  }

  Result<void> preprocess(const Frame& frame, const InputFormat& format, float* output) override {
    return sample_picture(frame, format, output);
  }
  Result<PictureBytes> picture_bytes(const Frame& frame, const InputFormat& format) override {
    return bytes_of_picture(frame, format);
  }

  Result<Frame> draw(const Frame& frame, std::span<const Annotation> annotations) override {
    return draw_annotations(frame, annotations);
  }

  void free_picture(AVFrame* picture) override { av_frame_free(&picture); }
};

}  // namespace
}  // namespace strobe::media

extern "C" __attribute__((visibility("default"))) int strobe_media_abi() {
  return strobe::media::kMediaAbi;
}
extern "C" __attribute__((visibility("default"))) strobe::media::Backend* strobe_media_create() {
  static strobe::media::FfmpegBackend backend;
  return &backend;
}
