#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <future>
#include <limits>
#include <optional>

#include "trace/store.h"
#include "trace/store_additions.h"
#include "trace/store_arguments.h"
#include "trace/store_ranges.h"
#include "trace/store_rows.h"

namespace strobe::trace {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kAnyInt32[] = {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};

class Reader {
 public:
  Reader(const fs::path& path, Database& database, uint64_t file_size, StoreParts parts)
      : path_(path), database_(database), file_size_(file_size), parts_(parts), budget_{file_size, file_size} {}

  Result<Timeline> read() {
    STROBE_TRY(read_meta());
    STROBE_TRY(read_strings());
    STROBE_TRY(read_processes());
    STROBE_TRY(read_lanes());
    STROBE_TRY(read_all_ranges());
    STROBE_TRY(read_what_has_ranges());
    STROBE_TRY(read_additions(database_, budget_, strings_, timeline_, parts_));
    STROBE_TRY(read_layers());
    STROBE_TRY(read_kernels());
    STROBE_TRY(read_tables());
    STROBE_TRY(read_facts());
    timeline_.finish();
    timeline_.losses = {};  // those of the recording, which finish() would count twice
    STROBE_TRY(read_losses());
    return std::move(timeline_);
  }

 private:
  Result<Rows> rows(const char* table, const char* columns) { return Rows::open(database_, table, columns, budget_); }
  StringId string(Rows& rows, int column) {
    const int32_t id = rows.index(column, strings_.size());
    return rows.failed() ? 0 : strings_[static_cast<size_t>(id)];
  }

  static int32_t int32(Rows& rows, int column) {
    return static_cast<int32_t>(rows.within(column, kAnyInt32[0], kAnyInt32[1]));
  }
  static int32_t int32_or(Rows& rows, int column, int32_t none) {
    return rows.is_null(column) ? none : int32(rows, column);
  }
  static int64_t integer_or(Rows& rows, int column, int64_t none) {
    return rows.is_null(column) ? none : rows.integer(column);
  }

  Result<void> read_meta() {
    STROBE_ASSIGN(Rows meta, rows("STROBE_META", "name, value"));
    std::optional<int64_t> store_version;
    while (meta.next()) {
      const std::string name(meta.text(0));
      if (name == "store_version") store_version = meta.integer(1);
      if (name == "utc_start_ns") timeline_.utc_start_ns = meta.integer(1);
      if (name == "range_count") range_count_ = static_cast<uint64_t>(std::max<int64_t>(0, meta.integer(1)));
      if (name == "duration_ns") timeline_.duration_ns = std::max<int64_t>(0, meta.time(1));
    }
    STROBE_TRY(meta.status());
    if (!store_version) return bad_data("STROBE_META does not say its store_version");
    if (*store_version != kStoreVersion)
      return bad_data("written as version " + std::to_string(*store_version) +
                      " of the trace file; this Strobe reads " + std::to_string(kStoreVersion));
    return {};
  }

  Result<void> read_strings() {
    STROBE_ASSIGN(Rows texts, rows("StringIds", "id, value"));
    while (texts.next()) {
      if (texts.integer(0) != texts.number())
        texts.fail("id is " + std::to_string(texts.integer(0)) + ", expected " + std::to_string(texts.number()));
      strings_.push_back(timeline_.strings.intern(texts.text(1)));
    }
    return texts.status();
  }

  Result<void> read_processes() {
    STROBE_ASSIGN(Rows processes, rows("STROBE_PROCESS", "pid, nameId"));
    while (processes.next()) {
      const int32_t pid = int32(processes, 0);
      timeline_.processes.push_back({pid, string(processes, 1)});
    }
    return processes.status();
  }

  Result<void> read_lanes() {
    STROBE_ASSIGN(Rows lanes, rows("STROBE_LANE", "id, kind, pid, tid, nameId, device, context"));
    while (lanes.next()) {
      lanes.within(0, lanes.number(), lanes.number());
      timeline_.lanes.push_back({static_cast<Lane::Kind>(lanes.within(1, 0, 2)), int32(lanes, 2), int32(lanes, 3),
                                 string(lanes, 4), int32_or(lanes, 5, kNone), int32_or(lanes, 6, kNone)});
    }
    return lanes.status();
  }

  Result<void> read_all_ranges() {
    STROBE_ASSIGN(timeline_.ranges, read_ranges({path_, file_size_, range_count_, timeline_.lanes.size(), &strings_}));
    return {};
  }

