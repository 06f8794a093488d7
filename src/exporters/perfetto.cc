#include "exporters/perfetto.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "exporters/byte_sink.h"
#include "exporters/names.h"
#include "exporters/perfetto_packets.h"
#include "exporters/perfetto_tracks.h"

namespace strobe::exporters {

namespace {

using trace::kNone;
using trace::RangeKind;
using trace::StringId;
using trace::Timeline;

// One end of an arrow that lies in a range.
struct FlowEnd {
  int32_t range = kNone;
  uint64_t id = 0;
  StringId name = 0;
  enum : uint8_t { kLeaves, kArrives, kArrivesAtEnd } how = kLeaves;
};

class Exporter {
 public:
  Exporter(const Timeline& timeline, ByteSink& sink)
      : timeline_(timeline),
        sink_(sink),
        packets_(sink, timeline.strings, timeline.utc_start_ns),
        tracks_(packets_, timeline) {}

  void run() {
    write_facts();
    collect_flows();
    slots_.resize(timeline_.lanes.size());
    for (size_t i = 0; i < timeline_.ranges.size() && sink_.good(); ++i) write_range(static_cast<int32_t>(i));
    for (auto& of_lane : slots_)
      for (Slot& slot : of_lane) finish(slot);
    for (auto& [key, of_name] : async_slots_)
      for (Slot& slot : of_name) finish(slot);
    write_marks();
    write_loose_flow_ends();
    write_counters();
  }

 private:
  // A track, and the ranges that are open on it.
  struct Slot {
    uint64_t track = 0;
    std::vector<int32_t> open;
  };

  int64_t start(int32_t range) const { return timeline_.ranges.start_ns[static_cast<size_t>(range)]; }
  int64_t end(int32_t range) const { return timeline_.ranges.end_ns[static_cast<size_t>(range)]; }

  void write_facts() {
    if (!timeline_.facts.empty()) {
      packets_.begin_event(TrackEventType::kInstant, tracks_.outside());
      packets_.plain_name("facts");
      for (const auto& [name, value] : timeline_.facts) packets_.plain_argument(name, value);
      packets_.end_event(0);
    }
    const trace::Losses& losses = timeline_.losses;
    if (losses.dropped_records == 0 && losses.faults.empty()) return;
    packets_.begin_event(TrackEventType::kInstant, tracks_.outside());
    packets_.plain_name("losses");
    if (losses.dropped_records > 0) packets_.plain_argument("dropped records", std::to_string(losses.dropped_records));
    for (const auto& [name, count] : losses.faults) packets_.plain_argument(name, std::to_string(count));
    packets_.end_event(0);
  }

  // An arrow binds to events, in the order of their times: it leaves where its range begins, and arrives where the
  // other one begins or, if that was open before, ends.
  void add_flow(uint64_t id, StringId name, int32_t from, int32_t to) {
    if (from != kNone) flow_ends_.push_back({from, id, name, FlowEnd::kLeaves});
    if (to == kNone) return;
    const bool begins_before = from != kNone && to <= from;
    flow_ends_.push_back({to, id, 0, begins_before ? FlowEnd::kArrivesAtEnd : FlowEnd::kArrives});
  }

  void collect_flows() {
    const trace::Flows& flows = timeline_.flows;
    flow_ends_.reserve(2 * (flows.size() + timeline_.device_ops.size()));
    for (size_t i = 0; i < flows.size(); ++i) add_flow(i + 1, flows.name[i], flows.from_range[i], flows.to_range[i]);
    for (size_t i = 0; i < timeline_.device_ops.size(); ++i) {
      const trace::DeviceOp& op = timeline_.device_ops[i];
      if (op.launch != kNone) add_flow(flows.size() + 1 + i, 0, op.launch, op.range);
    }
    std::stable_sort(flow_ends_.begin(), flow_ends_.end(),
                     [](const FlowEnd& a, const FlowEnd& b) { return a.range < b.range; });
  }

