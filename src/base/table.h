// Table: the one form in which every analysis answers. A table is named columns with units and rows of cells; how it is
// printed (text, CSV, JSON, HTML) is the business of report/table_format.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace strobe {

// A missing value, a count, a measure or a text.
using Cell = std::variant<std::monostate, int64_t, double, std::string>;

struct Column {
  std::string name;    // snake_case, with its unit as suffix where it has one: "p50_ms"
  std::string help;    // one line: what it means
  int decimals = 3;    // digits after the point when a double is printed for people
  bool whole = false;  // sentences and what the user asked for: long texts are not shortened for people, as names are
};

class Table {
 public:
  Table() = default;
  explicit Table(std::string title, std::vector<Column> columns)
      : title_(std::move(title)), columns_(std::move(columns)) {}

  const std::string& title() const { return title_; }
  const std::vector<Column>& columns() const { return columns_; }
  const std::vector<std::vector<Cell>>& rows() const { return rows_; }
  size_t row_count() const { return rows_.size(); }

  // The row must have as many cells as the table has columns.
  void add_row(std::vector<Cell> row);
  // Index of a column by name; nothing when absent.
  std::optional<size_t> column(std::string_view name) const;
  // The cell as a number (counts widened); nothing when it is missing or a text.
  std::optional<double> number(size_t row, std::string_view column_name) const;
  // The cell as text; empty when it is missing or a number.
  std::string text(size_t row, std::string_view column_name) const;

  // Share (0..1) of the time the table speaks of that it explains; nothing where the idea does not apply.
  std::optional<double> coverage;
  // Sentences that must be shown with the table (losses, estimates, limits of validity).
  std::vector<std::string> notes;

 private:
  std::string title_;
  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace strobe
