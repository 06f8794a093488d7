#include "trace/store_ranges.h"

#include <sqlite3.h>

#include <algorithm>
#include <future>
#include <limits>
#include <optional>
#include <string>

#include "trace/sqlite.h"
#include "trace/store_rows.h"

namespace strobe::trace {

namespace {

enum Column { kId, kKind, kLane, kStart, kEnd, kName, kFrame, kOpen, kAsync, kColumnCount };
constexpr const char* kColumnNames[] = {"id", "kind", "laneId", "start", "end", "nameId", "frame", "open", "isAsync"};

constexpr uint64_t kWorthAThread = 1 << 16;  // rows

// Consecutive rows [next, end) of the table, which go to the same places of the columns.
struct Part {
  const RangeTable* table;
  Ranges* ranges;
  int64_t next, end;
  bool is_last;
  std::optional<Error> error;

  void fail(sqlite3_context* context, const std::string& message) {
    error = bad_data("STROBE_RANGE row " + std::to_string(next + 1) + ": " + message);
    sqlite3_result_error(context, "", 0);
  }
  void take(sqlite3_context* context, sqlite3_value** row);
};

void Part::take(sqlite3_context* context, sqlite3_value** row) {
  if (error) return;
  int64_t values[kColumnCount];
  for (int column = 0; column < kColumnCount; ++column) {
    values[column] = sqlite3_value_int64(row[column]);
    if (sqlite3_value_type(row[column]) == SQLITE_INTEGER) continue;
    if (column == kFrame && sqlite3_value_type(row[column]) == SQLITE_NULL)
      values[column] = kNoFrame;
    else
      return fail(context, std::string(kColumnNames[column]) + " is missing");
  }
  const auto limits = [&](Column column, int64_t low, int64_t high) {
    if (values[column] >= low && values[column] <= high) return true;
    fail(context, std::string(kColumnNames[column]) + " is " + std::to_string(values[column]) + ", expected " +
                      std::to_string(low) + " to " + std::to_string(high));
    return false;
  };
  if (next >= end) return fail(context, "more rows than STROBE_META says");
  const auto& strings = *table->strings;
  if (!limits(kId, next, next) || !limits(kKind, 0, static_cast<int64_t>(RangeKind::kGraph)) ||
      !limits(kLane, 0, static_cast<int64_t>(table->lane_count) - 1) ||
      !limits(kName, 0, static_cast<int64_t>(strings.size()) - 1) || !limits(kStart, -kFarthestTime, kFarthestTime) ||
      !limits(kEnd, -kFarthestTime, kFarthestTime))
    return;
  if (values[kEnd] < values[kStart]) return fail(context, "it ends before it starts");
  const auto i = static_cast<size_t>(next++);
  ranges->start_ns[i] = values[kStart];
  ranges->end_ns[i] = values[kEnd];
  ranges->name[i] = strings[static_cast<size_t>(values[kName])];
  ranges->lane[i] = static_cast<int32_t>(values[kLane]);
  ranges->frame[i] = values[kFrame];
  ranges->is_async[i] = values[kAsync] != 0 ? 1 : 0;
  ranges->open[i] = values[kOpen] != 0 ? 1 : 0;
  ranges->kind[i] = static_cast<RangeKind>(values[kKind]);
}

// An aggregate function sees the rows inside SQLite's own loop: no call a row and column from outside.
Result<void> read_part(Part& part) {
  STROBE_ASSIGN(Database database, Database::open(part.table->path));
  limit_reading(database, part.table->file_size);
  STROBE_TRY(require_table(database, "STROBE_RANGE"));
  sqlite3_create_function_v2(
      database.handle(), "strobe_take", kColumnCount, SQLITE_UTF8 | SQLITE_DIRECTONLY, &part, nullptr,
      [](sqlite3_context* context, int, sqlite3_value** row) {
        static_cast<Part*>(sqlite3_user_data(context))->take(context, row);
      },
      [](sqlite3_context* context) { sqlite3_result_null(context); }, nullptr);
  // The outer parts also look where no row may be. Rows stand in the order of their ids, which take() checks.
  auto statement = database.prepare(
      "SELECT strobe_take(id, kind, laneId, start, end, nameId, frame, open, isAsync) FROM STROBE_RANGE NOT INDEXED "
      "WHERE rowid >= ? AND rowid < ?");
  if (!statement) return std::move(statement.error().at("STROBE_RANGE"));
  statement->bind(0, part.next == 0 ? std::numeric_limits<int64_t>::min() : part.next);
  statement->bind(1, part.is_last ? std::numeric_limits<int64_t>::max() : part.end);
  auto row = statement->step();
  if (part.error) return std::move(*part.error);
  if (!row) return std::move(row.error().at("STROBE_RANGE"));
  if (part.next != part.end)
    return bad_data("STROBE_RANGE row " + std::to_string(part.next + 1) + ": it is missing, " +
                    std::to_string(part.table->count) + " rows expected");
  return {};
}

}  // namespace

Result<Ranges> read_ranges(const RangeTable& table) {
  if (table.count > table.file_size) return bad_data("STROBE_RANGE: more rows than a file of this size can hold");
  if (table.count >= static_cast<uint64_t>(std::numeric_limits<int32_t>::max()))
    return bad_data("STROBE_RANGE: more ranges than this Strobe can hold");
  Ranges ranges;
  const auto count = static_cast<size_t>(table.count);
  const auto middle = static_cast<int64_t>(table.count >= kWorthAThread ? count / 2 : count);
  ranges.start_ns.resize(count);
  ranges.end_ns.resize(count);
  ranges.name.resize(count);
  ranges.lane.resize(count);
  ranges.frame.resize(count);
  ranges.is_async.resize(count);
  ranges.open.resize(count);
  ranges.kind.resize(count);
  Part first{&table, &ranges, 0, middle, static_cast<size_t>(middle) == count, {}};
  if (first.is_last) {
    STROBE_TRY(read_part(first));
    return ranges;
  }
  Part second{&table, &ranges, middle, static_cast<int64_t>(count), true, {}};
  auto other = std::async(std::launch::async, [&second] { return read_part(second); });
  Result<void> read = read_part(first);
  Result<void> read_other = other.get();
  STROBE_TRY(std::move(read));
  STROBE_TRY(std::move(read_other));
  return ranges;
}

}  // namespace strobe::trace