  void write_range(int32_t range) {
    const auto row = static_cast<size_t>(range);
    const trace::Ranges& ranges = timeline_.ranges;
    Slot& slot = ranges.is_async[row] ? async_slot(range) : lane_slot(range);
    slot.open.push_back(range);
    packets_.begin_event(TrackEventType::kBegin, slot.track);
    packets_.name(ranges.name[row]);
    packets_.category(static_cast<uint32_t>(ranges.kind[row]));
    if (ranges.frame[row] != trace::kNoFrame) packets_.argument("frame", ranges.frame[row]);
    write_category(ranges.category_of(row), ranges.domain_of(row));
    if (ranges.open[row]) packets_.argument("open", 1);
    write_details(range);
    for (; argument_ < timeline_.arguments.size() && timeline_.arguments.range[argument_] == range; ++argument_)
      packets_.argument(timeline_.arguments.key[argument_], timeline_.arguments.value[argument_]);
    flow_names_.clear();
    for (; flow_end_ < flow_ends_.size() && flow_ends_[flow_end_].range == range; ++flow_end_) {
      const FlowEnd& one = flow_ends_[flow_end_];
      if (one.how == FlowEnd::kArrivesAtEnd) continue;
      packets_.flow(one.id, one.how == FlowEnd::kArrives);
      if (one.name != 0) flow_names_.push_back(one.name);
    }
    if (!flow_names_.empty()) packets_.names_argument("flows", flow_names_);
    packets_.end_event(ranges.start_ns[row]);
  }

  void write_category(StringId category, StringId domain) {
    if (category != 0) packets_.argument("category", timeline_.strings[category]);
    if (domain != 0) packets_.argument("domain", timeline_.strings[domain]);
  }

  void write_details(int32_t range) {
    for (; call_ < timeline_.api_calls.size() && timeline_.api_calls[call_].range <= range; ++call_)
      if (timeline_.api_calls[call_].range == range && timeline_.api_calls[call_].correlation != 0)
        packets_.argument("correlation", timeline_.api_calls[call_].correlation);
    for (; op_ < timeline_.device_ops.size() && timeline_.device_ops[op_].range <= range; ++op_)
      if (timeline_.device_ops[op_].range == range) write_op(timeline_.device_ops[op_]);
  }

  void write_op(const trace::DeviceOp& op) {
    const auto triple = [](const uint32_t(&sizes)[3]) {
      return std::to_string(sizes[0]) + "," + std::to_string(sizes[1]) + "," + std::to_string(sizes[2]);
    };
    const auto known = [this](std::string_view key, int64_t value, int64_t unknown) {
      if (value != unknown) packets_.argument(key, value);
    };
    const auto named = [this](std::string_view key, std::string_view value) {
      if (!value.empty()) packets_.argument(key, value);
    };
    known("correlation", op.correlation, 0);
    known("bytes", op.bytes, -1);
    if (op.grid[0] != 0) packets_.argument("grid", triple(op.grid));
    if (op.block[0] != 0) packets_.argument("block", triple(op.block));
    known("registers", op.registers, -1);
    known("static shared bytes", op.static_shared, -1);
    known("dynamic shared bytes", op.dynamic_shared, -1);
    named("copy", name_of(kCopyKinds, op.copy_kind));
    named("from memory", name_of(kMemoryKinds, op.source_kind));
    named("to memory", name_of(kMemoryKinds, op.target_kind));
    named("sync", name_of(kSyncKinds, op.sync_type));
    known("sync stream", op.sync_stream, kNone);
    known("sync correlation", op.sync_correlation, 0);
  }

  // The lane's first track on which the range nests in what is open there.
  Slot& lane_slot(int32_t range) {
    const int32_t lane = timeline_.ranges.lane[static_cast<size_t>(range)];
    auto& slots = slots_[static_cast<size_t>(lane)];
    for (Slot& slot : slots) {
      close_before(slot, range);
      if (slot.open.empty() || end(slot.open.back()) >= end(range)) return slot;
    }
    slots.push_back({slots.empty() ? tracks_.of_lane(lane) : tracks_.overlap_of_lane(lane), {}});
    return slots.back();
  }

  // Asynchronous ranges of one name get as many tracks as there are at a time.
  Slot& async_slot(int32_t range) {
    const auto row = static_cast<size_t>(range);
    const int32_t lane = timeline_.ranges.lane[row];
    auto& slots = async_slots_[{timeline_.lanes[static_cast<size_t>(lane)].pid, timeline_.ranges.name[row]}];
    for (Slot& slot : slots) {
      if (!slot.open.empty() && end(slot.open.back()) > start(range)) continue;
      while (!slot.open.empty()) close_last(slot);
      return slot;
    }
    slots.push_back({tracks_.async_of_lane(lane, timeline_.ranges.name[row]), {}});
    return slots.back();
  }

