#include "models/darknet_cfg.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

namespace strobe::models {
namespace {

// Darknet drops white space inside lines too. '#' and ';' start comments wherever they stand.
std::string squeeze(std::string_view line) {
  std::string text;
  for (const char c : line.substr(0, line.find_first_of("#;"))) {
    if (c != ' ' && c != '\t' && c != '\r' && c != '\f') text += c;
  }
  return text;
}

std::string quoted(std::string_view text) {
  return fmt::format("'{}'", clipped(text));
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte == 0x7f || (byte < 0x20 && c != '\t' && c != '\n' && c != '\r' && c != '\f');
}

Error line_error(int line, const std::string& message) {
  return bad_data(fmt::format("line {}: {}", line, message));
}

std::optional<int64_t> to_integer(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<float> to_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  float value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// A comma at the end is common in the wild and means nothing.
std::vector<std::string_view> split(std::string_view text) {
  if (text.ends_with(',')) text.remove_suffix(1);
  std::vector<std::string_view> parts;
  for (size_t begin = 0;;) {
    const size_t comma = text.find(',', begin);
    parts.push_back(text.substr(begin, comma - begin));
    if (comma == std::string_view::npos) return parts;
    begin = comma + 1;
  }
}

}  // namespace

std::string clipped(std::string_view text) {
  constexpr size_t kLongest = 40;
  std::string shown(text.substr(0, kLongest));
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) >= 0x80; }, '?');
  return text.size() > kLongest ? shown + "..." : shown;
}

const DarknetOption* DarknetSection::find(std::string_view key) const {
  const auto it = std::find_if(options_.begin(), options_.end(), [&](const auto& option) { return option.key == key; });
  return it == options_.end() ? nullptr : &*it;
}

std::string DarknetSection::place(std::string_view key) const {
  const DarknetOption* option = find(key);
  return fmt::format("line {}, [{}]", option ? option->line : line_, type_);
}

Error DarknetSection::error(std::string_view key, std::string message) const {
  return bad_data(std::move(message)).at(place(key));
}

Error DarknetSection::unsupported_error(std::string_view key, std::string message) const {
  return unsupported(std::move(message)).at(place(key));
}

Error DarknetSection::missing(std::string_view key, std::string_view expected) const {
  return error(key, fmt::format("{}= is missing, expected {}", key, expected));
}

Result<int64_t> DarknetSection::integer(std::string_view key) const {
  if (!has(key)) return missing(key, "a whole number");
  return integer(key, 0);
}

Result<int64_t> DarknetSection::integer(std::string_view key, int64_t fallback) const {
  const DarknetOption* option = find(key);
  if (!option) return fallback;
  if (const auto value = to_integer(option->value)) return *value;
  return error(key, fmt::format("{}= expects a whole number, found {}", key, quoted(option->value)));
}

Result<float> DarknetSection::number(std::string_view key, float fallback) const {
  const DarknetOption* option = find(key);
  if (!option) return fallback;
  if (const auto value = to_number(option->value)) return *value;
  return error(key, fmt::format("{}= expects a number, found {}", key, quoted(option->value)));
}

Result<std::vector<int64_t>> DarknetSection::integers(std::string_view key) const {
  const DarknetOption* option = find(key);
  if (!option) return missing(key, "whole numbers with commas between them");
  std::vector<int64_t> values;
  for (const std::string_view part : split(option->value)) {
    const auto value = to_integer(part);
    if (!value) {
      return error(key, fmt::format("{}= expects whole numbers with commas between them, found {}", key, quoted(part)));
    }
    values.push_back(*value);
  }
  return values;
}

Result<std::vector<float>> DarknetSection::numbers(std::string_view key) const {
  const DarknetOption* option = find(key);
  if (!option) return missing(key, "numbers with commas between them");
  std::vector<float> values;
  for (const std::string_view part : split(option->value)) {
    const auto value = to_number(part);
    if (!value) {
      return error(key, fmt::format("{}= expects numbers with commas between them, found {}", key, quoted(part)));
    }
    values.push_back(*value);
  }
  return values;
}

std::string DarknetSection::text(std::string_view key, std::string_view fallback) const {
  const DarknetOption* option = find(key);
  return option ? option->value : std::string(fallback);
}

Result<std::vector<DarknetSection>> parse_darknet_text(std::string_view text) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::vector<DarknetSection> sections;
  int number = 0;
  while (!text.empty()) {
    ++number;
    const size_t newline = text.find('\n');
    const std::string_view raw = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (std::any_of(raw.begin(), raw.end(), is_control)) {
      return line_error(number, "binary data, expected the text of a Darknet configuration");
    }
    const std::string line = squeeze(raw);
    if (line.empty()) continue;
    const size_t equals = line.find('=');
    if (line.front() == '[') {
      if (line.size() < 3 || line.back() != ']') {
        return line_error(number, fmt::format("expected a section like [convolutional], found {}", quoted(line)));
      }
      sections.emplace_back(line.substr(1, line.size() - 2), number);
    } else if (equals == std::string::npos || equals == 0) {
      return line_error(number, fmt::format("expected [section] or key=value, found {}", quoted(line)));
    } else if (sections.empty()) {
      return line_error(number, fmt::format("expected [net] before {}", quoted(line)));
    } else {
      sections.back().add({line.substr(0, equals), line.substr(equals + 1), number});
    }
  }
  if (sections.empty()) return bad_data("no section in it, expected [net] and layers");
  return sections;
}

}  // namespace strobe::models
