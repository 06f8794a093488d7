#include "report/text_width.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

namespace strobe::report {

namespace {

struct CodePoint {
  uint32_t value = 0;
  size_t length = 1;
  bool valid = false;
};

// Decodes the first character; overlong forms, surrogates and values past U+10FFFF are invalid, as RFC 3629 says.
CodePoint decode(std::string_view text) {
  const auto lead = static_cast<uint8_t>(text[0]);
  if (lead < 0x80) return {lead, 1, true};
  const size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || text.size() < length) return {};
  uint32_t value = lead & (0xFFU >> (length + 1));
  for (size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xC0) != 0x80) return {};
    value = value << 6 | (byte & 0x3F);
  }
  constexpr std::array<uint32_t, 5> kSmallest = {0, 0, 0x80, 0x800, 0x10000};
  if (value < kSmallest[length] || value > 0x10FFFF || (value >= 0xD800 && value <= 0xDFFF)) return {};
  return {value, length, true};
}

struct Interval {
  uint32_t first, last;
};

bool contains(const Interval* begin, const Interval* end, uint32_t value) {
  const auto* after = std::upper_bound(begin, end, value, [](uint32_t v, const Interval& i) { return v < i.first; });
  return after != begin && value <= std::prev(after)->last;
}

// Blocks of combining marks and invisible characters (Unicode 15, categories Mn, Me and Cf in common use).
constexpr Interval kZeroWidth[] = {
    {0x0300, 0x036F}, {0x0483, 0x0489}, {0x0591, 0x05BD},   {0x0610, 0x061A},  {0x064B, 0x065F}, {0x06D6, 0x06DC},
    {0x093C, 0x093C}, {0x0941, 0x0948}, {0x0E31, 0x0E31},   {0x0E34, 0x0E3A},  {0x0E47, 0x0E4E}, {0x1AB0, 0x1AFF},
    {0x1DC0, 0x1DFF}, {0x200B, 0x200F}, {0x202A, 0x202E},   {0x2060, 0x2064},  {0x20D0, 0x20F0}, {0xFE00, 0xFE0F},
    {0xFE20, 0xFE2F}, {0xFEFF, 0xFEFF}, {0xE0001, 0xE007F}, {0xE0100, 0xE01EF}};
// Unicode 15's East_Asian_Width W and F, merged into blocks.
constexpr Interval kWide[] = {
    {0x1100, 0x115F},   {0x231A, 0x231B},   {0x2329, 0x232A},   {0x23E9, 0x23EC},   {0x25FD, 0x25FE},
    {0x2614, 0x2615},   {0x2648, 0x2653},   {0x26A1, 0x26A1},   {0x2705, 0x2705},   {0x270A, 0x270B},
    {0x274C, 0x274C},   {0x2753, 0x2755},   {0x2795, 0x2797},   {0x2E80, 0x303E},   {0x3041, 0x33FF},
    {0x3400, 0x4DBF},   {0x4E00, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},   {0xF900, 0xFAFF},
    {0xFE10, 0xFE19},   {0xFE30, 0xFE6B},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},   {0x16FE0, 0x18CFF},
    {0x1B000, 0x1B2FF}, {0x1F004, 0x1F004}, {0x1F0CF, 0x1F0CF}, {0x1F18E, 0x1F18E}, {0x1F191, 0x1F19A},
    {0x1F200, 0x1F320}, {0x1F32D, 0x1F393}, {0x1F3A0, 0x1F3CA}, {0x1F3E0, 0x1F64F}, {0x1F680, 0x1F6C5},
    {0x1F6D0, 0x1F6D7}, {0x1F7E0, 0x1F7EB}, {0x1F90C, 0x1F9FF}, {0x1FA70, 0x1FAFF}, {0x20000, 0x3FFFD}};

bool is_control(uint32_t value) {
  return value < 0x20 || (value >= 0x7F && value < 0xA0) || value == 0x2028 || value == 0x2029;
}

}  // namespace

size_t display_width(std::string_view text) {
  size_t width = 0;
  while (!text.empty()) {
    const CodePoint point = decode(text);
    if (point.valid && contains(std::begin(kZeroWidth), std::end(kZeroWidth), point.value)) {
      // nothing
    } else if (point.valid && contains(std::begin(kWide), std::end(kWide), point.value)) {
      width += 2;
    } else {
      width += 1;
    }
    text.remove_prefix(point.length);
  }
  return width;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const CodePoint point = decode(text);
    if (!point.valid) {
      out += "\xEF\xBF\xBD";
    } else if (point.value == '\n' || point.value == '\r' || point.value == '\t') {
      out += ' ';
    } else if (is_control(point.value)) {
      out += '?';
    } else {
      out += text.substr(0, point.length);
    }
    text.remove_prefix(point.length);
  }
  return out;
}

}  // namespace strobe::report