  void close_before(Slot& slot, int32_t range) {
    while (!slot.open.empty()) {
      const int32_t last = slot.open.back();
      const bool is_child = end(last) == start(range) && timeline_.ranges.parent[static_cast<size_t>(range)] == last;
      if (end(last) > start(range) || is_child) return;
      close_last(slot);
    }
  }

  void close_last(Slot& slot) {
    const int32_t range = slot.open.back();
    slot.open.pop_back();
    packets_.begin_event(TrackEventType::kEnd, slot.track);
    auto flow = std::lower_bound(flow_ends_.begin(), flow_ends_.end(), range,
                                 [](const FlowEnd& one, int32_t wanted) { return one.range < wanted; });
    for (; flow != flow_ends_.end() && flow->range == range; ++flow)
      if (flow->how == FlowEnd::kArrivesAtEnd) packets_.flow(flow->id, true);
    packets_.end_event(end(range));
  }

  // What had no end in the recording gets none here, unless it lies in something that had.
  void finish(Slot& slot) {
    size_t without_end = 0;
    while (without_end < slot.open.size() && timeline_.ranges.open[static_cast<size_t>(slot.open[without_end])])
      ++without_end;
    while (slot.open.size() > without_end) close_last(slot);
  }

  void write_marks() {
    const trace::Marks& marks = timeline_.marks;
    const trace::MarkArguments& arguments = timeline_.mark_arguments;
    size_t argument = 0;
    for (size_t i = 0; i < marks.size() && sink_.good(); ++i) {
      packets_.begin_event(TrackEventType::kInstant,
                           marks.lane[i] == kNone ? tracks_.outside() : tracks_.of_lane(marks.lane[i]));
      packets_.name(marks.name[i]);
      packets_.category(PerfettoPackets::kMarkCategory);
      if (marks.frame[i] != trace::kNoFrame) packets_.argument("frame", marks.frame[i]);
      write_category(marks.category_of(i), marks.domain_of(i));
      for (; argument < arguments.size() && arguments.mark[argument] == static_cast<int32_t>(i); ++argument)
        packets_.argument(arguments.key[argument], arguments.value[argument]);
      packets_.end_event(marks.time_ns[i]);
    }
  }

  // Ends of arrows at which no range was open become instants.
  void write_loose_flow_ends() {
    const trace::Flows& flows = timeline_.flows;
    const auto write = [&](size_t i, int32_t range, int32_t lane, int64_t time_ns, bool arrives) {
      if (range != kNone) return;
      packets_.begin_event(TrackEventType::kInstant, lane == kNone ? tracks_.outside() : tracks_.of_lane(lane));
      packets_.name(flows.name[i]);
      packets_.flow(i + 1, arrives);
      packets_.end_event(time_ns);
    };
    for (size_t i = 0; i < flows.size() && sink_.good(); ++i) {
      write(i, flows.from_range[i], flows.from_lane[i], flows.from_ns[i], false);
      write(i, flows.to_range[i], flows.to_lane[i], flows.to_ns[i], true);
    }
  }

  void write_counters() {
    const trace::Counters& counters = timeline_.counters;
    for (size_t i = 0; i < counters.size() && sink_.good(); ++i) {
      packets_.begin_event(TrackEventType::kCounter,
                           tracks_.counter(counters.pid[i], counters.lane_of(i), counters.name[i]));
      packets_.counter_value(counters.value[i]);
      packets_.end_event(counters.time_ns[i]);
    }
  }

  const Timeline& timeline_;
  ByteSink& sink_;
  PerfettoPackets packets_;
  PerfettoTracks tracks_;
  std::vector<std::vector<Slot>> slots_;                                   // by lane
  std::map<std::pair<int32_t, StringId>, std::vector<Slot>> async_slots_;  // by process and name
  std::vector<FlowEnd> flow_ends_;                                         // by range
  std::vector<StringId> flow_names_;
  size_t argument_ = 0, call_ = 0, op_ = 0, flow_end_ = 0;
};

}  // namespace

Result<void> write_perfetto(const Timeline& timeline, const std::filesystem::path& output) {
  return write_whole_file(output, output.extension() == ".gz",
                          [&timeline](ByteSink& sink) { Exporter(timeline, sink).run(); });
}

}  // namespace strobe::exporters
