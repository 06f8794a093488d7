#include "media/backend.h"

#include "base/plugin.h"
#include "media/common/input_kind.h"

namespace strobe::media {
namespace {

constexpr const char* kFfmpeg = "libstrobe_media.so";
constexpr const char* kPlain = "libstrobe_media_plain.so";

Result<Backend*> open_plugin() {
  const char* plugin = kFfmpeg;
  auto abi = load_plugin(plugin, "strobe_media_abi");
  if (!abi && abi.error().kind() == ErrorKind::kNotFound) {
    auto plain = load_plugin(kPlain, "strobe_media_abi");
    if (plain) plugin = kPlain;
    if (plain) abi = std::move(plain);
  }
  if (!abi && abi.error().kind() == ErrorKind::kNotFound) {
    return unsupported(
        "video is not built in: install libavformat-dev libavcodec-dev libavutil-dev libswscale-dev libavdevice-dev "
        "libfreetype-dev and build again (" +
        abi.error().to_string() + ")");
  }
  if (!abi) {
    return unsupported("video cannot be used, FFmpeg's libraries are missing (apt install ffmpeg): " +
                       abi.error().to_string());
  }
  if (const int found = reinterpret_cast<strobe_media_abi_fn>(*abi)(); found != kMediaAbi) {
    return unsupported(std::string(plugin) + " is of another build: interface " + std::to_string(found) +
                       ", expected " + std::to_string(kMediaAbi));
  }
  STROBE_ASSIGN(void* const create, load_plugin(plugin, "strobe_media_create"));
  return reinterpret_cast<strobe_media_create_fn>(create)();
}

}  // namespace

// The backend lives until the program ends: frames may outlast every other object.
Result<Backend*> backend() {
  static const Result<Backend*> opened = open_plugin();
  return opened;
}

void AVFrameDeleter::operator()(AVFrame* frame) const {
  if (auto plugin = backend()) (*plugin)->free_picture(frame);
}

Result<std::unique_ptr<Source>> open_source(const std::string& input, const SourceOptions& options) {
  const InputKind kind = input_kind(input);
  if (!options.hwaccel.empty() &&
      (kind == InputKind::kPicture || kind == InputKind::kFolder || kind == InputKind::kSynthetic)) {
    return usage_error(input + ": hwaccel " + options.hwaccel + " decodes videos and streams, and this is neither");
  }
  STROBE_ASSIGN(Backend* const plugin, backend());
  return plugin->open_source(input, options);
}

Result<std::unique_ptr<PictureDecoder>> make_picture_decoder() {
  STROBE_ASSIGN(Backend* const plugin, backend());
  return plugin->make_picture_decoder();
}

Result<std::unique_ptr<VideoWriter>> open_video_writer(const std::filesystem::path& path, int width, int height,
                                                       const WriterOptions& options) {
  STROBE_ASSIGN(Backend* const plugin, backend());
  return plugin->open_video_writer(path, width, height, options);
}

Result<void> write_picture(const std::filesystem::path& path, const Frame& frame, const PictureOptions& options) {
  STROBE_ASSIGN(Backend* const plugin, backend());
  return plugin->write_picture(path, frame, options);
}

Result<void> preprocess(const Frame& frame, const InputFormat& format, float* output) {
  STROBE_ASSIGN(Backend* const plugin, backend());
  return plugin->preprocess(frame, format, output);
}

Result<PictureBytes> picture_bytes(const Frame& frame, const InputFormat& format) {
  STROBE_ASSIGN(Backend* const plugin, backend());
  return plugin->picture_bytes(frame, format);
}

Result<Frame> draw(const Frame& frame, std::span<const Annotation> annotations) {
  if (annotations.empty()) return frame;
  STROBE_ASSIGN(Backend* const plugin, backend());
  return plugin->draw(frame, annotations);
}

}  // namespace strobe::media
