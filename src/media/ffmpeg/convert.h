// Conversion between pixel formats and sizes, by swscale, into pooled buffers.
#pragma once

#include "media/ffmpeg/av.h"
#include "strobe/base/result.h"

namespace strobe::media {

// What a picture's YUV numbers mean; what it leaves open is BT.601, and limited range unless its format says full.
AVColorSpace matrix_of(const AVFrame& picture);
bool is_full_range(const AVFrame& picture);

// Whether every component is one whole byte somewhere in a plane: what sampling and drawing work on as it is.
bool has_plain_bytes(AVPixelFormat format);

// Weights of red and blue in luma.
struct LumaWeights {
  double red = 0.299, blue = 0.114;  // ITU-R BT.601
};
LumaWeights luma_weights(AVColorSpace matrix);

// A picture of this size with undefined contents, in pooled memory. Null when there is no memory.
AVFramePtr new_picture(AVPixelFormat format, int width, int height);

// The picture in another pixel format (and, where full_range is given, range); colour metadata is carried over.
// Errors: kUnsupported (format), kEngine.
Result<AVFramePtr> convert(const AVFrame& picture, AVPixelFormat format, bool full_range);

// The same, stretched to another size.
Result<AVFramePtr> scale(const AVFrame& picture, AVPixelFormat format, bool full_range, int width, int height);

// The same in another size: as large as it fits without distortion, in the middle of black. format: planar or RGB.
Result<AVFramePtr> fit(const AVFrame& picture, AVPixelFormat format, bool full_range, int width, int height);

}  // namespace strobe::media
