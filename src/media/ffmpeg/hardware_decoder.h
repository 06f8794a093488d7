// HardwareDecoder: a device that decodes instead of the processor ("cuda": NVIDIA's NVDEC; "vaapi" and what else
// FFmpeg has), and the way of its pictures into the host's memory, where the other stages work.
#pragma once

#include <memory>
#include <string>

#include "media/ffmpeg/av.h"
#include "strobe/base/result.h"

namespace strobe::media {

class HardwareDecoder {
 public:
  // name: FFmpeg's of the kind of device, and which one behind a colon: "cuda", "cuda:1", "vaapi:/dev/dri/renderD128".
  // Errors: kUsage (a name that FFmpeg does not have), kUnsupported (it does not decode this codec there, or there is
  // no such device).
  static Result<std::unique_ptr<HardwareDecoder>> open(const std::string& name, const AVCodec& codec);
  HardwareDecoder(const HardwareDecoder&) = delete;
  HardwareDecoder& operator=(const HardwareDecoder&) = delete;
  ~HardwareDecoder();

  // Before avcodec_open2(). This object must outlive the decoder.
  void serve(AVCodecContext& decoder);
  // Whether the device has refused the stream (its profile or size), so that nothing of it was decoded.
  bool refused() const { return refused_; }
  // A copy of a decoded picture in the host's memory (NV12, or P010 of more than 8 bits), with its stamps, cropped.
  // Errors: kEngine.
  Result<AVFramePtr> to_host(AVFramePtr picture) const;

 private:
  explicit HardwareDecoder(std::string name) : name_(std::move(name)) {}
  static AVPixelFormat choose(AVCodecContext* decoder, const AVPixelFormat* offered);

  std::string name_;
  AVBufferRef* device_ = nullptr;
  AVPixelFormat format_ = AV_PIX_FMT_NONE;
  bool refused_ = false;
};

}  // namespace strobe::media
