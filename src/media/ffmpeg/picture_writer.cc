#include <algorithm>

#include "base/file.h"
#include "media/ffmpeg/av.h"
#include "media/ffmpeg/convert.h"
#include "media/ffmpeg/video_writer.h"

namespace strobe::media {

namespace {

// What JPEG and PNG can say without loss, as far as the source has it.
AVPixelFormat picture_format(AVCodecID codec, const AVFrame& picture) {
  const auto format = static_cast<AVPixelFormat>(picture.format);
  if (codec == AV_CODEC_ID_PNG) {
    const bool as_is = format == AV_PIX_FMT_GRAY8 || format == AV_PIX_FMT_RGBA;
    return as_is ? format : AV_PIX_FMT_RGB24;
  }
  const AVPixFmtDescriptor* description = av_pix_fmt_desc_get(format);
  const bool full_chroma = description->log2_chroma_w == 0 && description->log2_chroma_h == 0;
  if (full_chroma) return AV_PIX_FMT_YUVJ444P;
  return description->log2_chroma_h == 0 ? AV_PIX_FMT_YUVJ422P : AV_PIX_FMT_YUVJ420P;
}

struct Size {
  int width, height;
};

Size scaled_size(const AVFrame& picture, const PictureOptions& options) {
  if (options.width <= 0 && options.height <= 0) return {picture.width, picture.height};
  const auto other = [](int side, int of, int wanted) {
    return std::max(1, static_cast<int>(av_rescale(side, wanted, of)));
  };
  return {options.width > 0 ? options.width : other(picture.width, picture.height, options.height),
          options.height > 0 ? options.height : other(picture.height, picture.width, options.width)};
}

// The quantizer of FFmpeg's JPEG encoder: 2 is its best, 31 its worst.
int quantizer(int quality) {
  return 31 - static_cast<int>(av_rescale(std::clamp(quality, 1, 100) - 1, 29, 99));
}

}  // namespace

Result<void> encode_picture(const std::filesystem::path& path, const Frame& frame, const PictureOptions& options) {
  std::string extension = path.extension().string();
  std::transform(extension.begin(), extension.end(), extension.begin(),
                 [](unsigned char c) { return std::tolower(c); });
  const bool is_jpeg = extension == ".jpg" || extension == ".jpeg";
  if (!is_jpeg && extension != ".png") {
    return unsupported(path.string() + ": pictures are written as .jpg or .png");
  }
  if (!frame.picture) return internal_error("a frame without a picture was to be written");
  const AVCodecID id = is_jpeg ? AV_CODEC_ID_MJPEG : AV_CODEC_ID_PNG;
  const AVCodec* codec = avcodec_find_encoder(id);
  if (codec == nullptr) return unsupported("this FFmpeg cannot write " + extension);

  AVFramePtr picture(av_frame_clone(frame.picture.get()));
  const AVPixelFormat format = picture_format(id, *frame.picture);
  if (const Size size = scaled_size(*picture, options);
      size.width != picture->width || size.height != picture->height) {
    STROBE_ASSIGN(picture, scale(*frame.picture, format, true, size.width, size.height));
  } else if (picture->format != format) {
    STROBE_ASSIGN(picture, convert(*frame.picture, format, true));
  }
  AVCodecContextPtr encoder(avcodec_alloc_context3(codec));
  encoder->width = picture->width;
  encoder->height = picture->height;
  encoder->pix_fmt = format;
  encoder->time_base = {1, 1};
  encoder->color_range = AVCOL_RANGE_JPEG;
  encoder->flags |= AV_CODEC_FLAG_QSCALE;
  encoder->global_quality = quantizer(options.quality) * FF_QP2LAMBDA;
  encoder->thread_count = 1;
  picture->quality = encoder->global_quality;
  picture->pts = 0;
  picture->pict_type = AV_PICTURE_TYPE_NONE;
  AVPacketPtr packet(av_packet_alloc());
  forget_log();
  int code = avcodec_open2(encoder.get(), codec, nullptr);
  if (code >= 0) code = avcodec_send_frame(encoder.get(), picture.get());
  if (code >= 0) code = avcodec_send_frame(encoder.get(), nullptr);
  if (code >= 0) code = avcodec_receive_packet(encoder.get(), packet.get());
  if (code < 0) return engine_error(path.string() + ": the picture cannot be encoded: " + error_text(code));
  return write_file(path, {reinterpret_cast<const char*>(packet->data), static_cast<size_t>(packet->size)});
}

}  // namespace strobe::media
