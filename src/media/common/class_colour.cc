#include <algorithm>
#include <cmath>

#include "media/draw.h"

namespace strobe::media {

// Hues a golden angle apart, so that neighbouring ids differ most; saturation and lightness alternate slowly.
uint32_t class_colour(int class_id) {
  const auto id = static_cast<uint32_t>(class_id);
  const double hue = std::fmod(0.58 + 0.61803398875 * id, 1.0) * 6;
  const double value = (id / 7) % 2 == 0 ? 1.0 : 0.85;
  const double saturation = (id / 14) % 2 == 0 ? 0.80 : 0.55;
  const auto channel = [&](double offset) {
    const double k = std::fmod(offset + hue, 6.0);
    const double light = value - value * saturation * std::max(0.0, std::min({k, 4 - k, 1.0}));
    return static_cast<uint32_t>(std::lround(light * 255));
  };
  return channel(5) << 16 | channel(3) << 8 | channel(1);
}

}  // namespace strobe::media