  // Arguments, which are most, beside all the rest.
  Result<void> read_what_has_ranges() {
    if (parts_ == StoreParts::kRanges) return {};
    if (parts_ == StoreParts::kOperations) {
      STROBE_TRY(read_device_ops());
      return read_api_calls();
    }
    const RangeTable table{path_, file_size_, timeline_.ranges.size(), timeline_.lanes.size(), &strings_};
    auto other = std::async(std::launch::async, [&table] { return read_arguments(table); });
    Result<void> read = read_the_rest();
    Result<Arguments> arguments = other.get();
    STROBE_TRY(std::move(read));
    STROBE_ASSIGN(timeline_.arguments, std::move(arguments));
    return {};
  }
  Result<void> read_the_rest() {
    STROBE_TRY(read_device_ops());
    STROBE_TRY(read_api_calls());
    STROBE_TRY(read_marks());
    STROBE_TRY(read_flows());
    return read_counters();
  }

  // Rows that tell more of a range each: by range, at most one a range.
  int32_t next_range(Rows& table, int32_t previous) const {
    const int32_t range = table.index(0, timeline_.ranges.size());
    if (range <= previous) table.fail("rangeId is " + std::to_string(range) + ", expected an ascending one");
    return range;
  }

  Result<void> read_device_ops() {
    STROBE_ASSIGN(Rows table,
                  rows("STROBE_DEVICE_OP",
                       "rangeId, launchId, correlation, bytes, copyKind, sourceKind, targetKind, syncType, syncStream, "
                       "syncCorrelation, gridX, gridY, gridZ, blockX, blockY, blockZ, registers, staticShared, "
                       "dynamicShared"));
    const auto byte = [&table](int column) { return static_cast<uint8_t>(table.within(column, 0, 255)); };
    int32_t previous = kNone;
    while (table.next()) {
      DeviceOp op;
      op.range = previous = next_range(table, previous);
      op.launch = table.optional_index(1, timeline_.ranges.size());
      op.correlation = integer_or(table, 2, 0);
      op.bytes = integer_or(table, 3, -1);
      op.copy_kind = byte(4);
      op.source_kind = byte(5);
      op.target_kind = byte(6);
      op.sync_type = byte(7);
      op.sync_stream = int32_or(table, 8, kNone);
      op.sync_correlation = integer_or(table, 9, 0);
      for (int axis = 0; axis < 3; ++axis) {
        constexpr int64_t kMost = std::numeric_limits<uint32_t>::max();
        op.grid[axis] = static_cast<uint32_t>(table.within(10 + axis, 0, kMost));
        op.block[axis] = static_cast<uint32_t>(table.within(13 + axis, 0, kMost));
      }
      op.registers = int32_or(table, 16, -1);
      op.static_shared = int32_or(table, 17, -1);
      op.dynamic_shared = int32_or(table, 18, -1);
      timeline_.device_ops.push_back(op);
    }
    return table.status();
  }

  Result<void> read_api_calls() {
    STROBE_ASSIGN(Rows table, rows("STROBE_API_CALL", "rangeId, correlation"));
    int32_t previous = kNone;
    while (table.next()) {
      previous = next_range(table, previous);
      timeline_.api_calls.push_back({previous, integer_or(table, 1, 0)});
    }
    return table.status();
  }

  Result<void> read_marks() {
    STROBE_ASSIGN(Rows table, rows("STROBE_MARK", "id, time, nameId, laneId, frame"));
    Marks& marks = timeline_.marks;
    while (table.next()) {
      table.within(0, table.number(), table.number());
      marks.time_ns.push_back(table.time(1));
      marks.name.push_back(string(table, 2));
      marks.lane.push_back(table.index(3, timeline_.lanes.size()));
      marks.frame.push_back(integer_or(table, 4, kNoFrame));
    }
    return table.status();
  }

  // SQLite keeps "not a number" as NULL.
  static double real(const Rows& table, int column) {
    return table.is_null(column) ? std::numeric_limits<double>::quiet_NaN() : table.real(column);
  }

