// Reading one table of a trace file that may be damaged or hostile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "strobe/base/result.h"
#include "trace/sqlite.h"

namespace strobe::trace {

// What one file may make its reader do. No row takes less than a byte and no text is shorter than itself, so a file
// whose pages point at each other in circles cannot claim more than its size.
struct ReadBudget {
  uint64_t rows = 0;
  uint64_t text_bytes = 0;
};

// The farthest times whose differences cannot overflow.
inline constexpr int64_t kFarthestTime = int64_t{1} << 61;

// No value and no work that a file of this size cannot need.
void limit_reading(Database& database, uint64_t file_size);
// That the file has the table itself: no view and no virtual table may stand for it.
Result<void> require_table(Database& database, const char* table);

// The rows of a table, in the order of their rowids. The first value that cannot be ends the loop; status() says which:
//     while (rows.next()) lane.push_back(rows.index(0, lanes.size()));
//     STROBE_TRY(rows.status());
class Rows {
 public:
  static Result<Rows> open(Database& database, const char* table, const char* columns, ReadBudget& budget);

  bool next();
  Result<void> status() const;

  // Row number, from 0.
  int64_t number() const { return number_; }
  bool is_null(int column) const { return statement_.is_null(column); }
  int64_t integer(int column) const { return statement_.integer(column); }
  double real(int column) const { return statement_.real(column); }
  bool is_real(int column) const { return statement_.is_real(column); }
  bool is_text(int column) const { return statement_.is_text(column); }
  std::string_view text(int column);
  // An integer in [low, high], else a fault and low.
  int64_t within(int column, int64_t low, int64_t high);
  // An index below count, else a fault and 0. NULL is a fault.
  int32_t index(int column, size_t count);
  // The same; NULL is kNone.
  int32_t optional_index(int column, size_t count);
  // A time whose differences with others cannot overflow.
  int64_t time(int column);
  void fail(const std::string& message);
  bool failed() const { return failed_; }

 private:
  Rows(Statement statement, const char* table, ReadBudget& budget)
      : statement_(std::move(statement)), table_(table), budget_(&budget) {}
  std::string column_name(int column) const;

  Statement statement_;
  const char* table_;
  ReadBudget* budget_;
  int64_t number_ = -1;
  bool failed_ = false;
  Error error_{ErrorKind::kInternal, ""};
};

}  // namespace strobe::trace
