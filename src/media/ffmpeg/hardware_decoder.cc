#include "media/ffmpeg/hardware_decoder.h"

extern "C" {
#include <libavutil/hwcontext.h>
}

#include <vector>

#include "media/ffmpeg/convert.h"

namespace strobe::media {
namespace {

std::string known_kinds() {
  std::string names;
  for (AVHWDeviceType type = AV_HWDEVICE_TYPE_NONE;
       (type = av_hwdevice_iterate_types(type)) != AV_HWDEVICE_TYPE_NONE;) {
    names += (names.empty() ? "" : ", ") + std::string(av_hwdevice_get_type_name(type));
  }
  return names.empty() ? "none" : names;
}

// The format of pictures on such a device, or none where the codec is not decoded there.
AVPixelFormat device_format(const AVCodec& codec, AVHWDeviceType type) {
  for (int i = 0;; ++i) {
    const AVCodecHWConfig* config = avcodec_get_hw_config(&codec, i);
    if (config == nullptr) return AV_PIX_FMT_NONE;
    const bool fits = config->device_type == type && (config->methods & AV_CODEC_HW_CONFIG_METHOD_HW_DEVICE_CTX) != 0;
    if (fits) return config->pix_fmt;
  }
}

}  // namespace

Result<std::unique_ptr<HardwareDecoder>> HardwareDecoder::open(const std::string& name, const AVCodec& codec) {
  const size_t colon = name.find(':');
  const std::string kind = name.substr(0, colon);
  const std::string number = colon == std::string::npos ? "" : name.substr(colon + 1);
  const AVHWDeviceType type = av_hwdevice_find_type_by_name(kind.c_str());
  if (type == AV_HWDEVICE_TYPE_NONE) {
    return usage_error("hwaccel '" + name + "': this FFmpeg has " + known_kinds());
  }
  std::unique_ptr<HardwareDecoder> opened(new HardwareDecoder(name));
  opened->format_ = device_format(codec, type);
  if (opened->format_ == AV_PIX_FMT_NONE) {
    return unsupported("hwaccel " + name + ": this FFmpeg does not decode " + codec.name + " there");
  }
  forget_log();
  const int code =
      av_hwdevice_ctx_create(&opened->device_, type, number.empty() ? nullptr : number.c_str(), nullptr, 0);
  if (code < 0) {
    // What FFmpeg logs says more than its code ("Operation not permitted" where there is no driver).
    return unsupported("hwaccel " + name +
                       ": no such device: " + (last_log_line().empty() ? error_text(code) : last_log_line()));
  }
  return opened;
}

HardwareDecoder::~HardwareDecoder() {
  av_buffer_unref(&device_);
}

void HardwareDecoder::serve(AVCodecContext& decoder) {
  decoder.hw_device_ctx = av_buffer_ref(device_);
  decoder.opaque = this;
  decoder.get_format = choose;
  decoder.thread_count = 1;  // the work is the device's; threads would only hold pictures back
}

AVPixelFormat HardwareDecoder::choose(AVCodecContext* decoder, const AVPixelFormat* offered) {
  auto& self = *static_cast<HardwareDecoder*>(decoder->opaque);
  for (; *offered != AV_PIX_FMT_NONE; ++offered) {
    if (*offered == self.format_) return *offered;
  }
  // Asked again without it, FFmpeg has tried it in vain. The processor in its place would be another measurement.
  self.refused_ = true;
  return AV_PIX_FMT_NONE;
}

Result<AVFramePtr> HardwareDecoder::to_host(AVFramePtr picture) const {
  if (picture->format != format_) return picture;
  const auto* frames = reinterpret_cast<const AVHWFramesContext*>(picture->hw_frames_ctx->data);
  AVFramePtr copy = new_picture(frames->sw_format, picture->width, picture->height);
  if (!copy) return engine_error("no memory for a picture from hwaccel " + name_);
  forget_log();
  int code = av_hwframe_transfer_data(copy.get(), picture.get(), 0);
  if (code >= 0) code = av_frame_copy_props(copy.get(), picture.get());
  if (code >= 0) code = av_frame_apply_cropping(copy.get(), AV_FRAME_CROP_UNALIGNED);
  if (code < 0) return engine_error("a picture could not be copied from hwaccel " + name_ + ": " + error_text(code));
  return copy;
}

}  // namespace strobe::media
