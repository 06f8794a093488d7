#include "trace/store_rows.h"

#include <limits>

#include "strobe/trace/timeline.h"

namespace strobe::trace {

void limit_reading(Database& database, uint64_t file_size) {
  database.limit_values(file_size);
  // A row of one byte takes fewer steps than this, and the smallest file some more.
  database.limit_work(100 * file_size + 1'000'000);
}

Result<void> require_table(Database& database, const char* table) {
  STROBE_ASSIGN(Statement exists, database.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ? AND "
                                                   "rootpage > 0"));
  exists.bind(0, std::string_view(table));
  STROBE_ASSIGN(const bool found, exists.step());
  if (!found) return bad_data(std::string("not a Strobe trace: it has no table ") + table);
  return {};
}

Result<Rows> Rows::open(Database& database, const char* table, const char* columns, ReadBudget& budget) {
  STROBE_TRY(require_table(database, table));
  // A user's index must not change the order.
  auto statement =
      database.prepare(std::string("SELECT ") + columns + " FROM " + table + " NOT INDEXED ORDER BY rowid");
  if (!statement) return std::move(statement.error().at(table));
  return Rows(std::move(*statement), table, budget);
}

bool Rows::next() {
  if (failed_) return false;
  auto row = statement_.step();
  if (!row) {
    failed_ = true;
    error_ = std::move(row.error().at(table_));
    return false;
  }
  if (!*row) return false;
  ++number_;
  if (budget_->rows == 0) {
    fail("more rows than a file of this size can hold");
    return false;
  }
  --budget_->rows;
  return true;
}

Result<void> Rows::status() const {
  if (failed_) return Error(error_);
  return {};
}

std::string_view Rows::text(int column) {
  const std::string_view text = statement_.text(column);
  if (text.size() > budget_->text_bytes) {
    fail("more text than a file of this size can hold");
    return {};
  }
  budget_->text_bytes -= text.size();
  return text;
}

int64_t Rows::within(int column, int64_t low, int64_t high) {
  const int64_t value = statement_.integer(column);
  if (!statement_.is_null(column) && value >= low && value <= high) return value;
  fail(column_name(column) + " is " + (is_null(column) ? "missing" : std::to_string(value)) + ", expected " +
       std::to_string(low) + " to " + std::to_string(high));
  return low;
}

int32_t Rows::index(int column, size_t count) {
  const int64_t value = statement_.integer(column);
  if (!statement_.is_null(column) && value >= 0 && static_cast<uint64_t>(value) < count)
    return static_cast<int32_t>(value);
  fail(column_name(column) + " is " + (is_null(column) ? "missing" : std::to_string(value)) + ", but there are " +
       std::to_string(count) + " of what it points at");
  return 0;
}

int32_t Rows::optional_index(int column, size_t count) {
  return is_null(column) ? kNone : index(column, count);
}

int64_t Rows::time(int column) {
  return within(column, -kFarthestTime, kFarthestTime);
}

void Rows::fail(const std::string& message) {
  if (failed_) return;
  failed_ = true;
  error_ = bad_data(std::string(table_) + " row " + std::to_string(number_ + 1) + ": " + message);
}

std::string Rows::column_name(int column) const {
  return statement_.column_name(column);
}

}  // namespace strobe::trace
