// Names and numbers as text. Names come from anywhere; what leaves here is valid UTF-8.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace strobe::exporters {

// Appends text with each byte that is no part of valid UTF-8 replaced by U+FFFD.
void append_utf8(std::string& out, std::string_view text);
// Appends "text" with its quotes, escaped for JSON.
void append_json(std::string& out, std::string_view text);
void append(std::string& out, int64_t number);
// The shortest text that reads as the same double, always with a point or an exponent; "nan", "inf", "-inf".
void append(std::string& out, double number);
// Nanoseconds as microseconds with three decimals: "-0.001", "12.345".
void append_microseconds(std::string& out, int64_t nanoseconds);

}  // namespace strobe::exporters
