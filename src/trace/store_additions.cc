#include "trace/store_additions.h"

#include <algorithm>
#include <limits>
#include <string>

namespace strobe::trace {

namespace {

class AdditionsReader {
 public:
  AdditionsReader(Database& database, ReadBudget& budget, const std::vector<StringId>& strings, Timeline& timeline)
      : database_(database), budget_(budget), strings_(strings), timeline_(timeline) {}

  Result<void> read(StoreParts parts) {
    STROBE_TRY(read_categories("STROBE_RANGE_CATEGORY", "rangeId, categoryId, domainId", timeline_.ranges));
    if (parts != StoreParts::kRanges) STROBE_TRY(read_captures());
    if (parts != StoreParts::kAll) return {};
    STROBE_TRY(read_categories("STROBE_MARK_CATEGORY", "markId, categoryId, domainId", timeline_.marks));
    STROBE_TRY(read_mark_arguments());
    STROBE_TRY(read_counter_lanes());
    return read_core_runs();
  }

 private:
  Result<bool> has(const char* table) {
    STROBE_ASSIGN(Statement exists, database_.prepare("SELECT 1 FROM sqlite_master WHERE name = ?"));
    exists.bind(0, std::string_view(table));
    return exists.step();
  }
  Result<Rows> rows(const char* table, const char* columns) { return Rows::open(database_, table, columns, budget_); }
  // NULL is the empty text.
  StringId string(Rows& table, int column) const {
    const int32_t id = table.optional_index(column, strings_.size());
    return table.failed() || id == kNone ? 0 : strings_[static_cast<size_t>(id)];
  }

  template <typename Owners>
  Result<void> read_categories(const char* name, const char* columns, Owners& owners) {
    STROBE_ASSIGN(const bool there, has(name));
    if (!there) return {};
    STROBE_ASSIGN(Rows table, rows(name, columns));
    const auto put = [&owners](std::vector<StringId>& column, size_t i, StringId value) {
      if (value == 0) return;
      column.resize(owners.size(), 0);
      column[i] = value;
    };
    while (table.next()) {
      const auto i = static_cast<size_t>(table.index(0, owners.size()));
      const StringId category = string(table, 1), domain = string(table, 2);
      if (table.failed()) break;
      put(owners.category, i, category);
      put(owners.domain, i, domain);
    }
    return table.status();
  }

  Result<void> read_captures() {
    STROBE_ASSIGN(const bool there, has("STROBE_CAPTURE"));
    if (!there) return {};
    STROBE_ASSIGN(Rows table, rows("STROBE_CAPTURE", "rangeId, captureId"));
    std::vector<DeviceOp>& ops = timeline_.device_ops;  // by range
    while (table.next()) {
      const int32_t range = table.index(0, timeline_.ranges.size());
      const int32_t capture = table.index(1, timeline_.ranges.size());
      const auto op =
          std::partition_point(ops.begin(), ops.end(), [range](const DeviceOp& one) { return one.range < range; });
      if (table.failed()) break;
      if (op == ops.end() || op->range != range) {
        table.fail("rangeId is " + std::to_string(range) + ", expected one of STROBE_DEVICE_OP");
        break;
      }
      op->capture = capture;
    }
    return table.status();
  }

  Result<void> read_mark_arguments() {
    STROBE_ASSIGN(const bool there, has("STROBE_MARK_ARGUMENT"));
    if (!there) return {};
    STROBE_ASSIGN(Rows table, rows("STROBE_MARK_ARGUMENT", "markId, keyId, int64Value, doubleValue, textId"));
    MarkArguments& arguments = timeline_.mark_arguments;
    while (table.next()) {
      arguments.mark.push_back(table.index(0, timeline_.marks.size()));
      arguments.key.push_back(string(table, 1));
      if (!table.is_null(2))
        arguments.value.emplace_back(table.integer(2));
      else if (!table.is_null(4))
        arguments.value.emplace_back(string(table, 4));
      else  // SQLite keeps "not a number" as NULL
        arguments.value.emplace_back(table.is_null(3) ? std::numeric_limits<double>::quiet_NaN() : table.real(3));
    }
    return table.status();
  }

  Result<void> read_counter_lanes() {
    STROBE_ASSIGN(const bool there, has("STROBE_COUNTER_LANE"));
    if (!there) return {};
    STROBE_ASSIGN(Rows table, rows("STROBE_COUNTER_LANE", "counterId, laneId"));
    Counters& counters = timeline_.counters;
    while (table.next()) {
      const auto i = static_cast<size_t>(table.index(0, counters.size()));
      const int32_t lane = table.index(1, timeline_.lanes.size());
      if (table.failed()) break;
      counters.lane.resize(counters.size(), kNone);
      counters.lane[i] = lane;
    }
    return table.status();
  }

  Result<void> read_core_runs() {
    STROBE_ASSIGN(const bool there, has("STROBE_CORE_RUN"));
    if (!there) return {};
    STROBE_ASSIGN(Rows table, rows("STROBE_CORE_RUN", "core, start, end, pid, tid, nameId, holderId, preempted"));
    constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
    while (table.next()) {
      CoreRun run;
      run.core = static_cast<int32_t>(table.within(0, 0, kMost));
      run.start_ns = table.time(1);
      run.end_ns = table.failed() ? run.start_ns : table.within(2, run.start_ns, kFarthestTime);
      run.pid = static_cast<int32_t>(table.within(3, -kMost, kMost));
      run.tid = static_cast<int32_t>(table.within(4, -kMost, kMost));
      run.name = string(table, 5);
      run.holder = string(table, 6);
      run.preempted = table.within(7, 0, 1) != 0;
      if (table.failed()) break;
      const auto& runs = timeline_.core_runs;
      if (!runs.empty() &&
          (runs.back().core > run.core || (runs.back().core == run.core && runs.back().end_ns > run.start_ns))) {
        table.fail("a core's runs follow each other, and cores stand in order");
        break;
      }
      timeline_.core_runs.push_back(run);
    }
    return table.status();
  }

  Database& database_;
  ReadBudget& budget_;
  const std::vector<StringId>& strings_;
  Timeline& timeline_;
};

}  // namespace

Result<void> read_additions(Database& database, ReadBudget& budget, const std::vector<StringId>& strings,
                            Timeline& timeline, StoreParts parts) {
  return AdditionsReader(database, budget, strings, timeline).read(parts);
}

}  // namespace strobe::trace
