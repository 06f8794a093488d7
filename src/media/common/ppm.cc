#include "media/common/ppm.h"

#include <algorithm>
#include <cctype>

namespace strobe::media {

Result<RgbPicture> parse_ppm(std::string_view bytes) {
  constexpr int64_t kLargestSide = 32768;
  if (!bytes.starts_with("P6")) return bad_data("no binary PPM picture: it does not begin with P6");
  size_t at = 2;
  const auto is_blank = [&] { return at < bytes.size() && std::isspace(static_cast<unsigned char>(bytes[at])) != 0; };
  // Width, height, largest value; between them blanks and comments up to the end of their line.
  int64_t numbers[3] = {};
  for (int64_t& number : numbers) {
    while (is_blank() || (at < bytes.size() && bytes[at] == '#'))
      at = bytes[at] == '#' ? std::min(bytes.find('\n', at), bytes.size()) : at + 1;
    const size_t begin = at;
    for (; at < bytes.size() && bytes[at] >= '0' && bytes[at] <= '9' && number <= kLargestSide; ++at)
      number = 10 * number + (bytes[at] - '0');
    if (at == begin) return bad_data("no PPM picture: its header breaks off");
  }
  const auto [width, height, largest] = numbers;
  if (width < 1 || height < 1 || width > kLargestSide || height > kLargestSide)
    return bad_data("a PPM picture whose size is not within 1x1 and 32768x32768");
  if (largest != 255) return unsupported("a PPM picture whose largest value is not 255");
  if (!is_blank()) return bad_data("no PPM picture: no blank ends its header");
  ++at;
  RgbPicture picture{static_cast<int>(width), static_cast<int>(height), {}};
  const size_t size = picture.stride() * static_cast<size_t>(height);
  if (bytes.size() - at < size) return bad_data("the PPM picture breaks off");
  const std::string_view pixels = bytes.substr(at, size);
  picture.rgb.assign(pixels.begin(), pixels.end());
  return picture;
}

std::string ppm_bytes(const RgbPicture& picture) {
  std::string bytes = "P6\n" + std::to_string(picture.width) + " " + std::to_string(picture.height) + "\n255\n";
  bytes.append(reinterpret_cast<const char*>(picture.rgb.data()), picture.rgb.size());
  return bytes;
}

}  // namespace strobe::media
