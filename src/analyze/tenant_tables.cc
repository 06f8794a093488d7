#include "analyze/tenant_tables.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analyze/pperf_tables.h"
#include "base/statistics.h"

namespace strobe::analyze {

using trace::Timeline;

namespace {

std::string fact_of(const TenantInfo& tenant, const char* key) {
  const auto found = tenant.facts.find(key);
  return found == tenant.facts.end() ? "" : found->second;
}

std::string model_name(const TenantInfo& tenant) {
  const std::string name = fact_of(tenant, "model_name");
  return name.empty() ? fact_of(tenant, "model") : name;
}

// Finished frames of the window, by completion.
std::vector<size_t> finished_frames(const TenantTrace& trace) {
  std::vector<size_t> all;
  for (size_t i = 0; i < trace.frames.size(); ++i)
    if (trace.frames[i].counts && trace.frames[i].finished()) all.push_back(i);
  std::stable_sort(all.begin(), all.end(),
                   [&](size_t a, size_t b) { return trace.frames[a].done_ns < trace.frames[b].done_ns; });
  return all;
}

double seconds(int64_t ns) {
  return static_cast<double>(ns) / 1e9;
}

bool is_met(const TenantFrame& frame) {
  return frame.deadline_ns == 0 || frame.latency_ns() <= frame.deadline_ns;
}

}  // namespace

FrameParts frame_parts(const TenantTrace& trace, const Timeline& timeline, size_t frame) {
  const TenantFrame& one = trace.frames[frame];
  FrameParts parts;
  parts.comm_ns = one.arrival_ns - one.stamp_ns;
  int64_t covered = one.arrival_ns;  // up to here the time is given to something
  int64_t worked = 0;
  for (int32_t s = one.first_stage; s < one.first_stage + one.stage_count; ++s) {
    const TenantStage& stage = trace.stages[static_cast<size_t>(s)];
    const int64_t from = std::max(stage.start_ns, covered), to = std::min(stage.end_ns, one.done_ns);
    if (to <= from) continue;
    (timeline.strings[stage.name] == "decode" ? parts.decode_ns : parts.work_ns) += to - from;
    worked += to - from;
    covered = to;
  }
  parts.queue_ns = one.done_ns - one.arrival_ns - worked;
  return parts;
}

Table tenant_delays(const TenantTrace& trace, const Timeline& timeline) {
  Table table("Delays", {{"time_stamp", "s, of the sensor", 9},
                         {"input_token", "", 0},
                         {"comm_delay", "s, stamp to arrival", 9},
                         {"decode_delay", "s", 9},
                         {"inference_delay", "s, preparation, inference with its waits, post-processing", 9},
                         {"e2e_delay", "s, stamp to done: comm + queue + decode + inference", 9},
                         {"model_name", "", 0},
                         {"model_type", "", 0},
                         {"queue_delay", "s, no stage worked on it", 9},
                         {"tenant", "", 0},
                         {"frame", "", 0},
                         {"deadline_met", "1 or 0; empty: it has none", 0}});
  for (const size_t index : finished_frames(trace)) {
    const TenantFrame& frame = trace.frames[index];
    const TenantInfo& tenant = trace.tenants[static_cast<size_t>(frame.tenant)];
    const FrameParts parts = frame_parts(trace, timeline, index);
    const int64_t stamp = frame.sensor_stamp_ns != 0 ? frame.sensor_stamp_ns : timeline.utc_start_ns + frame.stamp_ns;
    table.add_row({seconds(stamp), std::string(timeline.strings[frame.token]), seconds(parts.comm_ns),
                   seconds(parts.decode_ns), seconds(parts.work_ns), seconds(frame.latency_ns()), model_name(tenant),
                   fact_of(tenant, "model_type"), seconds(parts.queue_ns), tenant.name, frame.id,
                   frame.deadline_ns == 0 ? Cell() : Cell(int64_t{is_met(frame) ? 1 : 0})});
  }
  return table;
}

namespace {

// Of each tenant, how many frames of the window brought the input of the frame before again, and how many there were.
// Where the sensor never has another one (a picture as a source) that is no fault.
struct Repeats {
  int64_t again = 0, frames = 0;
};
std::vector<Repeats> repeated_inputs(const TenantTrace& trace) {
  std::vector<std::map<int64_t, const TenantFrame*>> by_number(trace.tenants.size());
  for (const TenantFrame& frame : trace.frames)
    if (frame.token != 0) by_number[static_cast<size_t>(frame.tenant)][frame.id] = &frame;
  std::vector<Repeats> all(trace.tenants.size());
  for (size_t t = 0; t < all.size(); ++t) {
    bool changes = false;
    const TenantFrame* before = nullptr;
    for (const auto& [number, frame] : by_number[t]) {
      const bool same = before != nullptr && before->token == frame->token;
      changes = changes || (before != nullptr && !same);
      all[t].again += same && frame->counts ? 1 : 0;
      all[t].frames += frame->counts ? 1 : 0;
      before = frame;
    }
    if (!changes) all[t].again = 0;
  }
  return all;
}

}  // namespace

std::vector<std::string> repeated_input_notes(const TenantTrace& trace) {
  std::vector<std::string> notes;
  const std::vector<Repeats> repeats = repeated_inputs(trace);
  for (size_t t = 0; t < repeats.size(); ++t)
    if (repeats[t].again > 0)
      notes.push_back(trace.tenants[t].name + ": in " + std::to_string(repeats[t].again) + " of " +
                      std::to_string(repeats[t].frames) + " frames the sensor gave the input of the one before again");
  return notes;
}

Table tenant_summary(const TenantTrace& trace) {
  Table table("Tenants", {{"tenant", "", 0},
                          {"model", "", 0},
                          {"frames", "that were due in the window", 0},
                          {"finished", "", 0},
                          {"late", "finished after the deadline", 0},
                          {"dropped", "left out of a full queue", 0},
                          {"overwritten", "replaced by a newer one", 0},
                          {"failed", "", 0},
                          {"lost", "no end of them is recorded", 0},
                          {"not_sent", "the sensor gave none", 0},
                          {"fps", "finished frames a second", 2},
                          {"p50_ms", "latency of finished frames, stamp to done", 2},
                          {"p99_ms", "", 2},
                          {"max_ms", "", 2},
                          {"deadline_ms", "", 2},
                          {"miss_share", "of all frames due, those without a result in time", 4}});
  const double window_s = (static_cast<double>(trace.to_ns) - static_cast<double>(trace.from_ns)) / 1e9;
  for (size_t t = 0; t < trace.tenants.size(); ++t) {
    const TenantInfo& tenant = trace.tenants[t];
    int64_t due = static_cast<int64_t>(tenant.not_sent), late = 0, counts[5] = {};
    std::vector<double> latency_ms;
    for (const TenantFrame& frame : trace.frames) {
      if (!frame.counts || static_cast<size_t>(frame.tenant) != t) continue;
      ++due;
      ++counts[static_cast<size_t>(frame.outcome)];
      if (!frame.finished()) continue;
      latency_ms.push_back(static_cast<double>(frame.latency_ns()) / 1e6);
      if (!is_met(frame)) ++late;
    }
    std::sort(latency_ms.begin(), latency_ms.end());
    const auto count = [&](FrameOutcome outcome) { return counts[static_cast<size_t>(outcome)]; };
    const auto quantile_cell = [&](double q) {
      return latency_ms.empty() ? Cell() : Cell(quantile_sorted(latency_ms, q));
    };
    const int64_t good = count(FrameOutcome::kFinished) - late;
    table.add_row({tenant.name, model_name(tenant), due, count(FrameOutcome::kFinished), late,
                   count(FrameOutcome::kDropped), count(FrameOutcome::kOverwritten), count(FrameOutcome::kFailed),
                   count(FrameOutcome::kLost), static_cast<int64_t>(tenant.not_sent),
                   window_s > 0 ? Cell(static_cast<double>(count(FrameOutcome::kFinished)) / window_s) : Cell(),
                   quantile_cell(0.5), quantile_cell(0.99), quantile_cell(1),
                   tenant.deadline_ns > 0 ? Cell(static_cast<double>(tenant.deadline_ns) / 1e6) : Cell(),
                   due > 0 ? Cell(static_cast<double>(due - good) / static_cast<double>(due)) : Cell()});
    if (!latency_ms.empty() && latency_ms.size() < 100)
      table.notes.push_back(tenant.name + ": p99 of " + std::to_string(latency_ms.size()) +
                            " frames says little; 100 are needed");
  }
  if (trace.lost_records > 0)
    table.notes.push_back("the recording lost or could not read " + std::to_string(trace.lost_records) + " records");
  return table;
}

Table tenant_layer_timings(const TenantTrace& trace, const Timeline& timeline) {
  Table table("Layer timings", {{"Input", "token of the input", 0},
                                {"Model", "", 0},
                                {"Layer", "stage, layer or kernel", 0},
                                {"Start Timestamp", "ns", 0},
                                {"End Timestamp", "ns", 0},
                                {"Elapsed Time", "ms", 6},
                                {"GPU Turnaround Time", "ms", 6},
                                {"GPU Computation Time", "ms", 6},
                                {"GPU Wait Time", "ms", 6},
                                {"Internal Memcpy Size", "bytes", 0},
                                {"External Memcpy Size", "bytes", 0},
                                {"Depth", "1: a stage, 2: an operation of one, 3: inside of that", 0}});
  const std::map<int32_t, RangeDeviceTimes> device = range_device_times(timeline);
  // Operations know no range of the timeline: found again by thread, start and name.
  std::map<std::tuple<int32_t, int64_t, trace::StringId>, int32_t> ranges;
  for (const auto& [range, times] : device) {
    const auto row = static_cast<size_t>(range);
    ranges[{timeline.ranges.lane[row], timeline.ranges.start_ns[row], timeline.ranges.name[row]}] = range;
  }
  for (const TenantFrame& frame : trace.frames) {
    if (!frame.counts) continue;
    const TenantInfo& tenant = trace.tenants[static_cast<size_t>(frame.tenant)];
    const std::string token(timeline.strings[frame.token]), model = model_name(tenant);
    const auto add = [&](const TenantStage& stage, trace::StringId name, int64_t start, int64_t end, int64_t depth) {
      RangeDeviceTimes times;
      if (const auto range = ranges.find({stage.lane, start, name}); range != ranges.end())
        times = device.at(range->second);
      table.add_row({token, model, std::string(timeline.strings[name]), start, end,
                     static_cast<double>(end - start) / 1e6, times.turnaround_ms, times.computation_ms, times.wait_ms,
                     times.internal_bytes, times.external_bytes, depth});
    };
    for (int32_t s = frame.first_stage; s < frame.first_stage + frame.stage_count; ++s) {
      const TenantStage& stage = trace.stages[static_cast<size_t>(s)];
      add(stage, stage.name, stage.start_ns, stage.end_ns, 1);
      for (int32_t o = stage.first_operation; o < stage.first_operation + stage.operation_count; ++o) {
        const TenantOperation& operation = trace.operations[static_cast<size_t>(o)];
        if (operation.name == stage.name && operation.start_ns == stage.start_ns) continue;
        int64_t depth = 2;
        for (int32_t around = operation.inside; around != trace::kNone;
             around = trace.operations[static_cast<size_t>(around)].inside)
          ++depth;
        add(stage, operation.name, operation.start_ns, operation.end_ns, depth);
      }
    }
  }
  return table;
}

}  // namespace strobe::analyze
