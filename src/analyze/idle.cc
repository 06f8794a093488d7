#include "analyze/idle.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/cells.h"
#include "analyze/device_work.h"
#include "analyze/idle_hta.h"
#include "analyze/intervals.h"
#include "analyze/notes.h"

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;

namespace {

constexpr int64_t kNoLaunch = INT64_MIN;

struct Op {
  int32_t lane;
  int64_t start_ns, end_ns;
  int64_t launch_ns;  // start of its launch call; kNoLaunch
  WorkType type;
  bool is_sync;
  int32_t owner = trace::kNone;
};

// In the order of starts.
std::vector<Op> strobe_ops(const Timeline& timeline, WorkBy by = WorkBy::kNobody) {
  const WorkOwners owners(timeline, by);
  const std::vector<uint8_t> communicates = communication_names(timeline);
  const trace::Ranges& ranges = timeline.ranges;
  std::vector<Op> ops;
  for (const DeviceRow& row : device_rows(timeline)) {
    const auto i = static_cast<size_t>(row.range);
    const RangeKind kind = ranges.kind[i];
    const bool moves = kind == RangeKind::kCopy || kind == RangeKind::kSet;
    const WorkType type = moves                               ? WorkType::kMemory
                          : communicates[ranges.name[i]] != 0 ? WorkType::kCommunication
                                                              : WorkType::kCompute;
    ops.push_back({ranges.lane[i], ranges.start_ns[i], ranges.end_ns[i],
                   row.launch == trace::kNone ? kNoLaunch : ranges.start_ns[static_cast<size_t>(row.launch)], type,
                   false, owners.of(row)});
  }
  return ops;
}

std::vector<Op> hta_ops(const Timeline& timeline) {
  const HtaView view(timeline);
  std::vector<Op> ops;
  for (const HtaView::Op& op : view.ops()) {
    const auto i = static_cast<size_t>(op.range);
    ops.push_back({timeline.ranges.lane[i], view.start_ns(op.range), view.end_ns(op.range),
                   op.launch == trace::kNone ? kNoLaunch : view.start_ns(op.launch),
                   hta_type(timeline.strings[timeline.ranges.name[i]]), op.is_sync});
  }
  return ops;
}

std::vector<Op> ops_of(const Timeline& timeline, const IdleOptions& options) {
  return options.rules == IdleRules::kHta ? hta_ops(timeline) : strobe_ops(timeline);
}

// Idle time by what ended it.
struct Waits {
  int64_t host = 0, kernel = 0, other = 0, unknown = 0;
  int64_t sum() const { return host + kernel + other + unknown; }
  void add(const Waits& more) {
    host += more.host, kernel += more.kernel, other += more.other, unknown += more.unknown;
  }
};

// Time of a device or a stream, filled operation by operation in the order of starts.
class Account {
 public:
  Account(IdleRules rules, int64_t threshold_ns) : rules_(rules), threshold_ns_(threshold_ns) {}

  // The idle time that the operation ended, once more: for whoever keeps it by owner.
  Waits add(const Op& op) {
    Waits ended;
    all_.push_back({op.start_ns, op.end_ns});
    if (op.type == WorkType::kCompute) compute_.push_back({op.start_ns, op.end_ns});
    if (op.is_sync) return ended;
    ++count_;
    if (has_previous_) add_gap(op, ended);
    waits_.add(ended);
    // HTA looks at the operation before, even if an earlier one ended later.
    previous_end_ = has_previous_ && rules_ == IdleRules::kStrobe ? std::max(previous_end_, op.end_ns) : op.end_ns;
    has_previous_ = true;
    return ended;
  }

  int64_t count() const { return count_; }
  int64_t span_ns() const {
    int64_t end = INT64_MIN;
    for (const Interval& one : all_) end = std::max(end, one.end);
    return all_.empty() ? 0 : end - all_.front().start;
  }

  void finish(std::vector<Cell>& row, bool with_reasons) {
    const Intervals all = merged(std::move(all_));
    const int64_t span = all.empty() ? 0 : all.back().end - all.front().start;
    const int64_t idle = span - length(all), compute = length(merged(std::move(compute_)));
    const auto share = [&](int64_t part) {
      return cell_if(span > 0, static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, span)));
    };
    row.emplace_back(count_);
    row.emplace_back(span);
    for (const int64_t part : {compute, span - idle - compute, idle}) row.emplace_back(part);
    for (const int64_t part : {compute, span - idle - compute, idle}) row.push_back(share(part));
    for (const int64_t part : {waits_.host, waits_.kernel, waits_.other, waits_.unknown}) {
      row.emplace_back();
      if (with_reasons) row.back() = part;
    }
  }

 private:
  void add_gap(const Op& op, Waits& waits) const {
    const int64_t gap = op.start_ns - previous_end_;
    if (rules_ == IdleRules::kStrobe && gap <= 0) return;
    if (op.launch_ns == kNoLaunch && rules_ == IdleRules::kStrobe)
      waits.unknown += gap;
    else if (op.launch_ns != kNoLaunch && op.launch_ns > previous_end_)
      waits.host += gap;
    else
      (gap < threshold_ns_ ? waits.kernel : waits.other) += gap;
  }

  IdleRules rules_;
  int64_t threshold_ns_;
  Intervals all_, compute_;
  int64_t count_ = 0, previous_end_ = 0;
  bool has_previous_ = false;
  Waits waits_;
};

