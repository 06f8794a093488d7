#include "media/common/synthetic.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <string_view>

namespace strobe::media {
namespace {

constexpr std::string_view kScheme = "synthetic://";
constexpr int kLargestSide = 16000;  // FFmpeg makes no larger picture
constexpr int64_t kMostFrames = 1'000'000'000'000;
constexpr double kLowestFps = 0.001, kHighestFps = 10000;

// The whole text, as digits (and a point) alone.
template <typename Number>
bool is_number(std::string_view text, Number least, Number most, Number& number) {
  if (text.empty() || std::isdigit(static_cast<unsigned char>(text.front())) == 0) return false;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size() && number >= least && number <= most;
}

}  // namespace

Result<SourceInfo> parse_synthetic(const std::string& input) {
  const auto wrong = [&](const char* what) {
    return usage_error(input + ": " + what + "; expected synthetic://WIDTHxHEIGHT[@FPS][/FRAMES]");
  };
  const auto same = [](char a, char b) { return std::tolower(static_cast<unsigned char>(a)) == b; };
  if (input.size() < kScheme.size() ||
      !std::equal(kScheme.begin(), kScheme.end(), input.begin(), [&same](char b, char a) { return same(a, b); }))
    return wrong("no synthetic source");
  std::string rest = input.substr(kScheme.size());
  SourceInfo info;
  info.fps = 30;
  info.frames = 300;
  info.codec = "rawvideo";
  info.pixel_format = "rgb24";
  info.kind = "synthetic";
  const auto cut = [&rest](char mark) {
    const size_t at = rest.rfind(mark);
    std::string tail = at == std::string::npos ? std::string() : rest.substr(at + 1);
    if (at != std::string::npos) rest.resize(at);
    return std::pair(at != std::string::npos, std::move(tail));
  };
  if (const auto [given, text] = cut('/'); given && !is_number(text, int64_t{1}, kMostFrames, info.frames))
    return wrong("no number of frames");
  if (const auto [given, text] = cut('@'); given && !is_number(text, kLowestFps, kHighestFps, info.fps))
    return wrong("no frame rate of 0.001 to 10000");
  const auto [given, height] = cut('x');
  if (!given || !is_number(rest, 1, kLargestSide, info.width) || !is_number(height, 1, kLargestSide, info.height))
    return wrong("no size of 1x1 to 16000x16000");
  return info;
}

Result<std::optional<Frame>> SyntheticSource::next() {
  if (index_ == info_.frames || (stop_ != nullptr && stop_->load())) return std::optional<Frame>();
  STROBE_ASSIGN(Frame frame, painted(index_, static_cast<double>(index_) / info_.fps));
  ++index_;
  return std::optional(std::move(frame));
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
