#include "run_workers_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "trace/store.h"

namespace strobe::app {

namespace {

using trace::kNone;
using trace::StringId;
using trace::Timeline;

int64_t largest_frame(const Timeline& timeline) {
  int64_t largest = trace::kNoFrame;
  for (const int64_t frame : timeline.ranges.frame) largest = std::max(largest, frame);
  for (const int64_t frame : timeline.marks.frame) largest = std::max(largest, frame);
  return largest;
}

// Appends one timeline to another that is not finished.
class Append {
 public:
  Append(Timeline& target, const Timeline& source, int64_t shift_ns, int64_t first_frame)
      : target_(target),
        source_(source),
        shift_ns_(shift_ns),
        first_frame_(first_frame),
        lane_offset_(static_cast<int32_t>(target.lanes.size())),
        range_offset_(static_cast<int32_t>(target.ranges.size())),
        mark_offset_(static_cast<int32_t>(target.marks.size())) {
    strings_.reserve(source.strings.size());
    for (StringId id = 0; id < source.strings.size(); ++id)
      strings_.push_back(target.strings.intern(source.strings[id]));
    also_frame_ = source.strings.find("also_frame");
  }

  void run(StringId process_name) {
    for (const trace::Process& process : source_.processes) target_.processes.push_back({process.pid, process_name});
    for (trace::Lane lane : source_.lanes) {
      lane.name = strings_[lane.name];
      target_.lanes.push_back(lane);
    }
    ranges();
    marks();
    flows();
    counters();
    device_work();
    target_.losses.dropped_records += source_.losses.dropped_records;
    for (const auto& [kind, count] : source_.losses.faults) target_.losses.faults[kind] += count;
    target_.duration_ns = std::max(target_.duration_ns, source_.duration_ns + shift_ns_);
  }

 private:
  static int32_t moved(int32_t index, int32_t by) { return index == kNone ? kNone : index + by; }
  int64_t frame(int64_t id) const { return id == trace::kNoFrame ? id : id + first_frame_; }
  std::variant<int64_t, double, StringId> value(const std::variant<int64_t, double, StringId>& of, StringId key) const {
    if (const auto* text = std::get_if<StringId>(&of)) return strings_[*text];
    if (const auto* number = std::get_if<int64_t>(&of); number != nullptr && int64_t{key} == also_frame_)
      return frame(*number);
    return of;
  }

  void ranges() {
    const trace::Ranges& from = source_.ranges;
    trace::Ranges& to = target_.ranges;
    for (size_t i = 0; i < from.size(); ++i) {
      to.start_ns.push_back(from.start_ns[i] + shift_ns_);
      to.end_ns.push_back(from.end_ns[i] + shift_ns_);
      to.name.push_back(strings_[from.name[i]]);
      to.lane.push_back(from.lane[i] + lane_offset_);
      to.frame.push_back(frame(from.frame[i]));
      to.is_async.push_back(from.is_async[i]);
      to.open.push_back(from.open[i]);
      to.kind.push_back(i < from.kind.size() ? from.kind[i] : trace::RangeKind::kAnnotation);
      to.categorize_last(strings_[from.category_of(i)], strings_[from.domain_of(i)]);
    }
    for (size_t i = 0; i < source_.arguments.size(); ++i) {
      target_.arguments.range.push_back(source_.arguments.range[i] + range_offset_);
      target_.arguments.key.push_back(strings_[source_.arguments.key[i]]);
      target_.arguments.value.push_back(value(source_.arguments.value[i], source_.arguments.key[i]));
    }
  }

  void marks() {
    const trace::Marks& from = source_.marks;
    trace::Marks& to = target_.marks;
    for (size_t i = 0; i < from.size(); ++i) {
      to.time_ns.push_back(from.time_ns[i] + shift_ns_);
      to.name.push_back(strings_[from.name[i]]);
      to.lane.push_back(from.lane[i] + lane_offset_);
      to.frame.push_back(frame(from.frame[i]));
      to.categorize_last(strings_[from.category_of(i)], strings_[from.domain_of(i)]);
    }
    for (size_t i = 0; i < source_.mark_arguments.size(); ++i) {
      target_.mark_arguments.mark.push_back(source_.mark_arguments.mark[i] + mark_offset_);
      target_.mark_arguments.key.push_back(strings_[source_.mark_arguments.key[i]]);
      target_.mark_arguments.value.push_back(value(source_.mark_arguments.value[i], source_.mark_arguments.key[i]));
    }
  }

