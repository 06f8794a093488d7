// 8-bit RGB pictures, and binary PPM files ("P6") of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::media {

struct RgbPicture {
  int width = 0, height = 0;
  std::vector<uint8_t> rgb;  // rows without gaps
  size_t stride() const { return 3 * static_cast<size_t>(width); }
};

// The first picture of a file's bytes. Errors: kBadData, kUnsupported (16 bits a value).
Result<RgbPicture> parse_ppm(std::string_view bytes);
std::string ppm_bytes(const RgbPicture& picture);

}  // namespace strobe::media