const char* const kHtaNote =
    "rules of HolisticTraceAnalysis: synchronisation counts in spans, the last of several ProfilerSteps is left out, "
    "and "
    "names decide what computation is";

}  // namespace

Result<IdleRules> parse_idle_rules(const std::string& name) {
  if (name == "strobe") return IdleRules::kStrobe;
  if (name == "hta") return IdleRules::kHta;
  return usage_error("--rules " + name + ": expected strobe or hta");
}

Table idle(const Timeline& timeline, const IdleOptions& options) {
  Table table("Device time",
              {{"device", "number of the device", 0},
               {"process", "of the stream", 0},
               {"stream", "its number; missing: the whole device", 0},
               {"operations", "kernels, copies and sets", 0},
               {"span_ns", "from the first start to the last end", 0},
               {"compute_ns", "at least one computing kernel ran", 0},
               {"non_compute_ns", "no such kernel, but a copy, a set or communication", 0},
               {"idle_ns", "nothing ran", 0},
               {"compute_share", "of the span"},
               {"non_compute_share", "of the span"},
               {"idle_share", "of the span"},
               {"host_wait_ns", "idle before an operation that the host asked for only after the gap began", 0},
               {"kernel_wait_ns", "idle before one asked for in time, gaps below the threshold", 0},
               {"other_ns", "longer gaps before one asked for in time: it waited for something else", 0},
               {"unknown_ns", "idle before one whose launch call is not in the trace", 0}});
  const bool hta = options.rules == IdleRules::kHta;
  const Devices devices(timeline);
  const std::vector<Op> ops = ops_of(timeline, options);
  std::vector<Account> of_device(devices.count(), Account(options.rules, options.threshold_ns));
  std::map<int32_t, Account> of_lane;
  for (const Op& op : ops) {
    const int32_t device = devices.of_lane(op.lane);
    if (device == trace::kNone) continue;
    of_device[static_cast<size_t>(device)].add(op);
    of_lane.try_emplace(op.lane, options.rules, options.threshold_ns).first->second.add(op);
  }
  for (size_t device = 0; device < devices.count(); ++device) {
    if (of_device[device].count() == 0) continue;
    std::vector<Cell> row{devices.number(device), Cell(), Cell()};
    of_device[device].finish(row, !hta);
    table.add_row(std::move(row));
    for (auto& [lane, account] : of_lane) {
      if (devices.of_lane(lane) != static_cast<int32_t>(device) || account.count() == 0) continue;
      const trace::Lane& stream = timeline.lanes[static_cast<size_t>(lane)];
      std::vector<Cell> stream_row{devices.number(device), int64_t{stream.pid}, int64_t{stream.tid}};
      account.finish(stream_row, true);
      table.add_row(std::move(stream_row));
    }
  }
  if (table.row_count() == 0) table.notes.push_back("no device operation in this trace");
  table.notes.push_back(fmt::format("threshold of kernel wait: {} ns", options.threshold_ns));
  if (hta) table.notes.emplace_back(kHtaNote);
  note_losses(timeline, table);
  return table;
}

