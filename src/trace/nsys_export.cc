#include "trace/nsys_export.h"

#include <unistd.h>

#include <string>

#include "trace/new_file.h"
#include "trace/nsys_schema.h"
#include "trace/sqlite.h"
#include "trace/store.h"

namespace strobe::trace {

namespace fs = std::filesystem;

namespace {

// A trace file beside the export, whose views answer what is in its tables.
class Source {
 public:
  explicit Source(const fs::path& beside) : path_(beside) { path_ += "-source"; }
  Source(const Source&) = delete;
  Source& operator=(const Source&) = delete;
  ~Source() { ::unlink(path_.c_str()); }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

Result<void> copy_tables(Database& database, const fs::path& source) {
  {
    STROBE_ASSIGN(Statement attach, database.prepare("ATTACH ? AS source"));
    attach.bind(0, std::string_view(source.native()));
    STROBE_TRY(attach.step());
  }
  STROBE_TRY(database.execute("BEGIN"));
  STROBE_TRY(database.execute(nsys::kCommonTables));
  const auto copy = [&database](const std::string& table) {
    return database.execute("INSERT INTO main." + table + " SELECT * FROM source." + table);
  };
  for (const char* table :
       {"META_DATA_EXPORT", "StringIds", "TARGET_INFO_SESSION_START_TIME", "ANALYSIS_DETAILS", "DIAGNOSTIC_EVENT"})
    STROBE_TRY(copy(table));
  STROBE_TRY(database.execute("INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_PARAM_LAZY', 'false')"));
  for (const nsys::TableDefinition& table : nsys::derived_tables()) {
    STROBE_TRY(database.execute(nsys::table_of(table)));
    STROBE_TRY(copy(table.name));
  }
  STROBE_TRY(database.execute("COMMIT"));
  return database.execute("DETACH source");
}

}  // namespace

Result<void> write_nsys(const Timeline& timeline, const fs::path& path) {
  return write_new_file(path, [&timeline](const fs::path& temporary) -> Result<void> {
    const Source source(temporary);
    if (auto written = write_store(timeline, source.path()); !written)
      return Error(written.error().kind(), written.error().message());
    STROBE_ASSIGN(Database database, Database::create(temporary));
    STROBE_TRY(copy_tables(database, source.path()));
    return database.close();
  });
}

}  // namespace strobe::trace
