// Decimal text to scaled integers, exactly: "1712195495519689.047" microseconds do not fit a double to the nanosecond.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace strobe::importers {

// text * 10^power, rounded to the nearest integer (halves away from zero). Takes a sign, a fraction and an exponent.
// Nothing if the text is no such number or |result| is 2^61 or more (so that sums and differences of two results do
// not overflow).
std::optional<int64_t> scaled_decimal(std::string_view text, int power);

}  // namespace strobe::importers
