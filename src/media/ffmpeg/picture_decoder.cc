// Pictures in memory: one decoder a format, kept from picture to picture.
#include <algorithm>
#include <array>
#include <string_view>

#include "media/ffmpeg/av.h"
#include "media/ffmpeg/sources.h"

namespace strobe::media {
namespace {

struct Format {
  std::string_view magic;
  AVCodecID codec;
};
constexpr std::array kFormats = {Format{"\xFF\xD8\xFF", AV_CODEC_ID_MJPEG}, Format{"\x89PNG", AV_CODEC_ID_PNG},
                                 Format{"RIFF", AV_CODEC_ID_WEBP}};

class MemoryDecoder : public PictureDecoder {
 public:
  Result<Frame> decode(std::span<const uint8_t> picture, int64_t index, double time_s) override {
    const std::string_view bytes(reinterpret_cast<const char*>(picture.data()), picture.size());
    const auto* format =
        std::find_if(kFormats.begin(), kFormats.end(), [&](const Format& one) { return bytes.starts_with(one.magic); });
    if (format == kFormats.end()) return unsupported("not a JPEG, PNG or WebP picture");
    AVCodecContextPtr& decoder = decoders_[static_cast<size_t>(format - kFormats.begin())];
    if (!decoder) {
      const AVCodec* codec = avcodec_find_decoder(format->codec);
      if (codec == nullptr) return unsupported("FFmpeg was built without a decoder for this picture");
      decoder.reset(avcodec_alloc_context3(codec));
      decoder->thread_count = 1;
      if (const int code = avcodec_open2(decoder.get(), codec, nullptr); code < 0)
        return engine_error("a picture's decoder does not open: " + error_text(code));
    }
    forget_log();
    // The decoder reads past the end, into bytes that the packet adds.
    av_packet_unref(packet_.get());
    if (picture.size() > kLargest) return bad_data("a picture of more than 1 GiB");
    if (const int code = av_new_packet(packet_.get(), static_cast<int>(picture.size())); code < 0)
      return engine_error(error_text(code));
    std::copy(picture.begin(), picture.end(), packet_->data);
    AVFramePtr pixels(av_frame_alloc());
    int code = avcodec_send_packet(decoder.get(), packet_.get());
    if (code >= 0) code = avcodec_receive_frame(decoder.get(), pixels.get());
    if (code < 0) {
      decoder.reset();
      return bad_data("not a whole picture: " + error_text(code));
    }
    return make_frame(std::move(pixels), index, time_s);
  }

 private:
  static constexpr size_t kLargest = size_t{1} << 30;
  std::array<AVCodecContextPtr, kFormats.size()> decoders_;
  AVPacketPtr packet_{av_packet_alloc()};
};

}  // namespace

Result<std::unique_ptr<PictureDecoder>> open_picture_decoder() {
  return std::unique_ptr<PictureDecoder>(std::make_unique<MemoryDecoder>());
}

}  // namespace strobe::media
