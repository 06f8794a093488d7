#include <ctime>

#include "base/version.h"
#include "trace/new_file.h"
#include "trace/nsys_schema.h"
#include "trace/schema.h"
#include "trace/sqlite.h"
#include "trace/store.h"
#include "trace/store_bulk.h"

namespace strobe::trace {

namespace fs = std::filesystem;

namespace {

// Large pages cost least where there is much to write; a small trace has few bytes in each of its tables.
constexpr size_t kManyRanges = 1'000'000;
int page_size_for(const Timeline& timeline) {
  return timeline.ranges.size() >= kManyRanges ? 32768 : 4096;
}

std::string format_time(int64_t utc_ns, bool local) {
  const std::time_t seconds = static_cast<std::time_t>(utc_ns / 1'000'000'000);
  std::tm parts{};
  if (local)
    ::localtime_r(&seconds, &parts);
  else
    ::gmtime_r(&seconds, &parts);
  char text[64];
  const size_t size = std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  return {text, size};
}

class Writer {
 public:
  Writer(const Timeline& timeline, Database& database) : timeline_(timeline), database_(database) {}

  Result<void> write() {
    STROBE_TRY(database_.execute("BEGIN"));
    STROBE_TRY(database_.execute(nsys::kCommonTables));
    STROBE_TRY(database_.execute(schema::kStrobeTables));
    for (const nsys::TableDefinition& table : nsys::derived_tables())
      STROBE_TRY(database_.execute(nsys::view_of(table)));
    STROBE_TRY(write_metadata());
    STROBE_TRY(write_session());
    STROBE_TRY(write_strings());
    STROBE_TRY(write_lanes());
    STROBE_TRY(write_core_runs());
    STROBE_TRY(write_network());
    STROBE_TRY(write_tables());
    STROBE_TRY(write_losses());
    return database_.execute("COMMIT");
  }

 private:
  Result<void> write_pairs(const char* table, std::initializer_list<std::pair<const char*, std::string>> pairs) {
    STROBE_ASSIGN(Statement insert, database_.prepare(std::string("INSERT INTO ") + table + " VALUES (?, ?)"));
    for (const auto& [name, value] : pairs) {
      insert.bind(0, std::string_view(name));
      insert.bind(1, std::string_view(value));
      STROBE_TRY(insert.insert());
    }
    return {};
  }

  Result<void> write_metadata() {
    STROBE_TRY(write_pairs("META_DATA_EXPORT", {{"EXPORT_PRODUCT_NAME", "Strobe"},
                                                {"EXPORT_PRODUCT_VERSION", version()},
                                                {"EXPORT_SCHEMA_VERSION", nsys::kSchemaVersion},
                                                {"EXPORT_SCHEMA_VERSION_MAJOR", "3"},
                                                {"EXPORT_SCHEMA_VERSION_MINOR", "25"},
                                                {"EXPORT_SCHEMA_VERSION_MICRO", "0"}}));
    STROBE_TRY(write_pairs("STROBE_META", {{"strobe_version", version()}, {"strobe_revision", git_revision()}}));
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO STROBE_META VALUES (?, ?)"));
    const std::pair<const char*, int64_t> numbers[] = {{"store_version", kStoreVersion},
                                                       {"utc_start_ns", timeline_.utc_start_ns},
                                                       {"duration_ns", timeline_.duration_ns},
                                                       {"range_count", static_cast<int64_t>(timeline_.ranges.size())}};
    for (const auto& [name, value] : numbers) {
      insert.bind(0, std::string_view(name));
      insert.bind(1, value);
      STROBE_TRY(insert.insert());
    }
    STROBE_ASSIGN(Statement fact, database_.prepare("INSERT INTO STROBE_FACT VALUES (?, ?)"));
    for (const auto& [name, value] : timeline_.facts) {
      fact.bind(0, std::string_view(name));
      fact.bind(1, std::string_view(value));
      STROBE_TRY(fact.insert());
    }
    return {};
  }

  Result<void> write_session() {
    STROBE_ASSIGN(Statement start,
                  database_.prepare("INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (?, ?, ?, NULL)"));
    const std::string utc = format_time(timeline_.utc_start_ns, false);
    const std::string local = format_time(timeline_.utc_start_ns, true);
    start.bind(0, timeline_.utc_start_ns);
    start.bind(1, std::string_view(utc));
    start.bind(2, std::string_view(local));
    STROBE_TRY(start.insert());
    STROBE_ASSIGN(Statement details, database_.prepare("INSERT INTO ANALYSIS_DETAILS VALUES (?, ?, 0, ?)"));
    details.bind(0, static_cast<int64_t>(schema::kVmId));
    details.bind(1, timeline_.duration_ns);
    details.bind(2, timeline_.duration_ns);
    return details.insert();
  }

  Result<void> write_strings() {
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO StringIds VALUES (?, ?)"));
    for (StringId id = 0; id < timeline_.strings.size(); ++id) {
      insert.bind(0, int64_t{id});
      insert.bind(1, timeline_.strings[id]);
      STROBE_TRY(insert.insert());
    }
    return {};
  }

  Result<void> write_lanes() {
    STROBE_ASSIGN(Statement process, database_.prepare("INSERT INTO STROBE_PROCESS VALUES (?, ?)"));
    for (const Process& row : timeline_.processes) {
      process.bind(0, int64_t{row.pid});
      process.bind(1, int64_t{row.name});
      STROBE_TRY(process.insert());
    }
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO STROBE_LANE VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    for (size_t i = 0; i < timeline_.lanes.size(); ++i) {
      const Lane& lane = timeline_.lanes[i];
      insert.bind(0, static_cast<int64_t>(i));
      insert.bind(1, static_cast<int64_t>(lane.kind));
      insert.bind(2, int64_t{lane.pid});
      insert.bind(3, int64_t{lane.tid});
      insert.bind(4, int64_t{lane.name});
      bind_unless(insert, 5, lane.device, kNone);
      bind_unless(insert, 6, lane.context, kNone);
      lane.kind == Lane::Kind::kThread ? insert.bind(7, schema::global_tid(lane.pid, lane.tid)) : insert.bind_null(7);
      insert.bind(8, schema::global_pid(lane.pid));
      STROBE_TRY(insert.insert());
    }
    return {};
  }

  Result<void> write_core_runs() {
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO STROBE_CORE_RUN VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
    for (const CoreRun& run : timeline_.core_runs) {
      insert.bind(0, int64_t{run.core});
      insert.bind(1, run.start_ns);
      insert.bind(2, run.end_ns);
      insert.bind(3, int64_t{run.pid});
      insert.bind(4, int64_t{run.tid});
      insert.bind(5, int64_t{run.name});
      bind_unless(insert, 6, run.holder, 0);
      insert.bind(7, int64_t{run.preempted ? 1 : 0});
      STROBE_TRY(insert.insert());
    }
    return {};
  }

  static void bind_unless(Statement& insert, int column, int64_t value, int64_t none) {
    value == none ? insert.bind_null(column) : insert.bind(column, value);
  }

  Result<void> write_network() {
    STROBE_ASSIGN(Statement layer, database_.prepare("INSERT INTO STROBE_LAYER VALUES (?, ?, ?, ?, ?, ?, ?)"));
    for (size_t i = 0; i < timeline_.layers.size(); ++i) {
      const NetworkLayer& row = timeline_.layers[i];
      const int64_t values[] = {static_cast<int64_t>(i), row.name, row.type, row.shape,
                                row.parameters,          row.flop, row.bytes};
      for (int column = 0; column < 7; ++column) layer.bind(column, values[column]);
      STROBE_TRY(layer.insert());
    }
    STROBE_ASSIGN(Statement kernel, database_.prepare("INSERT INTO STROBE_KERNEL VALUES (?, ?, ?, ?)"));
    STROBE_ASSIGN(Statement part, database_.prepare("INSERT INTO STROBE_KERNEL_LAYER VALUES (?, ?)"));
    STROBE_ASSIGN(Statement sample, database_.prepare("INSERT INTO STROBE_KERNEL_SAMPLE VALUES (?, ?)"));
    for (size_t i = 0; i < timeline_.kernels.size(); ++i) {
      const NetworkKernel& row = timeline_.kernels[i];
      const int64_t values[] = {static_cast<int64_t>(i), row.name, row.type, row.implementation};
      for (int column = 0; column < 4; ++column) kernel.bind(column, values[column]);
      STROBE_TRY(kernel.insert());
      part.bind(0, static_cast<int64_t>(i));
      for (const int32_t index : row.layers) {
        part.bind(1, int64_t{index});
        STROBE_TRY(part.insert());
      }
      sample.bind(0, static_cast<int64_t>(i));
      for (const int64_t duration : row.duration_ns) {
        sample.bind(1, duration);
        STROBE_TRY(sample.insert());
      }
    }
    return {};
  }

  Result<void> write_cell(Statement& insert, const Cell& cell) {
    if (const auto* count = std::get_if<int64_t>(&cell))
      insert.bind(3, *count);
    else if (const auto* measure = std::get_if<double>(&cell))
      insert.bind(3, *measure);
    else if (const auto* text = std::get_if<std::string>(&cell))
      insert.bind(3, std::string_view(*text));
    else
      insert.bind_null(3);
    return insert.insert();
  }

  Result<void> write_tables() {
    STROBE_ASSIGN(Statement head, database_.prepare("INSERT INTO STROBE_TABLE VALUES (?, ?, ?)"));
    STROBE_ASSIGN(Statement column, database_.prepare("INSERT INTO STROBE_TABLE_COLUMN VALUES (?, ?, ?, ?)"));
    STROBE_ASSIGN(Statement cell, database_.prepare("INSERT INTO STROBE_TABLE_CELL VALUES (?, ?, ?, ?)"));
    STROBE_ASSIGN(Statement note, database_.prepare("INSERT INTO STROBE_TABLE_NOTE VALUES (?, ?)"));
    for (size_t i = 0; i < timeline_.tables.size(); ++i) {
      const Table& table = timeline_.tables[i];
      const auto id = static_cast<int64_t>(i);
      head.bind(0, id);
      head.bind(1, std::string_view(table.title()));
      table.coverage ? head.bind(2, *table.coverage) : head.bind_null(2);
      STROBE_TRY(head.insert());
      for (const Column& description : table.columns()) {
        column.bind(0, id);
        column.bind(1, std::string_view(description.name));
        column.bind(2, std::string_view(description.help));
        column.bind(3, int64_t{description.decimals});
        STROBE_TRY(column.insert());
      }
      for (size_t row = 0; row < table.rows().size(); ++row) {
        for (size_t k = 0; k < table.rows()[row].size(); ++k) {
          cell.bind(0, id);
          cell.bind(1, static_cast<int64_t>(row));
          cell.bind(2, static_cast<int64_t>(k));
          STROBE_TRY(write_cell(cell, table.rows()[row][k]));
        }
      }
      for (const std::string& text : table.notes) {
        note.bind(0, id);
        note.bind(1, std::string_view(text));
        STROBE_TRY(note.insert());
      }
    }
    return {};
  }

  Result<void> write_loss(const char* kind, const std::string& name, uint64_t count) {
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO STROBE_LOSS VALUES (?, ?, ?)"));
    insert.bind(0, std::string_view(kind));
    insert.bind(1, std::string_view(name));
    insert.bind(2, static_cast<int64_t>(count));
    STROBE_TRY(insert.insert());
    // Where users of Nsight Systems look for such warnings: of this run (1), by the recorder (1), a warning (2).
    STROBE_ASSIGN(Statement event, database_.prepare("INSERT INTO DIAGNOSTIC_EVENT VALUES (?, 1, 1, 2, ?, NULL)"));
    const std::string text = "Recording lost or could not read: " + std::to_string(count) + " x " + name;
    event.bind(0, timeline_.duration_ns);
    event.bind(1, std::string_view(text));
    return event.insert();
  }

  Result<void> write_losses() {
    if (timeline_.losses.dropped_records > 0)
      STROBE_TRY(write_loss("dropped", "dropped records", timeline_.losses.dropped_records));
    for (const auto& [name, count] : timeline_.losses.faults) STROBE_TRY(write_loss("fault", name, count));
    return {};
  }

  const Timeline& timeline_;
  Database& database_;
};

}  // namespace

Result<void> write_store(const Timeline& timeline, const fs::path& path) {
  return write_new_file(path, [&timeline](const fs::path& temporary) -> Result<void> {
    STROBE_ASSIGN(Database database, Database::create(temporary, page_size_for(timeline)));
    STROBE_TRY(Writer(timeline, database).write());
    STROBE_ASSIGN(const RootPages roots, root_pages(database));
    STROBE_TRY(database.close());
    return write_bulk_tables(timeline, temporary, roots);
  });
}

}  // namespace strobe::trace
