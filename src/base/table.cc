#include "base/table.h"

#include <cstdio>
#include <cstdlib>

namespace strobe {

void Table::add_row(std::vector<Cell> row) {
  if (row.size() != columns_.size()) {
    std::fprintf(stderr, "strobe: internal fault: table '%s' takes %zu cells a row, not %zu\n", title_.c_str(),
                 columns_.size(), row.size());
    std::abort();
  }
  rows_.push_back(std::move(row));
}

std::optional<size_t> Table::column(std::string_view name) const {
  for (size_t i = 0; i < columns_.size(); ++i)
    if (columns_[i].name == name) return i;
  return std::nullopt;
}

std::optional<double> Table::number(size_t row, std::string_view column_name) const {
  const auto index = column(column_name);
  if (!index || row >= rows_.size()) return std::nullopt;
  const Cell& cell = rows_[row][*index];
  if (const auto* count = std::get_if<int64_t>(&cell)) return static_cast<double>(*count);
  if (const auto* measure = std::get_if<double>(&cell)) return *measure;
  return std::nullopt;
}

std::string Table::text(size_t row, std::string_view column_name) const {
  const auto index = column(column_name);
  if (!index || row >= rows_.size()) return {};
  const auto* value = std::get_if<std::string>(&rows_[row][*index]);
  return value ? *value : std::string();
}

}  // namespace strobe
