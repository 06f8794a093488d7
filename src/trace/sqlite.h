// A thin, owning adapter over SQLite: a database and its prepared statements, with errors as Result.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "strobe/base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace strobe::trace {

class Database;

// A prepared statement. Bind by position from 0; unbound columns are NULL.
class Statement {
 public:
  Statement() = default;
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  void bind(int index, int64_t value);
  void bind(int index, double value);
  void bind(int index, std::string_view value);  // must live until the next step
  void bind_null(int index);
  // Runs an insert with what is bound, and makes the statement ready for the next one.
  Result<void> insert();

  // To the next row; false at the end.
  Result<bool> step();
  bool is_null(int column) const;
  bool is_real(int column) const;
  bool is_text(int column) const;
  int64_t integer(int column) const;
  double real(int column) const;
  std::string_view text(int column) const;  // until the next step
  std::string column_name(int column) const;

 private:
  friend class Database;
  Statement(sqlite3* database, sqlite3_stmt* statement) : database_(database), statement_(statement) {}
  sqlite3* database_ = nullptr;
  sqlite3_stmt* statement_ = nullptr;
};

class Database {
 public:
  // A new database for bulk writing: no journal, no syncs. The file must not be anyone's yet.
  static Result<Database> create(const std::filesystem::path& path, int page_size = 4096);
  // An existing one, read-only; its schema may be hostile. To salvage: a file that was cut short is read as far as it
  // goes, where otherwise it is refused.
  static Result<Database> open(const std::filesystem::path& path, bool to_salvage = false);
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;
  Database(Database&& other) noexcept;
  Database& operator=(Database&&) = delete;
  ~Database();

  Result<void> execute(const std::string& sql);
  Result<Statement> prepare(std::string_view sql);
  // No value may be longer than this, whatever expression the file's schema makes of it.
  void limit_values(uint64_t bytes);
  // No statement may take more than so many steps of SQLite's machine all together: pages that point at each other in
  // circles would keep it busy for ever.
  void limit_work(uint64_t steps);
  sqlite3* handle() const { return handle_; }
  // Ends its use and reports what could not be written; the destructor cannot.
  Result<void> close();

 private:
  explicit Database(sqlite3* handle) : handle_(handle) {}
  sqlite3* handle_ = nullptr;
  std::unique_ptr<int64_t> work_left_;  // in thousands of steps
};

}  // namespace strobe::trace
