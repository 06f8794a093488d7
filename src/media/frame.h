// Frame: one decoded picture, shared by reference between stages. Pixels stay in the decoder's own (pooled) buffer and
// format; a stage that changes pixels takes a private copy first (draw.h), every other one only reads.
#pragma once

#include <cstdint>
#include <memory>

struct AVFrame;

namespace strobe::media {

struct AVFrameDeleter {
  void operator()(AVFrame* frame) const;
};
using AVFramePtr = std::unique_ptr<AVFrame, AVFrameDeleter>;

struct Frame {
  int64_t index = 0;  // 0, 1, 2, ... in the order in which the source gave them, dropped ones counted
  double time_s = 0;  // presentation time since the first frame; of a live source: since the first arrival
  int width = 0;
  int height = 0;
  std::shared_ptr<const AVFrame> picture;
};

}  // namespace strobe::media
