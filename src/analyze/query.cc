#include "analyze/query.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string_view>

namespace strobe::analyze {

namespace {

struct CloseDatabase {
  void operator()(sqlite3* database) const { sqlite3_close_v2(database); }
};
struct Finalize {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};

// PRAGMAs that tell something and, without a value or with a table's name, change nothing.
bool only_tells(std::string_view pragma, bool has_value) {
  constexpr std::array kOfTables{"table_info", "table_xinfo", "table_list",      "index_list",
                                 "index_info", "index_xinfo", "foreign_key_list"};
  constexpr std::array kOfTheFile{"database_list",   "collation_list",  "function_list",  "pragma_list",
                                  "compile_options", "module_list",     "schema_version", "user_version",
                                  "encoding",        "page_count",      "page_size",      "freelist_count",
                                  "application_id",  "integrity_check", "quick_check"};
  const auto is = [&](const char* known) { return pragma == known; };
  return std::any_of(kOfTables.begin(), kOfTables.end(), is) ||
         (!has_value && std::any_of(kOfTheFile.begin(), kOfTheFile.end(), is));
}

int authorize(void* refused, int action, const char* first, const char* second, const char*, const char*) {
  switch (action) {
    case SQLITE_SELECT:
    case SQLITE_READ:
    case SQLITE_RECURSIVE:
      return SQLITE_OK;
    case SQLITE_FUNCTION:
      if (second && std::string_view(second) == "load_extension") break;
      return SQLITE_OK;
    case SQLITE_PRAGMA:
      if (first && only_tells(first, second != nullptr)) return SQLITE_OK;
      break;
    default:
      break;
  }
  *static_cast<bool*>(refused) = true;
  return SQLITE_DENY;
}

Cell cell_of(sqlite3_stmt* statement, int column) {
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return int64_t{sqlite3_column_int64(statement, column)};
    case SQLITE_FLOAT:
      return sqlite3_column_double(statement, column);
    case SQLITE_TEXT: {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(statement, column));
      return std::string(text, static_cast<size_t>(sqlite3_column_bytes(statement, column)));
    }
    case SQLITE_BLOB: {
      const auto* bytes = static_cast<const unsigned char*>(sqlite3_column_blob(statement, column));
      std::string hex = "X'";
      for (int i = 0; i < sqlite3_column_bytes(statement, column); ++i)
        fmt::format_to(std::back_inserter(hex), "{:02X}", bytes[i]);
      return hex + "'";
    }
    default:
      return {};
  }
}

bool is_blank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n;") == std::string_view::npos;
}

}  // namespace

Result<void> query(const std::filesystem::path& file, const std::string& sql, const QuerySink& sink) {
  std::error_code code;
  if (!std::filesystem::exists(file, code)) return not_found(file.string() + ": no such file");
  sqlite3* raw = nullptr;
  const int opened = sqlite3_open_v2(file.c_str(), &raw, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  const std::unique_ptr<sqlite3, CloseDatabase> database(raw);
  if (opened != SQLITE_OK) return bad_data(file.string() + ": " + sqlite3_errmsg(raw));
  // The file's own schema may be hostile; its views are wanted, its functions and triggers are not.
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_exec(raw, "PRAGMA query_only = ON; PRAGMA cell_size_check = ON;", nullptr, nullptr, nullptr);
  if (sqlite3_exec(raw, "SELECT 1 FROM sqlite_schema LIMIT 1", nullptr, nullptr, nullptr) != SQLITE_OK)
    return bad_data(file.string() + ": no SQLite file that can be read: " + sqlite3_errmsg(raw));

  bool refused = false;
  sqlite3_set_authorizer(raw, authorize, &refused);
  sqlite3_stmt* raw_statement = nullptr;
  const char* rest = nullptr;
  const int prepared = sqlite3_prepare_v2(raw, sql.c_str(), static_cast<int>(sql.size()) + 1, &raw_statement, &rest);
  const std::unique_ptr<sqlite3_stmt, Finalize> statement(raw_statement);
  if (prepared != SQLITE_OK) {
    if (refused) return usage_error("this SQL would change something or open another file; a query may only read");
    const int offset = sqlite3_error_offset(raw);
    if (offset < 0) return usage_error(std::string("SQL: ") + sqlite3_errmsg(raw));
    const std::string_view near = std::string_view(sql).substr(static_cast<size_t>(offset), 20);
    return usage_error(
        fmt::format("SQL: {} at character {}{}", sqlite3_errmsg(raw), offset + 1,
                    near.empty() ? std::string() : ", near '" + std::string(near.substr(0, near.find('\n'))) + "'"));
  }
  if (!raw_statement) return usage_error("SQL: nothing to run");
  if (!is_blank(rest))
    return usage_error(
        fmt::format("SQL: one statement at a time; the second begins at character {}", rest - sql.c_str() + 1));
  if (sqlite3_stmt_readonly(raw_statement) == 0)
    return usage_error("this SQL would change something or open another file; a query may only read");

  const int columns = sqlite3_column_count(raw_statement);
  std::vector<std::string> names;
  for (int i = 0; i < columns; ++i) names.emplace_back(sqlite3_column_name(raw_statement, i));
  sink.on_columns(names);
  std::vector<Cell> row(static_cast<size_t>(columns));
  for (;;) {
    const int step = sqlite3_step(raw_statement);
    if (step == SQLITE_DONE) return {};
    if (step != SQLITE_ROW) {
      const bool is_damage = step == SQLITE_CORRUPT || step == SQLITE_NOTADB || step == SQLITE_IOERR;
      const std::string message = sqlite3_errmsg(raw);
      return is_damage ? bad_data(file.string() + ": " + message) : usage_error("SQL: " + message);
    }
    for (int i = 0; i < columns; ++i) row[static_cast<size_t>(i)] = cell_of(raw_statement, i);
    if (!sink.on_row(row)) return {};
  }
}

}  // namespace strobe::analyze
