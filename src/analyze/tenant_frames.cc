#include "analyze/tenant_frames.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/cells.h"
#include "analyze/tenant_tables.h"
#include "base/statistics.h"

namespace strobe::analyze {

using trace::Timeline;

namespace {

constexpr size_t kFewestForP99 = 100;

double ms(int64_t ns) {
  return static_cast<double>(ns) / 1e6;
}

const char* outcome_name(FrameOutcome outcome) {
  constexpr const char* kNames[] = {"finished", "dropped", "overwritten", "failed", "lost"};
  return kNames[static_cast<size_t>(outcome)];
}

std::optional<double> correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const double mean_a = mean(a), mean_b = mean(b);
  double both = 0, of_a = 0, of_b = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += (a[i] - mean_a) * (b[i] - mean_b);
    of_a += (a[i] - mean_a) * (a[i] - mean_a);
    of_b += (b[i] - mean_b) * (b[i] - mean_b);
  }
  if (a.size() < 3 || !(of_a > 0) || !(of_b > 0)) return {};
  return both / std::sqrt(of_a * of_b);
}

// What one layer took, frame by frame.
struct LayerTimes {
  int64_t depth = 1;
  size_t last_frame = SIZE_MAX;
  std::vector<double> elapsed_ms, latency_ms;
  double waited_ms = 0;

  void add(size_t frame, double latency, int64_t elapsed_ns, int64_t waited_ns) {
    if (frame != last_frame) {
      elapsed_ms.push_back(0);
      latency_ms.push_back(latency);
      last_frame = frame;
    }
    elapsed_ms.back() += ms(elapsed_ns);
    waited_ms += ms(waited_ns);
  }
};

int64_t depth_of(const TenantTrace& trace, const TenantOperation& operation) {
  int64_t depth = 2;
  for (int32_t around = operation.inside; around != trace::kNone;
       around = trace.operations[static_cast<size_t>(around)].inside)
    ++depth;
  return depth;
}

}  // namespace

FramePartTimes frame_part_times(const TenantTrace& trace, const Timeline& timeline, size_t index) {
  const FrameParts times = frame_parts(trace, timeline, index);
  const TenantFrame& frame = trace.frames[index];
  int64_t waited = 0, runnable = 0;
  for (int32_t s = frame.first_stage; s < frame.first_stage + frame.stage_count; ++s) {
    const TenantStage& stage = trace.stages[static_cast<size_t>(s)];
    if (timeline.strings[stage.name] == "decode") continue;
    runnable += stage.runnable_ns;
    for (int32_t o = stage.first_operation; o < stage.first_operation + stage.operation_count; ++o) {
      const TenantOperation& operation = trace.operations[static_cast<size_t>(o)];
      if (operation.inside == trace::kNone) waited += operation.start_ns - operation.ready_ns;
    }
  }
  waited = std::min(waited, times.work_ns);
  runnable = std::min(runnable, times.work_ns - waited);
  return {ms(times.comm_ns), ms(times.queue_ns), ms(times.decode_ns),
          ms(waited),        ms(runnable),       ms(times.work_ns - waited - runnable)};
}

Table tenant_frames(const TenantTrace& trace, const Timeline& timeline) {
  std::vector<Column> columns = {{"tenant", "", 0},
                                 {"frame", "", 0},
                                 {"stamp_s", "since the window began", 6},
                                 {"outcome", "", 0},
                                 {"latency_ms", "stamp to done", 3}};
  for (size_t p = 0; p < kFrameParts.size(); ++p) columns.push_back({kFrameParts[p], kFramePartsHelp[p], 3});
  columns.push_back({"deadline_ms", "from the stamp", 3});
  Table table("Frames", columns);
  // Without a window the trace is all of it, from its own beginning.
  const int64_t begin = trace.from_ns == INT64_MIN ? 0 : trace.from_ns;
  std::vector<size_t> due;
  for (size_t i = 0; i < trace.frames.size(); ++i)
    if (trace.frames[i].counts) due.push_back(i);
  std::stable_sort(due.begin(), due.end(),
                   [&](size_t a, size_t b) { return trace.frames[a].stamp_ns < trace.frames[b].stamp_ns; });
  for (const size_t index : due) {
    const TenantFrame& frame = trace.frames[index];
    std::vector<Cell> row = {trace.tenants[static_cast<size_t>(frame.tenant)].name, frame.id,
                             static_cast<double>(frame.stamp_ns - begin) / 1e9, outcome_name(frame.outcome),
                             cell_if(frame.finished(), ms(frame.latency_ns()))};
    if (frame.finished())
      for (const double part : frame_part_times(trace, timeline, index)) row.emplace_back(part);
    else
      row.insert(row.end(), kFrameParts.size(), Cell());
    row.push_back(cell_if(frame.deadline_ns > 0, ms(frame.deadline_ns)));
    table.add_row(std::move(row));
  }
  return table;
}