Table idle_by(const Timeline& timeline, const IdleOptions& options, WorkBy by) {
  Table table("Device time by owner",
              {{"device", "number of the device", 0},
               WorkOwners::column(by),
               {"operations", "kernels, copies and sets", 0},
               {"compute_ns", "at least one of its computing kernels ran", 0},
               {"non_compute_ns", "none of them, but a copy, a set or communication of its own", 0},
               {"share", "of the device's span, in which one of its operations ran"},
               {"idle_ns", "the device did nothing until one of its operations began", 0},
               {"idle_share", "of the device's span"},
               {"host_wait_ns", "of idle_ns: the host asked for it only after the gap began", 0},
               {"kernel_wait_ns", "it was asked for in time, gaps below the threshold", 0},
               {"other_ns", "longer gaps before one asked for in time: it waited for something else", 0},
               {"unknown_ns", "before one whose launch call is not in the trace", 0}});
  struct Owned {
    int64_t operations = 0;
    Intervals all, compute;
    Waits waits;
  };
  const Devices devices(timeline);
  const WorkOwners owners(timeline, by);
  std::vector<Account> of_device(devices.count(), Account(IdleRules::kStrobe, options.threshold_ns));
  std::map<std::pair<int32_t, int32_t>, Owned> all;  // by device and owner
  uint64_t unowned = 0;
  for (const Op& op : strobe_ops(timeline, by)) {
    const int32_t device = devices.of_lane(op.lane);
    if (device == trace::kNone) continue;
    unowned += op.owner == trace::kNone ? 1 : 0;
    Owned& owned = all[{device, op.owner}];
    ++owned.operations;
    owned.all.push_back({op.start_ns, op.end_ns});
    if (op.type == WorkType::kCompute) owned.compute.push_back({op.start_ns, op.end_ns});
    owned.waits.add(of_device[static_cast<size_t>(device)].add(op));
  }
  std::vector<std::pair<int64_t, std::vector<Cell>>> rows;  // by busy time
  for (auto& [key, owned] : all) {
    const int64_t busy = length(merged(std::move(owned.all))), compute = length(merged(std::move(owned.compute)));
    const int64_t span = of_device[static_cast<size_t>(key.first)].span_ns();
    const auto share = [span](int64_t part) {
      return cell_if(span > 0, static_cast<double>(part) / static_cast<double>(std::max<int64_t>(1, span)));
    };
    const Waits& waits = owned.waits;
    rows.push_back({busy,
                    {devices.number(static_cast<size_t>(key.first)), owners.cell(key.second), owned.operations, compute,
                     busy - compute, share(busy), waits.sum(), share(waits.sum()), waits.host, waits.kernel,
                     waits.other, waits.unknown}});
  }
  std::stable_sort(rows.begin(), rows.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  for (auto& [busy, cells] : rows) table.add_row(std::move(cells));
  WorkOwners::note_unowned(by, unowned, table);
  if (table.row_count() == 0) table.notes.push_back("no device operation in this trace");
  table.notes.push_back(fmt::format("threshold of kernel wait: {} ns", options.threshold_ns));
  note_losses(timeline, table);
  return table;
}

Table work_types(const Timeline& timeline, const IdleOptions& options) {
  Table table("Kinds of device work", {{"device", "number of the device", 0},
                                       {"work", "what ran at the same time"},
                                       {"time_ns", "for how long", 0},
                                       {"share", "of the time in which any of them ran"}});
  const Devices devices(timeline);
  struct Change {
    int64_t time_ns;
    uint8_t type;
    int delta;
  };
  std::vector<std::vector<Change>> changes(devices.count());
  for (const Op& op : ops_of(timeline, options)) {
    const int32_t device = devices.of_lane(op.lane);
    if (device == trace::kNone || op.is_sync || op.type == WorkType::kOther || op.end_ns <= op.start_ns) continue;
    auto& of_device = changes[static_cast<size_t>(device)];
    of_device.push_back({op.start_ns, static_cast<uint8_t>(op.type), 1});
    of_device.push_back({op.end_ns, static_cast<uint8_t>(op.type), -1});
  }
  for (size_t device = 0; device < devices.count(); ++device) {
    auto& of_device = changes[device];
    std::sort(of_device.begin(), of_device.end(),
              [](const Change& a, const Change& b) { return a.time_ns < b.time_ns; });
    int64_t time_ns[8] = {}, any_ns = 0;  // by the set of types that run
    int running[3] = {};
    for (size_t i = 0; i + 1 < of_device.size(); ++i) {
      running[of_device[i].type] += of_device[i].delta;
      const int set = (running[0] > 0 ? 1 : 0) | (running[1] > 0 ? 2 : 0) | (running[2] > 0 ? 4 : 0);
      time_ns[set] += of_device[i + 1].time_ns - of_device[i].time_ns;
    }
    for (int set = 1; set < 8; ++set) any_ns += time_ns[set];
    std::vector<int> order{1, 2, 3, 4, 5, 6, 7};
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return time_ns[a] > time_ns[b]; });
    for (const int set : order) {
      if (time_ns[set] == 0) continue;
      std::string name;
      for (const auto& [bit, type] : {std::pair{1, "computation"}, {2, "communication"}, {4, "memory"}})
        if ((set & bit) != 0) name += (name.empty() ? "" : " + ") + std::string(type);
      table.add_row({devices.number(device), name, time_ns[set],
                     static_cast<double>(time_ns[set]) / static_cast<double>(any_ns)});
    }
  }
  if (table.row_count() == 0) table.notes.push_back("no device operation in this trace");
  if (options.rules == IdleRules::kHta) table.notes.emplace_back(kHtaNote);
  note_losses(timeline, table);
  return table;
}

}  // namespace strobe::analyze
