#include "media/common/synthetic.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace strobe::media {
namespace {

constexpr std::string_view kScheme = "synthetic://";
constexpr int kLargestSide = 16384;
constexpr double kHighestFps = 10000;

}  // namespace

Result<SourceInfo> parse_synthetic(const std::string& input) {
  const auto wrong = [&](const char* what) {
    return usage_error(input + ": " + what + "; expected synthetic://WIDTHxHEIGHT[@FPS][/FRAMES]");
  };
  if (!input.starts_with(kScheme)) return wrong("no synthetic source");
  std::string rest = input.substr(kScheme.size());
  SourceInfo info;
  info.fps = 30;
  info.frames = 300;
  info.codec = "rawvideo";
  info.pixel_format = "rgb24";
  info.kind = "synthetic";
  // Numbers may be followed by nothing but what the form says.
  const auto cut = [&rest](char mark) {
    const size_t at = rest.rfind(mark);
    std::string tail = at == std::string::npos ? std::string() : rest.substr(at + 1);
    if (at != std::string::npos) rest.resize(at);
    return std::pair(at != std::string::npos, std::move(tail));
  };
  char beyond = 0;
  long long frames = 0;
  if (const auto [given, text] = cut('/'); given) {
    if (std::sscanf(text.c_str(), "%lld%c", &frames, &beyond) != 1 || frames < 1) return wrong("no number of frames");
    info.frames = frames;
  }
  if (const auto [given, text] = cut('@'); given) {
    if (std::sscanf(text.c_str(), "%lf%c", &info.fps, &beyond) != 1 || !(info.fps > 0 && info.fps <= kHighestFps))
      return wrong("no frame rate of 0 to 10000");
  }
  if (std::sscanf(rest.c_str(), "%dx%d%c", &info.width, &info.height, &beyond) != 2 ||
      std::min(info.width, info.height) < 1 || std::max(info.width, info.height) > kLargestSide)
    return wrong("no size of 1x1 to 16384x16384");
  return info;
}

void paint_synthetic(int64_t index, int width, int height, uint8_t* rgb, size_t stride) {
  const int side = std::max(1, std::min(width, height) / 4);
  const auto left = static_cast<int>(index % std::max(1, width - side + 1));
  const auto top = static_cast<int>(index % std::max(1, height - side + 1));
  const auto drift = static_cast<uint64_t>(index);
  for (int y = 0; y < height; ++y) {
    uint8_t* pixel = rgb + static_cast<size_t>(y) * stride;
    const auto green = static_cast<uint8_t>(y + 2 * static_cast<int>(drift & 127));
    const bool inside = y >= top && y < top + side;
    for (int x = 0; x < width; ++x, pixel += 3) {
      const bool square = inside && x >= left && x < left + side;
      pixel[0] = square ? 255 : static_cast<uint8_t>(static_cast<uint64_t>(x) + drift);
      pixel[1] = square ? 255 : green;
      pixel[2] = square ? 255 : static_cast<uint8_t>((x ^ y) & 0xff);
    }
  }
}

}  // namespace strobe::media
