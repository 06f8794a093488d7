// A SQLite export of Nsight Systems as rows: tables and columns that may be absent, pages that may be damaged.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "importers/importer.h"
#include "trace/sqlite.h"

namespace strobe::importers {

// One row; columns by their number in what was asked for. A column that the table lacks is NULL.
class NsysRow {
 public:
  bool is_null(int column) const { return statement_.is_null(column + 1); }
  int64_t integer(int column, int64_t none = 0) const {
    return is_null(column) ? none : statement_.integer(column + 1);
  }
  double real(int column) const { return statement_.real(column + 1); }
  // Until the next row; empty for NULL.
  std::string_view text(int column) const;

 private:
  friend class NsysFile;
  NsysRow(trace::Statement& statement, uint64_t& text_left) : statement_(statement), text_left_(text_left) {}
  trace::Statement& statement_;
  uint64_t& text_left_;
};

class NsysFile {
 public:
  // Errors: kNotFound, kIo, kBadData (not SQLite; its list of tables cannot be read).
  static Result<NsysFile> open(const std::filesystem::path& path, const ImportOptions& options);

  bool has(std::string_view table) const { return tables_.find(table) != tables_.end(); }
  bool has(std::string_view table, std::string_view column) const;
  // Tables that have such a column.
  std::vector<std::string> tables_with(std::string_view column) const;
  // Greatest rowid: the number of rows where nothing was deleted.
  int64_t row_count(const std::string& table);

  // Calls take with each row (condition: "" or an SQL expression). A damaged part is left out, read up to from both of
  // its sides, and counted in faults. An absent table has no rows.
  using Take = std::function<void(const NsysRow&)>;
  void each(const std::string& table, std::initializer_list<const char*> columns, const Take& take,
            const std::string& condition = "");
  // For each(): the tables that will be read, so that progress can be told.
  void expect(std::initializer_list<const char*> tables);

  bool stopped() const { return stopped_; }
  std::map<std::string, uint64_t> faults;

 private:
  using Tables = std::map<std::string, std::vector<std::string>, std::less<>>;  // columns by table
  NsysFile(trace::Database database, uint64_t size, const ImportOptions& options)
      : database_(std::move(database)),
        size_(size),
        rows_left_(size / 4 + 1000),
        text_left_(size),
        options_(&options) {}
  Result<void> read_schema();
  std::string select(const std::string& table, std::initializer_list<const char*> columns) const;
  Result<void> run(const std::string& sql, const Take& take, int64_t& last_row);
  void tell_progress();

  trace::Database database_;
  uint64_t size_, rows_left_, text_left_;
  uint64_t rows_read_ = 0, rows_expected_ = 0;
  const ImportOptions* options_;
  Tables tables_;
  bool stopped_ = false;
};

}  // namespace strobe::importers
