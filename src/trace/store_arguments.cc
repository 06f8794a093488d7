#include "trace/store_arguments.h"

#include <sqlite3.h>

#include <limits>
#include <optional>
#include <string>

#include "trace/sqlite.h"
#include "trace/store_rows.h"

namespace strobe::trace {

namespace {

enum Column { kRange, kKey, kInteger, kReal, kText, kColumnCount };
constexpr const char* kColumnNames[] = {"rangeId", "keyId", "int64Value", "doubleValue", "textId"};

struct Taker {
  const RangeTable* table;
  Arguments arguments;
  std::optional<Error> error;

  void fail(sqlite3_context* context, const std::string& message) {
    error = bad_data("STROBE_ARGUMENT row " + std::to_string(arguments.size() + 1) + ": " + message);
    sqlite3_result_error(context, "", 0);
  }
  // An index below count, or a failure.
  std::optional<size_t> index(sqlite3_context* context, sqlite3_value** row, Column column, uint64_t count) {
    const int64_t value = sqlite3_value_int64(row[column]);
    const bool is_null = sqlite3_value_type(row[column]) == SQLITE_NULL;
    if (!is_null && value >= 0 && static_cast<uint64_t>(value) < count) return static_cast<size_t>(value);
    fail(context, std::string(kColumnNames[column]) + " is " + (is_null ? "missing" : std::to_string(value)) +
                      ", but there are " + std::to_string(count) + " of what it points at");
    return std::nullopt;
  }
  void take(sqlite3_context* context, sqlite3_value** row);
};

void Taker::take(sqlite3_context* context, sqlite3_value** row) {
  if (error) return;
  // No row takes less than a byte, so a file whose pages point at each other in circles cannot claim more than its
  // size.
  if (arguments.size() >= table->file_size) return fail(context, "more rows than a file of this size can hold");
  const auto& strings = *table->strings;
  const auto range = index(context, row, kRange, table->count);
  if (!range) return;
  const auto key = index(context, row, kKey, strings.size());
  if (!key) return;
  std::variant<int64_t, double, StringId> value;
  if (sqlite3_value_type(row[kInteger]) != SQLITE_NULL) {
    value = sqlite3_value_int64(row[kInteger]);
  } else if (sqlite3_value_type(row[kText]) != SQLITE_NULL) {
    const auto text = index(context, row, kText, strings.size());
    if (!text) return;
    value = strings[*text];
  } else {  // SQLite keeps "not a number" as NULL
    value = sqlite3_value_type(row[kReal]) == SQLITE_NULL ? std::numeric_limits<double>::quiet_NaN()
                                                          : sqlite3_value_double(row[kReal]);
  }
  arguments.range.push_back(static_cast<int32_t>(*range));
  arguments.key.push_back(strings[*key]);
  arguments.value.push_back(value);
}

}  // namespace

// An aggregate function sees the rows inside SQLite's own loop: no call a row and column from outside.
Result<Arguments> read_arguments(const RangeTable& table) {
  STROBE_ASSIGN(Database database, Database::open(table.path));
  limit_reading(database, table.file_size);
  STROBE_TRY(require_table(database, "STROBE_ARGUMENT"));
  Taker taker{&table, {}, {}};
  sqlite3_create_function_v2(
      database.handle(), "strobe_take", kColumnCount, SQLITE_UTF8 | SQLITE_DIRECTONLY, &taker, nullptr,
      [](sqlite3_context* context, int, sqlite3_value** row) {
        static_cast<Taker*>(sqlite3_user_data(context))->take(context, row);
      },
      [](sqlite3_context* context) { sqlite3_result_null(context); }, nullptr);
  // Without an order of its own a table is walked by its rowids; a user's index must not change that.
  auto statement = database.prepare(
      "SELECT strobe_take(rangeId, keyId, int64Value, doubleValue, textId) FROM STROBE_ARGUMENT NOT INDEXED");
  if (!statement) return std::move(statement.error().at("STROBE_ARGUMENT"));
  auto row = statement->step();
  if (taker.error) return std::move(*taker.error);
  if (!row) return std::move(row.error().at("STROBE_ARGUMENT"));
  return std::move(taker.arguments);
}

}  // namespace strobe::trace