  Result<void> read_flows() {
    STROBE_ASSIGN(Rows table, rows("STROBE_FLOW", "nameId, start, end, fromRangeId, toRangeId, fromLaneId, toLaneId"));
    Flows& flows = timeline_.flows;
    const size_t range_count = timeline_.ranges.size(), lane_count = timeline_.lanes.size();
    while (table.next()) {
      flows.name.push_back(string(table, 0));
      flows.from_ns.push_back(table.time(1));
      flows.to_ns.push_back(table.time(2));
      flows.from_range.push_back(table.optional_index(3, range_count));
      flows.to_range.push_back(table.optional_index(4, range_count));
      flows.from_lane.push_back(table.optional_index(5, lane_count));
      flows.to_lane.push_back(table.optional_index(6, lane_count));
    }
    return table.status();
  }

  Result<void> read_counters() {
    STROBE_ASSIGN(Rows table, rows("STROBE_COUNTER", "timestamp, nameId, pid, value"));
    Counters& counters = timeline_.counters;
    while (table.next()) {
      counters.time_ns.push_back(table.time(0));
      counters.name.push_back(string(table, 1));
      counters.pid.push_back(int32(table, 2));
      counters.value.push_back(real(table, 3));
    }
    return table.status();
  }

  Result<void> read_layers() {
    STROBE_ASSIGN(Rows table, rows("STROBE_LAYER", "id, nameId, typeId, shapeId, parameters, flop, bytes"));
    while (table.next()) {
      table.within(0, table.number(), table.number());
      timeline_.layers.push_back(
          {string(table, 1), string(table, 2), string(table, 3), table.integer(4), table.integer(5), table.integer(6)});
    }
    return table.status();
  }

  Result<void> read_kernels() {
    auto& kernels = timeline_.kernels;
    STROBE_ASSIGN(Rows table, rows("STROBE_KERNEL", "id, nameId, typeId, implementationId"));
    while (table.next()) {
      table.within(0, table.number(), table.number());
      kernels.push_back({string(table, 1), string(table, 2), string(table, 3), {}, {}});
    }
    STROBE_TRY(table.status());
    STROBE_ASSIGN(Rows parts, rows("STROBE_KERNEL_LAYER", "kernelId, layerId"));
    while (parts.next()) {
      const int32_t kernel = parts.index(0, kernels.size());
      const int32_t layer = parts.index(1, timeline_.layers.size());
      if (!parts.failed()) kernels[static_cast<size_t>(kernel)].layers.push_back(layer);
    }
    STROBE_TRY(parts.status());
    STROBE_ASSIGN(Rows samples, rows("STROBE_KERNEL_SAMPLE", "kernelId, duration"));
    while (samples.next()) {
      const int32_t kernel = samples.index(0, kernels.size());
      const int64_t duration = samples.time(1);
      if (!samples.failed()) kernels[static_cast<size_t>(kernel)].duration_ns.push_back(duration);
    }
    return samples.status();
  }

  static Cell cell(Rows& table, int column) {
    if (table.is_null(column)) return {};
    if (table.is_text(column)) return std::string(table.text(column));
    if (table.is_real(column)) return table.real(column);
    return table.integer(column);
  }

  // Columns, then cells row by row: a table is complete only then, as its parts stand in tables of their own.
  Result<void> read_tables() {
    std::vector<std::vector<Column>> columns;
    std::vector<std::pair<std::string, std::optional<double>>> heads;
    STROBE_ASSIGN(Rows head, rows("STROBE_TABLE", "id, title, coverage"));
    while (head.next()) {
      head.within(0, head.number(), head.number());
      heads.emplace_back(head.text(1), head.is_null(2) ? std::nullopt : std::optional(head.real(2)));
    }
    STROBE_TRY(head.status());
    columns.resize(heads.size());
    STROBE_ASSIGN(Rows names, rows("STROBE_TABLE_COLUMN", "tableId, name, help, decimals"));
    while (names.next()) {
      const int32_t table = names.index(0, heads.size());
      Column column{std::string(names.text(1)), std::string(names.text(2)), static_cast<int>(names.within(3, 0, 20))};
      if (!names.failed()) columns[static_cast<size_t>(table)].push_back(std::move(column));
    }
    STROBE_TRY(names.status());
    auto& tables = timeline_.tables;
    for (size_t i = 0; i < heads.size(); ++i) {
      tables.emplace_back(std::move(heads[i].first), std::move(columns[i]));
      tables.back().coverage = heads[i].second;
    }
    STROBE_TRY(read_table_cells());
    STROBE_ASSIGN(Rows notes, rows("STROBE_TABLE_NOTE", "tableId, text"));
    while (notes.next()) {
      const int32_t table = notes.index(0, tables.size());
      if (!notes.failed()) tables[static_cast<size_t>(table)].notes.emplace_back(notes.text(1));
    }
    return notes.status();
  }

