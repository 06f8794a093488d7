#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <ctime>

#include "base/version.h"
#include "trace/schema.h"
#include "trace/sqlite.h"
#include "trace/store.h"

namespace strobe::trace {

namespace fs = std::filesystem;

namespace {

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
    STROBE_TRY(database_.execute(schema::kNsysTables));
    STROBE_TRY(database_.execute(schema::kStrobeTables));
    STROBE_TRY(write_metadata());
    STROBE_TRY(write_session());
    STROBE_TRY(write_strings());
    STROBE_TRY(write_lanes());
    STROBE_TRY(write_ranges());
    STROBE_TRY(write_marks());
    STROBE_TRY(write_arguments());
    STROBE_TRY(write_flows());
    STROBE_TRY(write_counters());
    STROBE_TRY(write_network());
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
                                                {"EXPORT_SCHEMA_VERSION", schema::kNsysSchemaVersion},
                                                {"EXPORT_SCHEMA_VERSION_MAJOR", "3"},
                                                {"EXPORT_SCHEMA_VERSION_MINOR", "25"},
                                                {"EXPORT_SCHEMA_VERSION_MICRO", "0"}}));
    STROBE_TRY(write_pairs("STROBE_META", {{"strobe_version", version()}, {"strobe_revision", git_revision()}}));
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO STROBE_META VALUES (?, ?)"));
    const std::pair<const char*, int64_t> numbers[] = {{"store_version", kStoreVersion},
                                                       {"utc_start_ns", timeline_.utc_start_ns},
                                                       {"duration_ns", timeline_.duration_ns}};
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
    STROBE_ASSIGN(Statement process, database_.prepare("INSERT INTO PROCESSES VALUES (?, ?, ?)"));
    for (const Process& row : timeline_.processes) {
      process.bind(0, schema::global_pid(row.pid));
      process.bind(1, int64_t{row.pid});
      process.bind(2, timeline_.strings[row.name]);
      STROBE_TRY(process.insert());
    }
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO STROBE_LANE VALUES (?, ?, ?, ?, ?, ?)"));
    STROBE_ASSIGN(Statement name, database_.prepare("INSERT INTO ThreadNames VALUES (?, NULL, ?)"));
    for (size_t i = 0; i < timeline_.lanes.size(); ++i) {
      const Lane& lane = timeline_.lanes[i];
      const bool is_thread = lane.kind == Lane::Kind::kThread;
      const int64_t global_tid = is_thread ? schema::global_tid(lane.pid, lane.tid) : 0;
      global_tids_.push_back(global_tid);
      is_thread_.push_back(is_thread ? 1 : 0);
      insert.bind(0, static_cast<int64_t>(i));
      insert.bind(1, static_cast<int64_t>(lane.kind));
      insert.bind(2, int64_t{lane.pid});
      insert.bind(3, int64_t{lane.tid});
      insert.bind(4, int64_t{lane.name});
      is_thread ? insert.bind(5, global_tid) : insert.bind_null(5);
      STROBE_TRY(insert.insert());
      if (!is_thread || lane.name == 0) continue;
      name.bind(0, int64_t{lane.name});
      name.bind(1, global_tid);
      STROBE_TRY(name.insert());
    }
    return {};
  }

  static void bind_index(Statement& insert, int column, int64_t value) {
    value == kNone ? insert.bind_null(column) : insert.bind(column, value);
  }

  Result<void> write_ranges() {
    const Ranges& ranges = timeline_.ranges;
    STROBE_ASSIGN(Statement event,
                  database_.prepare("INSERT INTO NVTX_EVENTS (rowid, start, end, eventType, globalTid, endGlobalTid, "
                                    "textId, domainId) VALUES (?1, ?2, ?3, ?4, ?5, ?5, ?6, 0)"));
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO STROBE_RANGE VALUES (?, ?, ?, ?, ?, ?)"));
    STROBE_ASSIGN(Statement device, database_.prepare("INSERT INTO STROBE_DEVICE_RANGE VALUES (?, ?, ?, ?, ?)"));
    for (size_t i = 0; i < ranges.size(); ++i) {
      const auto lane = static_cast<size_t>(ranges.lane[i]);
      const auto id = static_cast<int64_t>(i);
      insert.bind(0, id);
      if (is_thread_[lane]) {
        insert.bind(1, ++event_count_);
        event.bind(0, event_count_);
        event.bind(1, ranges.start_ns[i]);
        ranges.open[i] ? event.bind_null(2) : event.bind(2, ranges.end_ns[i]);
        event.bind(3, ranges.is_async[i] ? schema::kStartEndRange : schema::kPushPopRange);
        event.bind(4, global_tids_[lane]);
        event.bind(5, int64_t{ranges.name[i]});
        STROBE_TRY(event.insert());
      } else {
        insert.bind_null(1);
        device.bind(0, id);
        device.bind(1, ranges.start_ns[i]);
        device.bind(2, ranges.end_ns[i]);
        device.bind(3, int64_t{ranges.name[i]});
        device.bind(4, int64_t{ranges.is_async[i]});
        STROBE_TRY(device.insert());
      }
      insert.bind(2, int64_t{ranges.lane[i]});
      bind_index(insert, 3, ranges.frame[i]);
      bind_index(insert, 4, ranges.parent[i]);
      insert.bind(5, int64_t{ranges.open[i]});
      STROBE_TRY(insert.insert());
    }
    return {};
  }

  Result<void> write_marks() {
    const Marks& marks = timeline_.marks;
    STROBE_ASSIGN(Statement event, database_.prepare("INSERT INTO NVTX_EVENTS (rowid, start, eventType, globalTid, "
                                                     "textId, domainId) VALUES (?, ?, ?, ?, ?, 0)"));
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO STROBE_MARK VALUES (?, ?, ?, ?)"));
    for (size_t i = 0; i < marks.size(); ++i) {
      event.bind(0, ++event_count_);
      event.bind(1, marks.time_ns[i]);
      event.bind(2, schema::kMark);
      event.bind(3, global_tids_[static_cast<size_t>(marks.lane[i])]);
      event.bind(4, int64_t{marks.name[i]});
      STROBE_TRY(event.insert());
      insert.bind(0, static_cast<int64_t>(i));
      insert.bind(1, event_count_);
      insert.bind(2, int64_t{marks.lane[i]});
      bind_index(insert, 3, marks.frame[i]);
      STROBE_TRY(insert.insert());
    }
    return {};
  }

  Result<void> write_arguments() {
    const Arguments& arguments = timeline_.arguments;
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO STROBE_ARGUMENT VALUES (?, ?, ?, ?, ?)"));
    for (size_t i = 0; i < arguments.size(); ++i) {
      insert.bind(0, int64_t{arguments.range[i]});
      insert.bind(1, int64_t{arguments.key[i]});
      for (int column = 2; column < 5; ++column) insert.bind_null(column);
      const auto& value = arguments.value[i];
      if (const auto* integer = std::get_if<int64_t>(&value))
        insert.bind(2, *integer);
      else if (const auto* real = std::get_if<double>(&value))
        insert.bind(3, *real);
      else
        insert.bind(4, int64_t{std::get<StringId>(value)});
      STROBE_TRY(insert.insert());
    }
    return {};
  }

  Result<void> write_flows() {
    const Flows& flows = timeline_.flows;
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO STROBE_FLOW VALUES (?, ?, ?, ?, ?, ?, ?)"));
    for (size_t i = 0; i < flows.size(); ++i) {
      insert.bind(0, int64_t{flows.name[i]});
      insert.bind(1, flows.from_ns[i]);
      insert.bind(2, flows.to_ns[i]);
      bind_index(insert, 3, flows.from_range[i]);
      bind_index(insert, 4, flows.to_range[i]);
      bind_index(insert, 5, flows.from_lane[i]);
      bind_index(insert, 6, flows.to_lane[i]);
      STROBE_TRY(insert.insert());
    }
    return {};
  }

  Result<void> write_counters() {
    const Counters& counters = timeline_.counters;
    STROBE_ASSIGN(Statement insert, database_.prepare("INSERT INTO STROBE_COUNTER VALUES (?, ?, ?, ?)"));
    for (size_t i = 0; i < counters.size(); ++i) {
      insert.bind(0, counters.time_ns[i]);
      insert.bind(1, int64_t{counters.name[i]});
      insert.bind(2, int64_t{counters.pid[i]});
      insert.bind(3, counters.value[i]);
      STROBE_TRY(insert.insert());
    }
    return {};
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
  std::vector<int64_t> global_tids_;  // by lane
  std::vector<uint8_t> is_thread_;
  int64_t event_count_ = 0;  // rows of NVTX_EVENTS, whose rowids count from 1 without gaps
};

// Created here and now, so that it is ours to remove.
Result<fs::path> reserve_temporary(const fs::path& target) {
  static std::atomic<int> counter{0};
  fs::path name = target;
  name += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
  const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return io_error(std::strerror(errno));
  ::close(fd);
  return name;
}

Result<void> write_to(const Timeline& timeline, const fs::path& path) {
  STROBE_ASSIGN(Database database, Database::create(path));
  STROBE_TRY(Writer(timeline, database).write());
  return database.close();
}

}  // namespace

Result<void> write_store(const Timeline& timeline, const fs::path& path) {
  auto temporary = reserve_temporary(path);
  if (!temporary) return std::move(temporary.error().at(path.string()));
  Result<void> written = write_to(timeline, *temporary);
  if (written && ::rename(temporary->c_str(), path.c_str()) != 0) written = io_error(std::strerror(errno));
  if (!written) {
    ::unlink(temporary->c_str());
    return std::move(written.error().at(path.string()));
  }
  return {};
}

}  // namespace strobe::trace
