#include "trace/sqlite.h"

#include <sqlite3.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace strobe::trace {

namespace {

// To be called right after the call that failed, before which errno was 0: SQLite does not keep the reason of every
// failed write.
Error sqlite_error(sqlite3* database, int code) {
  const int kept = database ? sqlite3_system_errno(database) : 0;
  const int system_code = kept != 0 ? kept : errno;
  switch (code & 0xff) {
    case SQLITE_FULL:
      return io_error("no space left to write the trace");
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
      return io_error(system_code != 0 ? std::strerror(system_code) : sqlite3_errstr(code));
    case SQLITE_NOTADB:
      return bad_data("not a SQLite file");
    case SQLITE_CORRUPT:
      return bad_data("damaged or truncated SQLite file");
    case SQLITE_READONLY:
    case SQLITE_PERM:
      return io_error("no permission to write the trace");
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return io_error("another program is writing this file");
    case SQLITE_INTERRUPT:
      return bad_data("damaged: more to read than a file of this size can hold");
    case SQLITE_NOMEM:
      return io_error("out of memory");
    default:
      return bad_data(database ? sqlite3_errmsg(database) : sqlite3_errstr(code));
  }
}

}  // namespace

Statement::Statement(Statement&& other) noexcept
    : database_(std::exchange(other.database_, nullptr)), statement_(std::exchange(other.statement_, nullptr)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(database_, other.database_);
  std::swap(statement_, other.statement_);
  return *this;
}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

void Statement::bind(int index, int64_t value) {
  sqlite3_bind_int64(statement_, index + 1, value);
}
void Statement::bind(int index, double value) {
  sqlite3_bind_double(statement_, index + 1, value);
}
void Statement::bind(int index, std::string_view value) {
  // An empty view may have no address, which SQLite would take for NULL.
  sqlite3_bind_text64(statement_, index + 1, value.empty() ? "" : value.data(), value.size(), SQLITE_STATIC,
                      SQLITE_UTF8);
}
void Statement::bind_null(int index) {
  sqlite3_bind_null(statement_, index + 1);
}

Result<void> Statement::insert() {
  errno = 0;
  const int code = sqlite3_step(statement_);
  if (code != SQLITE_DONE) {
    Error error = sqlite_error(database_, code);
    sqlite3_reset(statement_);
    return error;
  }
  sqlite3_reset(statement_);
  return {};
}

Result<bool> Statement::step() {
  errno = 0;
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return sqlite_error(database_, code);
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}
bool Statement::is_real(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_FLOAT;
}
bool Statement::is_text(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_TEXT;
}
int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}
double Statement::real(int column) const {
  return sqlite3_column_double(statement_, column);
}
std::string_view Statement::text(int column) const {
  const auto* data = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  return data ? std::string_view(data, static_cast<size_t>(sqlite3_column_bytes(statement_, column)))
              : std::string_view();
}

std::string Statement::column_name(int column) const {
  const char* name = sqlite3_column_name(statement_, column);
  return name ? name : "?";
}

Result<Database> Database::create(const std::filesystem::path& path, int page_size) {
  sqlite3* handle = nullptr;
  errno = 0;
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  const int code = sqlite3_open_v2(path.c_str(), &handle, flags, nullptr);
  Database database(handle);
  if (code != SQLITE_OK) return sqlite_error(handle, code);
  STROBE_TRY(database.execute("PRAGMA page_size = " + std::to_string(page_size) +
                              "; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA locking_mode = EXCLUSIVE;"
                              "PRAGMA cache_size = -32768; PRAGMA temp_store = MEMORY;"));
  return database;
}

Result<Database> Database::open(const std::filesystem::path& path, bool to_salvage) {
  sqlite3* handle = nullptr;
  errno = 0;
  const int code = sqlite3_open_v2(path.c_str(), &handle, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr);
  Database database(handle);
  if (code != SQLITE_OK) return sqlite_error(handle, code);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_DEFENSIVE, to_salvage ? 0 : 1, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, nullptr);
  sqlite3_db_config(handle, SQLITE_DBCONFIG_ENABLE_VIEW, 0, nullptr);
  // SQLite takes a file that is shorter than it says only from those who may repair its schema.
  STROBE_TRY(database.execute(to_salvage ? "PRAGMA writable_schema = ON; PRAGMA mmap_size = 0;"
                                         : "PRAGMA cell_size_check = ON; PRAGMA mmap_size = 0;"));
  return database;
}

Database::Database(Database&& other) noexcept
    : handle_(std::exchange(other.handle_, nullptr)), work_left_(std::move(other.work_left_)) {}

Database::~Database() {
  sqlite3_close_v2(handle_);
}

Result<void> Database::execute(const std::string& sql) {
  errno = 0;
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) return sqlite_error(handle_, code);
  return {};
}

Result<Statement> Database::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  const int code = sqlite3_prepare_v3(handle_, sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                      &statement, nullptr);
  if (code != SQLITE_OK) return sqlite_error(handle_, code);
  return Statement(handle_, statement);
}

void Database::limit_values(uint64_t bytes) {
  sqlite3_limit(handle_, SQLITE_LIMIT_LENGTH, static_cast<int>(std::min<uint64_t>(bytes, 1'000'000'000)));
}

void Database::limit_work(uint64_t steps) {
  work_left_ = std::make_unique<int64_t>(static_cast<int64_t>(std::min<uint64_t>(steps, uint64_t{1} << 60) / 1000));
  sqlite3_progress_handler(
      handle_, 1000, [](void* left) { return --*static_cast<int64_t*>(left) < 0 ? 1 : 0; }, work_left_.get());
}

Result<void> Database::close() {
  errno = 0;
  const int code = sqlite3_close(handle_);
  if (code != SQLITE_OK) return sqlite_error(handle_, code);
  handle_ = nullptr;
  return {};
}

}  // namespace strobe::trace
