// Pictures made by rule, for machines without cameras, videos or FFmpeg: "synthetic://WIDTHxHEIGHT[@FPS][/FRAMES]".
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "media/source.h"
#include "strobe/base/result.h"

namespace strobe::media {

// "synthetic://640x480@30/300": size, frame rate (30) and how many (300). Errors: kUsage.
Result<SourceInfo> parse_synthetic(const std::string& input);

// Colours that drift and a white square that moves by a pixel a frame: 8-bit RGB, rows `stride` bytes apart. The same
// picture for the same index, everywhere.
void paint_synthetic(int64_t index, int width, int height, uint8_t* rgb, size_t stride);

// The frames of such a source, in pictures as a plugin has them.
class SyntheticSource : public Source {
 public:
  SyntheticSource(SourceInfo info, const std::atomic<bool>* stop) : info_(std::move(info)), stop_(stop) {}
  const SourceInfo& info() const override { return info_; }
  Result<std::optional<Frame>> next() override;

 protected:
  virtual Result<Frame> painted(int64_t index, double time_s) = 0;

 private:
  SourceInfo info_;
  const std::atomic<bool>* stop_;
  int64_t index_ = 0;
};

}  // namespace strobe::media
