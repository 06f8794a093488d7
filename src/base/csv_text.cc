#include "base/csv_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/shorten.h"

namespace strobe {
namespace {

// Takes a text apart, one field at a time.
class Scanner {
 public:
  Scanner(std::string_view text, std::vector<std::unique_ptr<const std::string>>& unquoted)
      : text_(text), unquoted_(unquoted) {}

  bool at_end() const { return at_ >= text_.size(); }
  size_t line() const { return line_; }

  // The next line's fields; none for an empty line.
  Result<std::vector<std::string_view>> next_line() {
    std::vector<std::string_view> fields;
    if (skip_line_end()) return fields;
    while (true) {
      STROBE_ASSIGN(const std::string_view field, next_field());
      fields.push_back(field);
      if (at_end() || skip_line_end()) return fields;
      ++at_;  // the comma
    }
  }

 private:
  bool skip_line_end() {
    if (text_.substr(at_, 2) == "\r\n") {
      at_ += 2;
    } else if (text_.substr(at_, 1) == "\n") {
      ++at_;
    } else {
      return false;
    }
    ++line_;
    return true;
  }

  Result<std::string_view> next_field() {
    if (at_end() || text_[at_] != '"') {
      const size_t end = std::min(text_.find_first_of(",\n", at_), text_.size());
      std::string_view field = text_.substr(at_, end - at_);
      if (end < text_.size() && text_[end] == '\n' && field.ends_with('\r')) field.remove_suffix(1);
      at_ += field.size();
      return field;
    }
    const size_t opened = line_;
    std::string plain;
    for (++at_;; ++at_) {
      if (at_end()) return bad_data(fmt::format("line {}: a quote is opened and not closed", opened));
      if (text_[at_] == '"') {
        ++at_;
        if (at_end() || text_[at_] != '"') break;
      }
      if (text_[at_] == '\n') ++line_;
      plain += text_[at_];
    }
    const std::string_view rest = text_.substr(at_);
    if (!rest.empty() && rest[0] != ',' && !rest.starts_with("\n") && !rest.starts_with("\r\n"))
      return bad_data(fmt::format("line {}: expected a comma or the line's end after the closing quote", line_));
    unquoted_.push_back(std::make_unique<const std::string>(std::move(plain)));
    return std::string_view(*unquoted_.back());
  }

  std::string_view text_;
  std::vector<std::unique_ptr<const std::string>>& unquoted_;
  size_t at_ = 0, line_ = 1;
};

}  // namespace

Result<CsvText> CsvText::parse(std::string text) {
  CsvText csv;
  csv.text_ = std::make_unique<const std::string>(std::move(text));
  std::string_view view = *csv.text_;
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
  if (view.starts_with(kByteOrderMark)) view.remove_prefix(kByteOrderMark.size());
  Scanner scanner(view, csv.unquoted_);
  while (!scanner.at_end()) {
    const size_t line = scanner.line();
    STROBE_ASSIGN(const std::vector<std::string_view> fields, scanner.next_line());
    if (fields.empty()) continue;
    if (csv.names_.empty()) {
      csv.names_ = fields;
      for (auto name = fields.begin(); name != fields.end(); ++name)
        if (std::find(fields.begin(), name, *name) != name)
          return bad_data(fmt::format("line {}: column {} stands twice in the header", line, shorten(*name, 40)));
      continue;
    }
    if (fields.size() != csv.names_.size())
      return bad_data(
          fmt::format("line {}: {} fields, expected {} as in the header", line, fields.size(), csv.names_.size()));
    csv.fields_.insert(csv.fields_.end(), fields.begin(), fields.end());
    csv.lines_.push_back(line);
  }
  if (csv.names_.empty()) return bad_data("empty, expected a header line with the names of the columns");
  return csv;
}

std::optional<size_t> CsvText::find(std::string_view name) const {
  const auto found = std::find(names_.begin(), names_.end(), name);
  if (found == names_.end()) return std::nullopt;
  return static_cast<size_t>(found - names_.begin());
}

Result<size_t> CsvText::column(std::string_view name) const {
  if (const auto found = find(name)) return *found;
  std::string there;
  for (const std::string_view other : names_) there += fmt::format("{}{}", there.empty() ? "" : ",", other);
  return bad_data(fmt::format("line 1: no column {}, found: {}", name, shorten(there, 160)));
}

Error CsvText::wrong(size_t row, size_t column, std::string_view expected) const {
  return bad_data(fmt::format("line {}: column {}: '{}', expected {}", lines_[row], shorten(names_[column], 40),
                              shorten(field(row, column), 60), expected));
}

Result<int64_t> CsvText::integer(size_t row, size_t column, int64_t low, int64_t high) const {
  const std::string_view text = field(row, column);
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || value < low || value > high)
    return wrong(row, column, fmt::format("a whole number from {} to {}", low, high));
  return value;
}

Result<double> CsvText::number(size_t row, size_t column) const {
  const std::string_view text = field(row, column);
  double value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size() || !std::isfinite(value))
    return wrong(row, column, "a number");
  return value;
}

std::string csv_field(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos) return std::string(text);
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace strobe
