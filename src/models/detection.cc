#include "models/detection.h"

#include <algorithm>

namespace strobe::models {

float iou(const Detection& a, const Detection& b) {
  const float width = std::min(a.x + a.width, b.x + b.width) - std::max(a.x, b.x);
  const float height = std::min(a.y + a.height, b.y + b.height) - std::max(a.y, b.y);
  if (!(width > 0 && height > 0)) return 0;
  const float shared = width * height;
  const float all = a.width * a.height + b.width * b.height - shared;
  return all > 0 ? std::min(shared / all, 1.0F) : 0;
}

}  // namespace strobe::models