Table layer_spread(const TenantTrace& trace, const Timeline& timeline) {
  // By tenant, stage and layer: layers of one name in two stages are two.
  using Key = std::pair<trace::StringId, trace::StringId>;
  std::vector<std::map<Key, LayerTimes>> all(trace.tenants.size());
  for (size_t i = 0; i < trace.frames.size(); ++i) {
    const TenantFrame& frame = trace.frames[i];
    if (!frame.counts || !frame.finished()) continue;
    auto& layers = all[static_cast<size_t>(frame.tenant)];
    const double latency = ms(frame.latency_ns());
    for (int32_t s = frame.first_stage; s < frame.first_stage + frame.stage_count; ++s) {
      const TenantStage& stage = trace.stages[static_cast<size_t>(s)];
      LayerTimes& of_stage = layers[{stage.name, stage.name}];
      of_stage.add(i, latency, stage.end_ns - stage.start_ns, 0);
      for (int32_t o = stage.first_operation; o < stage.first_operation + stage.operation_count; ++o) {
        const TenantOperation& operation = trace.operations[static_cast<size_t>(o)];
        const int64_t waited = operation.start_ns - operation.ready_ns;
        if (operation.name == stage.name) {  // a stage that is one operation
          of_stage.waited_ms += ms(waited);
          continue;
        }
        LayerTimes& of_layer = layers[{stage.name, operation.name}];
        of_layer.depth = depth_of(trace, operation);
        of_layer.add(i, latency, operation.end_ns - operation.start_ns, waited);
      }
    }
  }
  Table table("Layers of the tenants", {{"tenant", "", 0},
                                        {"layer", "stage, layer or kernel", 0},
                                        {"depth", "1: a stage, 2: an operation of one", 0},
                                        {"frames", "", 0},
                                        {"mean_ms", "elapsed time", 3},
                                        {"std_ms", "", 3},
                                        {"min_ms", "", 3},
                                        {"p25_ms", "", 3},
                                        {"p50_ms", "", 3},
                                        {"p75_ms", "", 3},
                                        {"p99_ms", "", 3},
                                        {"max_ms", "", 3},
                                        {"wait_ms", "mean, before it could start", 3},
                                        {"correlation", "of its time and the frame's latency (Pearson)", 3}});
  for (size_t t = 0; t < all.size(); ++t) {
    std::vector<std::pair<Key, const LayerTimes*>> order;
    for (const auto& [key, times] : all[t]) order.emplace_back(key, &times);
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
      return mean(a.second->elapsed_ms) > mean(b.second->elapsed_ms);
    });
    for (const auto& [key, times] : order) {
      std::vector<double> sorted = times->elapsed_ms;
      std::sort(sorted.begin(), sorted.end());
      const auto at = [&](double q) { return quantile_sorted(sorted, q); };
      table.add_row({trace.tenants[t].name, std::string(timeline.strings[key.second]), times->depth,
                     static_cast<int64_t>(sorted.size()), mean(sorted), standard_deviation(sorted), sorted.front(),
                     at(0.25), at(0.5), at(0.75), cell_if(sorted.size() >= kFewestForP99, at(0.99)), sorted.back(),
                     times->waited_ms / static_cast<double>(sorted.size()),
                     cell(correlation(times->elapsed_ms, times->latency_ms))});
    }
  }
  return table;
}

}  // namespace strobe::analyze
