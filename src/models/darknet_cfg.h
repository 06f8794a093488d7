// The text of a Darknet .cfg: sections of key=value lines, each with its line number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::models {

struct DarknetOption {
  std::string key, value;  // without white space
  int line = 0;
};

// One [section]. The readers name line, section and key when a value is not what it should be; of a key that stands
// twice the first counts, as in Darknet.
class DarknetSection {
 public:
  DarknetSection(std::string type, int line) : type_(std::move(type)), line_(line) {}

  const std::string& type() const { return type_; }
  int line() const { return line_; }
  void add(DarknetOption option) { options_.push_back(std::move(option)); }

  bool has(std::string_view key) const { return find(key) != nullptr; }
  Result<int64_t> integer(std::string_view key) const;  // must be there
  Result<int64_t> integer(std::string_view key, int64_t fallback) const;
  Result<float> number(std::string_view key, float fallback) const;
  Result<std::vector<int64_t>> integers(std::string_view key) const;  // comma-separated, at least one
  Result<std::vector<float>> numbers(std::string_view key) const;
  std::string text(std::string_view key, std::string_view fallback) const;

  // "line 12, [convolutional]: <message>"; the line is the key's where the section has it.
  Error error(std::string_view key, std::string message) const;
  Error unsupported_error(std::string_view key, std::string message) const;
  std::string place(std::string_view key = {}) const;

 private:
  const DarknetOption* find(std::string_view key) const;
  Error missing(std::string_view key, std::string_view expected) const;

  std::string type_;
  int line_;
  std::vector<DarknetOption> options_;
};

// Foreign text as an error message may quote it: at most 40 characters, of ASCII only.
std::string clipped(std::string_view text);

// Errors: kBadData with the line: binary data, empty, a line that is neither a section nor key=value, a key before the
// first section.
Result<std::vector<DarknetSection>> parse_darknet_text(std::string_view text);

}  // namespace strobe::models