  void flows() {
    const trace::Flows& from = source_.flows;
    trace::Flows& to = target_.flows;
    for (size_t i = 0; i < from.size(); ++i) {
      to.name.push_back(strings_[from.name[i]]);
      to.from_ns.push_back(from.from_ns[i] + shift_ns_);
      to.to_ns.push_back(from.to_ns[i] + shift_ns_);
      to.from_range.push_back(moved(from.from_range[i], range_offset_));
      to.to_range.push_back(moved(from.to_range[i], range_offset_));
      to.from_lane.push_back(moved(from.from_lane[i], lane_offset_));
      to.to_lane.push_back(moved(from.to_lane[i], lane_offset_));
    }
  }

  void counters() {
    const trace::Counters& from = source_.counters;
    trace::Counters& to = target_.counters;
    for (size_t i = 0; i < from.size(); ++i) {
      to.lane.resize(to.size(), kNone);
      to.lane.push_back(moved(from.lane_of(i), lane_offset_));
      to.time_ns.push_back(from.time_ns[i] + shift_ns_);
      to.name.push_back(strings_[from.name[i]]);
      to.pid.push_back(from.pid[i]);
      to.value.push_back(from.value[i]);
    }
  }

  void device_work() {
    for (trace::DeviceOp op : source_.device_ops) {
      op.range = moved(op.range, range_offset_);
      op.launch = moved(op.launch, range_offset_);
      op.capture = moved(op.capture, range_offset_);
      target_.device_ops.push_back(op);
    }
    for (trace::ApiCall call : source_.api_calls) {
      call.range = moved(call.range, range_offset_);
      target_.api_calls.push_back(call);
    }
  }

  Timeline& target_;
  const Timeline& source_;
  int64_t shift_ns_, first_frame_;
  int32_t lane_offset_, range_offset_, mark_offset_;
  int64_t also_frame_;
  std::vector<StringId> strings_;
};

void merge_facts(const std::vector<WorkerTrace>& traces, const std::vector<Timeline>& timelines, Timeline& merged) {
  std::set<std::string> keys;
  for (const Timeline& timeline : timelines)
    for (const auto& [key, text] : timeline.facts) keys.insert(key);
  for (const std::string& key : keys) {
    const auto value = [&](const Timeline& timeline) {
      const auto found = timeline.facts.find(key);
      return found == timeline.facts.end() ? nullptr : &found->second;
    };
    // With a process's id in it: means the same everywhere.
    if (key.starts_with("gpu.of.") || key.starts_with("gpu.collection.")) {
      for (const Timeline& timeline : timelines)
        if (const std::string* text = value(timeline)) merged.facts[key] = *text;
      continue;
    }
    const std::string* first = value(timelines.front());
    const bool is_shared = !key.starts_with("pipeline.") && first != nullptr &&
                           std::all_of(timelines.begin(), timelines.end(), [&](const Timeline& timeline) {
                             return value(timeline) != nullptr && *value(timeline) == *first;
                           });
    if (is_shared) {
      merged.facts[key] = *first;
      continue;
    }
    for (size_t i = 0; i < timelines.size(); ++i)
      if (const std::string* text = value(timelines[i]))
        merged.facts[fmt::format("worker.{}.{}", traces[i].name, key)] = *text;
  }
}

}  // namespace

Result<Timeline> merge_traces(const std::vector<WorkerTrace>& traces) {
  std::vector<Timeline> timelines;
  std::set<int32_t> pids;
  int64_t utc_start_ns = INT64_MAX;
  for (const WorkerTrace& trace : traces) {
    STROBE_ASSIGN(Timeline timeline, trace::read_store(trace.path));
    for (const trace::Process& process : timeline.processes)
      if (!pids.insert(process.pid).second)
        return bad_data(
            fmt::format("{}: process {} is in another worker's trace too", trace.path.string(), process.pid));
    utc_start_ns = std::min(utc_start_ns, timeline.utc_start_ns);
    timelines.push_back(std::move(timeline));
  }
  Timeline merged;
  if (timelines.empty()) return merged;
  merged.utc_start_ns = utc_start_ns;
  int64_t first_frame = 0;
  for (size_t i = 0; i < timelines.size(); ++i) {
    Append(merged, timelines[i], timelines[i].utc_start_ns - utc_start_ns, first_frame)
        .run(merged.strings.intern(traces[i].name));
    first_frame += largest_frame(timelines[i]) + 1;
  }
  merge_facts(traces, timelines, merged);
  // Finishing counts again what the workers' own traces have counted.
  auto faults = std::exchange(merged.losses.faults, {});
  merged.finish();
  for (const auto& [kind, count] : faults) merged.losses.faults[kind] = std::max(merged.losses.faults[kind], count);
  return merged;
}

}  // namespace strobe::app
