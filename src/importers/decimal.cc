#include "importers/decimal.h"

#include <algorithm>

namespace strobe::importers {

std::optional<int64_t> scaled_decimal(std::string_view text, int power) {
  constexpr uint64_t kLimit = uint64_t{1} << 61;
  const char* at = text.data();
  const char* const end = at + text.size();
  const bool negative = at != end && *at == '-';
  if (at != end && (*at == '-' || *at == '+')) ++at;
  const auto is_digit = [&at, end] { return at != end && *at >= '0' && *at <= '9'; };

  uint64_t value = 0;
  int64_t exponent = power;
  bool any = false, overflow = false;
  const auto add = [&](bool fraction) {
    any = true;
    if (value < kLimit / 10) {
      value = value * 10 + static_cast<uint64_t>(*at - '0');
      exponent -= fraction ? 1 : 0;
    } else if (!fraction) {
      // Further digits of a whole number: only an exponent below zero could bring it back.
      exponent += 1;
    }
    ++at;
  };
  while (is_digit()) add(false);
  if (at != end && *at == '.') {
    ++at;
    while (is_digit()) add(true);
  }
  if (!any) return std::nullopt;
  if (at != end && (*at == 'e' || *at == 'E')) {
    ++at;
    const bool below = at != end && *at == '-';
    if (at != end && (*at == '-' || *at == '+')) ++at;
    if (!is_digit()) return std::nullopt;
    int64_t shift = 0;
    for (; is_digit(); ++at) shift = std::min<int64_t>(shift * 10 + (*at - '0'), 100000);
    exponent += below ? -shift : shift;
  }
  if (at != end) return std::nullopt;

  for (; exponent > 0 && value != 0; --exponent) {
    overflow |= value >= kLimit / 10;
    if (overflow) return std::nullopt;
    value *= 10;
  }
  uint64_t last = 0;
  for (; exponent < 0; ++exponent) {
    last = value % 10;
    value /= 10;
    if (value == 0 && exponent < -1) {
      last = 0;
      break;
    }
  }
  value += last >= 5 ? 1 : 0;
  if (value >= kLimit) return std::nullopt;
  return negative ? -static_cast<int64_t>(value) : static_cast<int64_t>(value);
}

}  // namespace strobe::importers
