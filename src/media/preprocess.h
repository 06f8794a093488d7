// From a decoded picture straight to a network's input: resize, colour conversion, normalisation and planar layout in
// one pass over the network's pixels; the full-size RGB picture is never made.
#pragma once

#include <cstdint>

#include "media/frame.h"
#include "strobe/base/picture_sampling.h"
#include "strobe/base/result.h"

namespace strobe::media {

struct InputFormat {
  int width = 0, height = 0;  // of the network's input
  bool letterbox = false;     // keep the aspect ratio and pad with grey (0.5 of full scale); else stretch
  bool bgr = false;
  float scale = 1.0F / 255;
  float mean[3] = {0, 0, 0};
  float deviation[3] = {1, 1, 1};
  bool operator==(const InputFormat&) const = default;
};

// Where the picture lies inside the network's input, in its pixels; maps boxes back to the source.
struct Placement {
  float x = 0, y = 0, width = 0, height = 0;
};
Placement place(int source_width, int source_height, const InputFormat& format);

// Fills output with 3 x height x width float32 (channel, row, column). Bilinear with half-pixel centres and no
// antialiasing, as cv::resize(INTER_LINEAR) does, so that networks see what they were validated with; chroma is sampled
// bilinearly at its own positions. Colour matrix and range are the frame's own; where it says none, BT.601 limited (as
// swscale assumes). Errors: kUnsupported (pixel format).
Result<void> preprocess(const Frame& frame, const InputFormat& format, float* output);

// The picture's bytes, and what preprocess() does with them as numbers, for somebody who does it elsewhere. Pictures
// alike in a row have the same PictureSampling. Errors: kUnsupported (pixel format).
Result<PictureBytes> picture_bytes(const Frame& frame, const InputFormat& format);

}  // namespace strobe::media
