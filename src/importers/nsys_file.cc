#include "importers/nsys_file.h"

#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>

namespace strobe::importers {

namespace {

constexpr uint64_t kRowsPerLook = 8192;  // at the wish to stop, and for progress
constexpr int64_t kNoRow = std::numeric_limits<int64_t>::min();

std::string identifier(std::string_view name) {
  std::string text = "\"";
  for (const char c : name) text += c == '"' ? std::string("\"\"") : std::string(1, c);
  return text + '"';
}

Result<uint64_t> size_of(const std::filesystem::path& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return not_found("no such file");
    return io_error(std::strerror(errno));
  }
  if (S_ISDIR(facts.st_mode)) return io_error("is a folder, expected an Nsight Systems export");
  std::ifstream file(path, std::ios::binary);
  if (!file) return io_error(std::strerror(errno));
  char magic[16] = {};
  file.read(magic, sizeof magic);
  if (file.gcount() != sizeof magic || std::memcmp(magic, "SQLite format 3", sizeof magic) != 0)
    return bad_data("not a SQLite file, expected an Nsight Systems export");
  return static_cast<uint64_t>(facts.st_size);
}

}  // namespace

std::string_view NsysRow::text(int column) const {
  const std::string_view text = statement_.text(column + 1);
  if (text.size() > text_left_) return {};
  text_left_ -= text.size();
  return text;
}

Result<NsysFile> NsysFile::open(const std::filesystem::path& path, const ImportOptions& options) {
  STROBE_ASSIGN(const uint64_t size, size_of(path));
  STROBE_ASSIGN(trace::Database database, trace::Database::open(path, true));
  // Pages that point at each other in circles keep nobody busy for ever, and make no more of a file than it holds.
  database.limit_values(size);
  database.limit_work(200 * size + 10'000'000);
  NsysFile file(std::move(database), size, options);
  STROBE_TRY(file.read_schema());
  return file;
}

Result<void> NsysFile::read_schema() {
  std::vector<std::string> names;
  STROBE_ASSIGN(trace::Statement list,
                database_.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND rootpage > 0"));
  while (true) {
    auto row = list.step();
    // A part of the list may be damaged; what stands before it is of use.
    if (!row && names.empty()) return std::move(row).error();
    if (!row) ++faults["unreadable part of the list of tables"];
    if (!row || !*row) break;
    names.emplace_back(list.text(0));
  }
  for (const std::string& name : names) {
    auto columns = database_.prepare("SELECT name FROM pragma_table_info(?)");
    if (!columns) continue;
    columns->bind(0, std::string_view(name));
    std::vector<std::string>& known = tables_[name];
    while (true) {
      const auto row = columns->step();
      if (!row || !*row) break;
      known.emplace_back(columns->text(0));
    }
  }
  return {};
}

bool NsysFile::has(std::string_view table, std::string_view column) const {
  const auto found = tables_.find(table);
  return found != tables_.end() && std::find(found->second.begin(), found->second.end(), column) != found->second.end();
}

std::vector<std::string> NsysFile::tables_with(std::string_view column) const {
  std::vector<std::string> names;
  for (const auto& [name, columns] : tables_)
    if (has(name, column)) names.push_back(name);
  return names;
}

int64_t NsysFile::row_count(const std::string& table) {
  auto statement = database_.prepare("SELECT max(rowid) FROM " + identifier(table));
  if (!statement) return 0;
  const auto row = statement->step();
  return row && *row ? std::max<int64_t>(0, statement->integer(0)) : 0;
}

void NsysFile::expect(std::initializer_list<const char*> tables) {
  for (const char* table : tables)
    if (has(table)) rows_expected_ += std::min(static_cast<uint64_t>(row_count(table)), size_);
}

std::string NsysFile::select(const std::string& table, std::initializer_list<const char*> columns) const {
  std::string sql = "SELECT rowid";
  for (const char* column : columns) sql += has(table, column) ? ", " + identifier(column) : std::string(", NULL");
  return sql + " FROM " + identifier(table) + " NOT INDEXED WHERE ";
}

void NsysFile::tell_progress() {
  if (options_->stop && options_->stop->load(std::memory_order_relaxed)) stopped_ = true;
  if (!options_->on_progress || rows_expected_ == 0) return;
  const double share = std::min(1.0, static_cast<double>(rows_read_) / static_cast<double>(rows_expected_));
  options_->on_progress(static_cast<uint64_t>(share * static_cast<double>(size_)), size_);
}

Result<void> NsysFile::run(const std::string& sql, const Take& take, int64_t& last_row) {
  STROBE_ASSIGN(trace::Statement statement, database_.prepare(sql));
  const NsysRow row(statement, text_left_);
  while (!stopped_) {
    STROBE_ASSIGN(const bool more, statement.step());
    if (!more) break;
    if (rows_left_ == 0) return bad_data("more rows than a file of this size can hold");
    --rows_left_;
    last_row = statement.integer(0);
    take(row);
    if (++rows_read_ % kRowsPerLook == 0) tell_progress();
  }
  return {};
}

void NsysFile::each(const std::string& table, std::initializer_list<const char*> columns, const Take& take,
                    const std::string& condition) {
  if (!has(table) || stopped_) return;
  const std::string sql = select(table, columns);
  const std::string rows = condition.empty() ? "1" : condition;
  int64_t last = kNoRow;
  if (run(sql + rows + " ORDER BY rowid", take, last)) return;
  // From the other end back to the damage. Rows of an export are numbered without gaps, except where ids number them.
  int64_t first_behind = kNoRow;
  const std::string behind = last == kNoRow ? "" : " AND rowid > " + std::to_string(last);
  (void)run(sql + rows + behind + " ORDER BY rowid DESC", take, first_behind);
  // What is asked for by a condition is a part of what is asked for again without one.
  if (!condition.empty()) return;
  int64_t lost = 1;
  if (first_behind != kNoRow && !has(table, "id") && last < first_behind)
    lost = std::max<int64_t>(1, first_behind - std::max<int64_t>(last, 0) - 1);
  faults["rows of " + table + " that could not be read (at least)"] += static_cast<uint64_t>(lost);
}

}  // namespace strobe::importers
