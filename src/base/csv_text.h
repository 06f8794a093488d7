// CSV as RFC 4180 has it, with a header line; columns are found by name, so that files may have more of them.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe {

// Owns the text; fields are views into it.
class CsvText {
 public:
  // Lines end in LF or CR LF; empty lines are passed over. Errors: kBadData with the line: no header, a name that
  // stands twice in it, a line with more or fewer fields than the header, a quote that is not closed.
  static Result<CsvText> parse(std::string text);

  size_t row_count() const { return lines_.size(); }
  // Its place in a row. Errors: kBadData naming the column and those that are there.
  Result<size_t> column(std::string_view name) const;
  std::optional<size_t> find(std::string_view name) const;
  std::string_view field(size_t row, size_t column) const { return fields_[row * names_.size() + column]; }
  // Errors: kBadData "line 12: column kh: 'x', expected a whole number from 0 to 100".
  Result<int64_t> integer(size_t row, size_t column, int64_t low, int64_t high) const;
  // A finite number.
  Result<double> number(size_t row, size_t column) const;
  Error wrong(size_t row, size_t column, std::string_view expected) const;

 private:
  CsvText() = default;
  std::unique_ptr<const std::string> text_;                   // does not move with the object
  std::vector<std::unique_ptr<const std::string>> unquoted_;  // fields in which "" stood for "
  std::vector<std::string_view> names_;
  std::vector<std::string_view> fields_;  // row-major
  std::vector<size_t> lines_;             // of each row, from 1
};

// The field as it stands in a file: with quotes where it needs them.
std::string csv_field(std::string_view text);

}  // namespace strobe
