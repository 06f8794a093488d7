#include "media/ffmpeg/drawing.h"
namespace strobe::media {
Result<Frame> draw_annotations(const Frame& frame, std::span<const Annotation>) {
  return frame;
}
}  // namespace strobe::media
