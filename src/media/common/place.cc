#include <algorithm>

#include "media/preprocess.h"

namespace strobe::media {

// Whole pixels, rounded down and centred, as Darknet letterboxes: its networks were trained on exactly this.
Placement place(int source_width, int source_height, const InputFormat& format) {
  int width = format.width;
  int height = format.height;
  if (format.letterbox) {
    const int64_t w = source_width;
    const int64_t h = source_height;
    if (format.width * h < format.height * w) {
      height = std::max(1, static_cast<int>(h * format.width / w));
    } else {
      width = std::max(1, static_cast<int>(w * format.height / h));
    }
  }
  const int x = (format.width - width) / 2;
  const int y = (format.height - height) / 2;
  return {static_cast<float>(x), static_cast<float>(y), static_cast<float>(width), static_cast<float>(height)};
}

}  // namespace strobe::media
