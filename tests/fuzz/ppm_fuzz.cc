// Links: strobe_media_common
// Bytes as a PPM picture: what is read is written and read again.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "media/common/ppm.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto picture = strobe::media::parse_ppm({reinterpret_cast<const char*>(data), size});
  if (!picture) return 0;
  if (picture->rgb.size() != picture->stride() * static_cast<size_t>(picture->height)) std::abort();
  const auto again = strobe::media::parse_ppm(strobe::media::ppm_bytes(*picture));
  if (!again || again->rgb != picture->rgb) std::abort();
  return 0;
}
