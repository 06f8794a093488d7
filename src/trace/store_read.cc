#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <optional>

#include "trace/schema.h"
#include "trace/store.h"
#include "trace/store_rows.h"

namespace strobe::trace {

namespace fs = std::filesystem;

namespace {

constexpr int64_t kAnyInt32[] = {std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max()};

class Reader {
 public:
  Reader(Database& database, uint64_t file_size) : database_(database), budget_{file_size, file_size} {}

  Result<Timeline> read() {
    STROBE_TRY(read_meta());
    STROBE_TRY(read_strings());
    STROBE_TRY(read_processes());
    STROBE_TRY(read_lanes());
    STROBE_TRY(read_events());
    STROBE_TRY(read_arguments());
    STROBE_TRY(read_flows());
    STROBE_TRY(read_counters());
    STROBE_TRY(read_layers());
    STROBE_TRY(read_kernels());
    STROBE_TRY(read_facts());
    // Parents are computed anew: what the file says of them cannot lead anyone in circles.
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

  Result<void> read_meta() {
    STROBE_ASSIGN(Rows meta, rows("STROBE_META", "name, value"));
    std::optional<int64_t> store_version;
    while (meta.next()) {
      const std::string name(meta.text(0));
      if (name == "store_version") store_version = meta.integer(1);
      if (name == "utc_start_ns") timeline_.utc_start_ns = meta.integer(1);
      if (name == "duration_ns") timeline_.duration_ns = std::max<int64_t>(0, meta.time(1));
    }
    STROBE_TRY(meta.status());
    if (!store_version) return bad_data("STROBE_META does not say its store_version");
    if (*store_version > kStoreVersion || *store_version < 1)
      return bad_data("written as version " + std::to_string(*store_version) +
                      " of the trace file; this Strobe reads up to " + std::to_string(kStoreVersion));
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
    STROBE_ASSIGN(Rows processes, rows("PROCESSES", "pid, name"));
    while (processes.next()) {
      const auto pid = static_cast<int32_t>(processes.within(0, kAnyInt32[0], kAnyInt32[1]));
      timeline_.processes.push_back({pid, timeline_.strings.intern(processes.text(1))});
    }
    return processes.status();
  }

  Result<void> read_lanes() {
    STROBE_ASSIGN(Rows lanes, rows("STROBE_LANE", "id, kind, pid, tid, nameId"));
    while (lanes.next()) {
      lanes.within(0, lanes.number(), lanes.number());
      timeline_.lanes.push_back({static_cast<Lane::Kind>(lanes.within(1, 0, 2)),
                                 static_cast<int32_t>(lanes.within(2, kAnyInt32[0], kAnyInt32[1])),
                                 static_cast<int32_t>(lanes.within(3, kAnyInt32[0], kAnyInt32[1])), string(lanes, 4)});
    }
    return lanes.status();
  }

  // Moves events on to the row that another table points at; both are in the same order.
  static bool seek(Rows& events, int64_t event_id, Rows& from) {
    while (events.next()) {
      if (events.integer(0) == event_id) return true;
      if (events.integer(0) > event_id) break;
    }
    if (!events.failed()) from.fail("there is no event " + std::to_string(event_id) + " in NVTX_EVENTS where expected");
    return false;
  }

  Result<void> read_events() {
    STROBE_ASSIGN(Rows events, rows("NVTX_EVENTS", "rowid, start, end, eventType, textId"));
    STROBE_TRY(read_ranges(events));
    STROBE_ASSIGN(Rows links, rows("STROBE_MARK", "id, eventId, laneId, frame"));
    Marks& marks = timeline_.marks;
    while (links.next() && seek(events, links.integer(1), links)) {
      marks.time_ns.push_back(events.time(1));
      marks.name.push_back(string(events, 4));
      marks.lane.push_back(links.index(2, timeline_.lanes.size()));
      marks.frame.push_back(links.is_null(3) ? kNoFrame : links.integer(3));
    }
    STROBE_TRY(events.status());
    return links.status();
  }

  Result<void> read_ranges(Rows& events) {
    STROBE_ASSIGN(Rows links, rows("STROBE_RANGE", "id, eventId, laneId, frame, open"));
    STROBE_ASSIGN(Rows devices, rows("STROBE_DEVICE_RANGE", "rangeId, start, end, nameId, isAsync"));
    Ranges& ranges = timeline_.ranges;
    while (links.next()) {
      links.within(0, links.number(), links.number());
      if (links.number() >= kAnyInt32[1]) links.fail("more ranges than this Strobe can hold");
      const bool on_device = links.is_null(1);
      if (on_device) {
        if (!devices.next() || devices.integer(0) != links.integer(0))
          links.fail("it has no row in STROBE_DEVICE_RANGE");
      } else {
        seek(events, links.integer(1), links);
      }
      if (links.failed() || events.failed() || devices.failed()) break;
      Rows& row = on_device ? devices : events;
      const bool open = links.integer(4) != 0;
      const int64_t start = row.time(1);
      const int64_t end = row.is_null(2) ? std::max(start, timeline_.duration_ns) : row.time(2);
      if (end < start) row.fail("it ends before it starts");
      if (!on_device && events.integer(3) != schema::kPushPopRange && events.integer(3) != schema::kStartEndRange)
        events.fail("eventType is " + std::to_string(events.integer(3)) + ", expected that of a range");
      ranges.start_ns.push_back(start);
      ranges.end_ns.push_back(end);
      ranges.name.push_back(string(row, on_device ? 3 : 4));
      ranges.lane.push_back(links.index(2, timeline_.lanes.size()));
      ranges.frame.push_back(links.is_null(3) ? kNoFrame : links.integer(3));
      ranges.is_async.push_back(on_device ? devices.integer(4) != 0 : events.integer(3) == schema::kStartEndRange);
      ranges.open.push_back(open ? 1 : 0);
    }
    STROBE_TRY(events.status());
    STROBE_TRY(devices.status());
    return links.status();
  }

  Result<void> read_arguments() {
    STROBE_ASSIGN(Rows table, rows("STROBE_ARGUMENT", "rangeId, keyId, int64Value, doubleValue, textId"));
    Arguments& arguments = timeline_.arguments;
    while (table.next()) {
      arguments.range.push_back(table.index(0, timeline_.ranges.size()));
      arguments.key.push_back(string(table, 1));
      if (!table.is_null(2))
        arguments.value.emplace_back(table.integer(2));
      else if (!table.is_null(4))
        arguments.value.emplace_back(string(table, 4));
      else
        arguments.value.emplace_back(real(table, 3));
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
      counters.pid.push_back(static_cast<int32_t>(table.within(2, kAnyInt32[0], kAnyInt32[1])));
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

  Database& database_;
  ReadBudget budget_;
  Timeline timeline_;
  std::vector<StringId> strings_;  // by id in the file
};

// The file's size, after a look at its first bytes: SQLite itself would take an empty file for an empty database.
Result<uint64_t> check_header(const fs::path& path) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) {
    if (errno == ENOENT || errno == ENOTDIR) return not_found("no such file");
    return io_error(std::strerror(errno));
  }
  if (S_ISDIR(facts.st_mode)) return io_error("is a folder, expected a trace file");
  std::ifstream file(path, std::ios::binary);
  if (!file) return io_error(std::strerror(errno));
  char magic[16] = {};
  file.read(magic, sizeof magic);
  if (file.gcount() != sizeof magic || std::memcmp(magic, "SQLite format 3", sizeof magic) != 0)
    return bad_data("not a SQLite file, expected a Strobe trace");
  return static_cast<uint64_t>(facts.st_size);
}

Result<Timeline> read_from(const fs::path& path) {
  STROBE_ASSIGN(const uint64_t size, check_header(path));
  STROBE_ASSIGN(Database database, Database::open(path));
  database.limit_values(size);
  return Reader(database, size).read();
}

}  // namespace

Result<Timeline> read_store(const fs::path& path) {
  auto timeline = read_from(path);
  if (!timeline) return std::move(timeline.error().at(path.string()));
  return timeline;
}

}  // namespace strobe::trace
