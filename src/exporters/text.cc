#include "exporters/text.h"

#include <charconv>
#include <cmath>

namespace strobe::exporters {

namespace {

// Length of the valid UTF-8 sequence at the start of text, which is not empty; 0: there is none.
size_t sequence_length(std::string_view text) {
  const auto byte = [&text](size_t i) { return static_cast<unsigned char>(text[i]); };
  const auto follows = [&](size_t i, unsigned least, unsigned most) {
    return i < text.size() && byte(i) >= least && byte(i) <= most;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xC2 && first <= 0xDF) return follows(1, 0x80, 0xBF) ? 2 : 0;
  if (first >= 0xE0 && first <= 0xEF) {
    // No overlong forms, no surrogates.
    const unsigned least = first == 0xE0 ? 0xA0 : 0x80;
    const unsigned most = first == 0xED ? 0x9F : 0xBF;
    return follows(1, least, most) && follows(2, 0x80, 0xBF) ? 3 : 0;
  }
  if (first >= 0xF0 && first <= 0xF4) {
    const unsigned least = first == 0xF0 ? 0x90 : 0x80;
    const unsigned most = first == 0xF4 ? 0x8F : 0xBF;
    return follows(1, least, most) && follows(2, 0x80, 0xBF) && follows(3, 0x80, 0xBF) ? 4 : 0;
  }
  return 0;
}

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

bool is_plain(char c) {
  return static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F && c != '"' && c != '\\';
}

void append_json_escape(std::string& out, char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\t':
      out += "\\t";
      return;
    case '\r':
      out += "\\r";
      return;
    default:
      out += "\\u00";
      out += kDigits[static_cast<unsigned char>(c) >> 4];
      out += kDigits[static_cast<unsigned char>(c) & 15];
  }
}

}  // namespace

void append_utf8(std::string& out, std::string_view text) {
  while (!text.empty()) {
    size_t valid = 0;
    while (valid < text.size()) {
      const size_t length = sequence_length(text.substr(valid));
      if (length == 0) break;
      valid += length;
    }
    out.append(text.substr(0, valid));
    text.remove_prefix(valid);
    if (text.empty()) return;
    out.append(kReplacement);
    text.remove_prefix(1);
  }
}

void append_json(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    size_t plain = 0;
    while (plain < text.size() && is_plain(text[plain])) ++plain;
    out.append(text.substr(0, plain));
    text.remove_prefix(plain);
    if (text.empty()) break;
    const size_t length = sequence_length(text);
    if (length == 1) {
      append_json_escape(out, text[0]);
    } else {
      out.append(length == 0 ? kReplacement : text.substr(0, length));
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
}

void append(std::string& out, int64_t number) {
  char digits[24];
  const auto result = std::to_chars(digits, digits + sizeof digits, number);
  out.append(digits, result.ptr);
}

void append(std::string& out, double number) {
  if (std::isnan(number)) {
    out += "nan";
    return;
  }
  char digits[40];
  const auto result = std::to_chars(digits, digits + sizeof digits, number);
  const std::string_view text(digits, static_cast<size_t>(result.ptr - digits));
  out.append(text);
  if (text.find_first_of(".ein") == std::string_view::npos) out += ".0";
}

void append_microseconds(std::string& out, int64_t nanoseconds) {
  uint64_t magnitude = static_cast<uint64_t>(nanoseconds);
  if (nanoseconds < 0) {
    out += '-';
    magnitude = 0 - magnitude;
  }
  append(out, static_cast<int64_t>(magnitude / 1000));
  const auto fraction = static_cast<unsigned>(magnitude % 1000);
  const char digits[4] = {'.', static_cast<char>('0' + fraction / 100), static_cast<char>('0' + fraction / 10 % 10),
                          static_cast<char>('0' + fraction % 10)};
  out.append(digits, sizeof digits);
}

}  // namespace strobe::exporters