  Result<void> read_table_cells() {
    auto& tables = timeline_.tables;
    STROBE_ASSIGN(Rows cells, rows("STROBE_TABLE_CELL", "tableId, rowNumber, columnNumber, value"));
    std::vector<Cell> row;
    int32_t current = kNone;
    while (cells.next()) {
      const int32_t index = cells.index(0, tables.size());
      if (cells.failed()) break;
      if (index != current && !row.empty()) cells.fail("the row before it is not complete");
      current = index;
      Table& table = tables[static_cast<size_t>(index)];
      const auto row_number = static_cast<int64_t>(table.row_count()), column = static_cast<int64_t>(row.size());
      cells.within(1, row_number, row_number);
      cells.within(2, column, column);
      row.push_back(cell(cells, 3));
      if (cells.failed() || row.size() > table.columns().size()) break;
      if (row.size() < table.columns().size()) continue;
      table.add_row(std::move(row));
      row.clear();
    }
    STROBE_TRY(cells.status());
    if (!row.empty()) return bad_data("STROBE_TABLE_CELL: a row has not as many cells as its table has columns");
    return {};
  }

  Result<void> read_facts() {
    STROBE_ASSIGN(Rows table, rows("STROBE_FACT", "name, value"));
    while (table.next()) {
      std::string name(table.text(0));
      timeline_.facts[std::move(name)] = table.text(1);
    }
    return table.status();
  }

  Result<void> read_losses() {
    STROBE_ASSIGN(Rows table, rows("STROBE_LOSS", "kind, name, count"));
    while (table.next()) {
      const auto count = static_cast<uint64_t>(table.integer(2));
      if (table.text(0) == "dropped")
        timeline_.losses.dropped_records = count;
      else
        timeline_.losses.faults[std::string(table.text(1))] = count;
    }
    return table.status();
  }

  const fs::path& path_;
  Database& database_;
  uint64_t file_size_;
  StoreParts parts_;
  uint64_t range_count_ = 0;
  ReadBudget budget_;
  Timeline timeline_;
  std::vector<StringId> strings_;  // by id in the file
};

// What the header of a SQLite file says that its size is; 0 where it does not say.
uint64_t size_by_header(const unsigned char (&header)[100]) {
  const auto number = [&header](size_t at) {
    return uint64_t{header[at]} << 24 | uint64_t{header[at + 1]} << 16 | uint64_t{header[at + 2]} << 8 | header[at + 3];
  };
  const uint64_t page = uint64_t{header[16]} << 8 | header[17];
  // The count of pages is good while the two change counters agree.
  return number(24) == number(92) ? number(28) * (page == 1 ? 65536 : page) : 0;
}

// The file's size, after a look at its first bytes: SQLite itself would take an empty file for an empty database, and
// zeros for what is cut off the last page.
Result<uint64_t> check_header(const fs::path& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return not_found("no such file");
    return io_error(std::strerror(errno));
  }
  if (S_ISDIR(facts.st_mode)) return io_error("is a folder, expected a trace file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return io_error(std::strerror(errno));
  unsigned char header[100] = {};
  file.read(reinterpret_cast<char*>(header), sizeof header);
  if (file.gcount() < 16 || std::memcmp(header, "SQLite format 3", 16) != 0)
    return bad_data("not a SQLite file, expected a Strobe trace");
  const auto size = static_cast<uint64_t>(facts.st_size);
  if (size < size_by_header(header))
    return bad_data("SQLite file cut short: " + std::to_string(size) + " of the " +
                    std::to_string(size_by_header(header)) + " bytes that its header says");
  return size;
}

Result<Timeline> read_from(const fs::path& path, StoreParts parts) {
  STROBE_ASSIGN(const uint64_t size, check_header(path));
  STROBE_ASSIGN(Database database, Database::open(path));
  limit_reading(database, size);
  return Reader(path, database, size, parts).read();
}

}  // namespace

Result<Timeline> read_store(const fs::path& path, StoreParts parts) {
  auto timeline = read_from(path, parts);
  if (!timeline) return std::move(timeline.error().at(path.string()));
  return timeline;
}

}  // namespace strobe::trace
