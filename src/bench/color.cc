#include "bench/color.h"

#include <charconv>
#include <utility>

namespace strobe::bench {

uint32_t argb_of(std::string_view color) {
  static constexpr uint32_t kOpaque = 0xff000000, kBlue = 0x0000ff;
  static constexpr std::pair<std::string_view, uint32_t> kNames[] = {
      {"blue", kBlue},          {"green", 0x008000},   {"red", 0xff0000},       {"yellow", 0xffff00},
      {"orange", 0xffa500},     {"purple", 0x800080},  {"black", 0x000000},     {"white", 0xffffff},
      {"cyan", 0x00ffff},       {"magenta", 0xff00ff}, {"gray", 0x808080},      {"grey", 0x808080},
      {"rapids", 0x7400ff},     {"pink", 0xffc0cb},    {"brown", 0xa52a2a},     {"lime", 0x00ff00},
      {"navy", 0x000080},       {"teal", 0x008080},    {"olive", 0x808000},     {"maroon", 0x800000},
      {"darkgreen", 0x006400},  {"gold", 0xffd700},    {"salmon", 0xfa8072},    {"violet", 0xee82ee},
      {"turquoise", 0x40e0d0},  {"indigo", 0x4b0082},  {"lightblue", 0xadd8e6}, {"lightgreen", 0x90ee90},
      {"darkorange", 0xff8c00}, {"crimson", 0xdc143c}, {"silver", 0xc0c0c0},    {"royalblue", 0x4169e1}};
  for (const auto& [name, rgb] : kNames)
    if (name == color) return kOpaque | rgb;
  constexpr size_t kHexDigits = 6;
  if (color.size() == kHexDigits + 1 && color[0] == '#') {
    uint32_t rgb = 0;
    const auto [end, failed] = std::from_chars(color.data() + 1, color.data() + color.size(), rgb, 16);
    if (failed == std::errc{} && end == color.data() + color.size()) return kOpaque | rgb;
  }
  return kOpaque | kBlue;
}

}  // namespace strobe::bench
