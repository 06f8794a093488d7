#include "analyze/tenant_trace.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>

#include "analyze/core_runs.h"
#include "analyze/tenant_trace_facts.h"
#include "base/tenant_words.h"

namespace strobe::analyze {

using trace::kNone;
using trace::StringId;
using trace::Timeline;
namespace words = tenant_words;

namespace {

class Reader {
 public:
  explicit Reader(const Timeline& timeline) : timeline_(timeline) {}

  Result<TenantTrace> read() {
    STROBE_ASSIGN(trace_, read_tenant_facts(timeline_));
    find_words();
    read_ranges();
    sort_frames();
    read_marks();
    place_stages();
    place_operations();
    order_operations();
    link_lanes();
    link_stages();
    read_core_runs(timeline_, trace_);
    if (trace_.frames.empty())
      return not_found("the trace names tenants (" + timeline_.facts.at(words::kTenants) +
                       ") but holds no frame of them");
    return std::move(trace_);
  }

 private:
  void find_words();
  void read_ranges();
  void read_marks();
  void add_frame(size_t range, size_t& argument);
  void add_stage(size_t range, size_t& argument);
  void add_operation(size_t range, size_t& argument);
  void add_other(size_t range, size_t& argument);
  void add_window(size_t range, size_t& argument);
  void sort_frames();
  void place_stages();
  void place_operations();
  void order_operations();
  void link_lanes();
  void link_stages();
  int32_t latest_before(const TenantFrame& frame, int32_t stage) const;
  int32_t frame_of(int32_t tenant, int64_t id) const;
  int32_t resource_of(StringId name);
  int32_t class_of(StringId name);

  // The arguments of a range, whose rows ascend with the ranges.
  template <typename Take>
  void arguments_of(size_t range, size_t& at, Take take) const {
    const trace::Arguments& all = timeline_.arguments;
    while (at < all.size() && all.range[at] < static_cast<int32_t>(range)) ++at;
    for (; at < all.size() && all.range[at] == static_cast<int32_t>(range); ++at) take(all.key[at], all.value[at]);
  }
  static int64_t whole(const std::variant<int64_t, double, StringId>& value) {
    if (const auto* exact = std::get_if<int64_t>(&value)) return *exact;
    if (const auto* real = std::get_if<double>(&value)) {
      constexpr double kLimit = 9e18;
      return std::isfinite(*real) ? std::llround(std::clamp(*real, -kLimit, kLimit)) : 0;
    }
    return 0;
  }
  int32_t tenant_of(StringId category) const {
    return category < tenant_of_word_.size() ? tenant_of_word_[category] : kNone;
  }
  int64_t word(const char* text) const { return timeline_.strings.find(text); }

  const Timeline& timeline_;
  TenantTrace trace_;
  std::vector<int32_t> tenant_of_word_, resource_of_word_, class_of_word_;  // by StringId; kNone
  std::vector<int32_t> stage_of_range_;                                     // row of a stage before it is sorted
  std::vector<int32_t> before_row_;  // of each such row: that of the stage before it on its thread
  std::unordered_map<int32_t, int32_t> last_of_lane_;
  std::vector<int32_t> operation_of_range_;
  std::vector<int32_t> range_of_operation_;
  std::vector<std::unordered_map<int64_t, int32_t>> frames_;  // by tenant, then id
  int64_t tenant_domain_ = 0, operation_domain_ = 0, holder_domain_ = 0, window_domain_ = 0, window_ = 0, frame_ = 0,
          push_ = 0, recorder_ = 0, token_ = 0, sensor_stamp_ = 0, comm_ = 0, blocked_ = 0, deadline_ = 0, outcome_ = 0,
          resource_ = 0, waited_ = 0, cpu_ = 0, runnable_ = 0, slice_ = 0, late_ = 0, finished_ = 0, dropped_ = 0,
          overwritten_ = 0, failed_ = 0;
};

void Reader::find_words() {
  const size_t count = timeline_.strings.size();
  tenant_of_word_.assign(count, kNone);
  resource_of_word_.assign(count, kNone);
  class_of_word_.assign(count, kNone);
  for (size_t i = 0; i < trace_.tenants.size(); ++i)
    if (const int64_t id = timeline_.strings.find(trace_.tenants[i].name); id != kNone)
      tenant_of_word_[static_cast<size_t>(id)] = static_cast<int32_t>(i);
  tenant_domain_ = word(words::kTenantDomain), operation_domain_ = word(words::kOperationDomain);
  holder_domain_ = word(words::kHolderDomain), window_domain_ = word(words::kWindowDomain);
  window_ = word(words::kWindow), frame_ = word(words::kFrame), push_ = word(words::kPush);
  recorder_ = word(words::kRecorder), token_ = word(words::kToken), sensor_stamp_ = word(words::kStampNs);
  comm_ = word(words::kCommNs), blocked_ = word(words::kBlockedNs), deadline_ = word(words::kDeadlineNs);
  outcome_ = word(words::kOutcome), resource_ = word(words::kResource), waited_ = word(words::kWaitedNs);
  cpu_ = word(words::kCpuNs), runnable_ = word(words::kRunnableNs), slice_ = word(words::kSlice),
  late_ = word(words::kLateNs);
  finished_ = word(words::kFinished), dropped_ = word(words::kDropped), overwritten_ = word(words::kOverwritten);
  failed_ = word(words::kFailed);
}

int32_t Reader::resource_of(StringId name) {
  int32_t& known = resource_of_word_[name];
  if (known != kNone) return known;
  const std::string text(timeline_.strings[name]);
  known = trace_.find_resource(text);
  if (known == kNone) {
    trace_.resources.push_back(undeclared_resource(text, trace_.policy));
    known = static_cast<int32_t>(trace_.resources.size() - 1);
  }
  return known;
}

int32_t Reader::class_of(StringId name) {
  int32_t& known = class_of_word_[name];
  if (known != kNone) return known;
  known = class_named(trace_, name == 0 ? "cpu" : std::string(timeline_.strings[name]));
  return known;
}

void Reader::add_frame(size_t range, size_t& argument) {
  const trace::Ranges& ranges = timeline_.ranges;
  TenantFrame frame;
  frame.tenant = tenant_of(ranges.category_of(range));
  if (frame.tenant == kNone) return;
  const TenantInfo& tenant = trace_.tenants[static_cast<size_t>(frame.tenant)];
  frame.id = ranges.frame[range];
  frame.arrival_ns = frame.stamp_ns = ranges.start_ns[range];
  frame.done_ns = ranges.end_ns[range];
  frame.deadline_ns = tenant.deadline_ns;
  if (!ranges.open[range]) frame.outcome = FrameOutcome::kFinished;
  int64_t blocked = 0;
  arguments_of(range, argument, [&](int64_t key, const auto& value) {
    constexpr int64_t kMost = int64_t{1} << 60;
    if (key == blocked_) blocked = std::clamp(whole(value), int64_t{0}, kMost);
    if (key == comm_) frame.stamp_ns = frame.arrival_ns - std::clamp(whole(value), int64_t{0}, kMost);
    if (key == sensor_stamp_) frame.sensor_stamp_ns = whole(value);
    if (key == token_ && std::holds_alternative<StringId>(value)) frame.token = std::get<StringId>(value);
    if (key == deadline_) frame.deadline_ns = std::clamp(whole(value), int64_t{0}, kMost);
    if (key != outcome_ || ranges.open[range]) return;
    const auto* text = std::get_if<StringId>(&value);
    if (!text) return;
    if (*text == dropped_) frame.outcome = FrameOutcome::kDropped;
    if (*text == overwritten_) frame.outcome = FrameOutcome::kOverwritten;
    if (*text == failed_) frame.outcome = FrameOutcome::kFailed;
  });
  // It would have been there, had the source not waited for room with an earlier one: that is queueing.
  frame.arrival_ns = std::max(frame.stamp_ns, frame.arrival_ns - blocked);
  trace_.frames.push_back(frame);
}

void Reader::add_stage(size_t range, size_t& argument) {
  const trace::Ranges& ranges = timeline_.ranges;
  TenantStage stage;
  stage.tenant = tenant_of(ranges.category_of(range));
  if (stage.tenant == kNone) return;
  stage.lane = ranges.lane[range];
  stage.range = static_cast<int32_t>(range);
  stage.name = ranges.name[range];
  stage.start_ns = ranges.start_ns[range];
  stage.end_ns = ranges.end_ns[range];
  arguments_of(range, argument, [&](int64_t key, const auto& value) {
    if (key == cpu_) stage.cpu_ns = std::max(int64_t{0}, whole(value));
    if (key == runnable_) stage.runnable_ns = std::clamp(whole(value), int64_t{0}, stage.end_ns - stage.start_ns);
  });
  const auto row = static_cast<int32_t>(trace_.stages.size());
  const auto [last, is_first] = last_of_lane_.try_emplace(stage.lane, row);
  before_row_.push_back(is_first ? kNone : last->second);
  last->second = row;
  stage_of_range_[range] = row;
  trace_.stages.push_back(stage);
}

void Reader::add_operation(size_t range, size_t& argument) {
  const trace::Ranges& ranges = timeline_.ranges;
  TenantOperation operation;
  // What has no length and stands where one stage ends and the next begins belongs to that of its frame.
  if (int32_t& stage = stage_of_range_[range]; stage != kNone) {
    const auto frame_of_row = [&](int32_t row) {
      return ranges.frame[static_cast<size_t>(trace_.stages[static_cast<size_t>(row)].range)];
    };
    const int32_t before = before_row_[static_cast<size_t>(stage)];
    if (before != kNone && ranges.frame[range] != frame_of_row(stage) && ranges.frame[range] == frame_of_row(before))
      stage = before;
  }
  operation.stage = stage_of_range_[range];
  operation.kind = class_of(ranges.category_of(range));
  operation.name = ranges.name[range];
  operation.start_ns = operation.ready_ns = ranges.start_ns[range];
  operation.end_ns = ranges.end_ns[range];
  operation.is_push = ranges.name[range] == push_;
  if (const int32_t parent = ranges.parent[range]; parent != kNone)
    operation.inside = operation_of_range_[static_cast<size_t>(parent)];
  arguments_of(range, argument, [&](int64_t key, const auto& value) {
    constexpr int64_t kMost = int64_t{1} << 60;
    if (key == waited_) operation.ready_ns = operation.start_ns - std::clamp(whole(value), int64_t{0}, kMost);
    if (key == cpu_) operation.cpu_ns = std::max(int64_t{0}, whole(value));
    if (key == runnable_)
      operation.runnable_ns = std::clamp(whole(value), int64_t{0}, operation.end_ns - operation.start_ns);
    if (key == slice_) operation.slice = static_cast<int32_t>(std::clamp(whole(value), int64_t{0}, int64_t{1} << 30));
    if (key == resource_)
      if (const auto* text = std::get_if<StringId>(&value)) operation.resource = resource_of(*text);
  });
  operation_of_range_[range] = static_cast<int32_t>(trace_.operations.size());
  range_of_operation_.push_back(static_cast<int32_t>(range));
  trace_.operations.push_back(operation);
}

void Reader::add_other(size_t range, size_t& argument) {
  const trace::Ranges& ranges = timeline_.ranges;
  OtherHolder other{ranges.category_of(range) == recorder_, kNone, ranges.start_ns[range], ranges.end_ns[range]};
  arguments_of(range, argument, [&](int64_t key, const auto& value) {
    if (key != resource_) return;
    if (const auto* text = std::get_if<StringId>(&value)) other.resource = resource_of(*text);
  });
  if (other.resource != kNone) trace_.others.push_back(other);
}

void Reader::add_window(size_t range, size_t& argument) {
  trace_.from_ns = timeline_.ranges.start_ns[range];
  trace_.to_ns = timeline_.ranges.end_ns[range];
  arguments_of(range, argument, [&](int64_t key, const auto& value) {
    constexpr int64_t kMost = int64_t{1} << 60;
    // What is due at the very beginning must not fall before it by the clock's noise.
    if (key == late_)
      trace_.from_ns -= std::clamp(whole(value), int64_t{0}, kMost) + std::llround(trace_.dead_band_ns());
  });
}

void Reader::read_ranges() {
  const trace::Ranges& ranges = timeline_.ranges;
  stage_of_range_.assign(ranges.size(), kNone);
  operation_of_range_.assign(ranges.size(), kNone);
  trace_.to_ns = std::numeric_limits<int64_t>::max();
  trace_.from_ns = std::numeric_limits<int64_t>::min();
  size_t argument = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const int64_t domain = ranges.domain_of(i);
    const int32_t parent = ranges.parent[i];
    if (parent != kNone) stage_of_range_[i] = stage_of_range_[static_cast<size_t>(parent)];
    if (domain == 0) continue;
    if (domain == operation_domain_) {
      add_operation(i, argument);
    } else if (domain == tenant_domain_) {
      if (!ranges.is_async[i])
        add_stage(i, argument);
      else if (ranges.name[i] == frame_)
        add_frame(i, argument);
    } else if (domain == holder_domain_) {
      add_other(i, argument);
    } else if (domain == window_domain_ && ranges.name[i] == window_) {
      add_window(i, argument);
    }
  }
  trace_.lost_records = timeline_.losses.dropped_records;
  for (const auto& [fault, count] : timeline_.losses.faults) trace_.lost_records += count;
}

void Reader::sort_frames() {
  std::stable_sort(trace_.frames.begin(), trace_.frames.end(),
                   [](const TenantFrame& a, const TenantFrame& b) { return a.arrival_ns < b.arrival_ns; });
  frames_.resize(trace_.tenants.size());
  for (size_t i = 0; i < trace_.frames.size(); ++i) {
    TenantFrame& frame = trace_.frames[i];
    frame.counts = frame.stamp_ns >= trace_.from_ns && frame.stamp_ns <= trace_.to_ns;
    frames_[static_cast<size_t>(frame.tenant)].try_emplace(frame.id, static_cast<int32_t>(i));
  }
}

void Reader::read_marks() {
  const trace::Marks& marks = timeline_.marks;
  const int64_t not_sent = word(words::kNotSent);
  for (size_t i = 0; i < marks.size(); ++i) {
    if (marks.domain_of(i) != tenant_domain_ || marks.name[i] != not_sent || not_sent == kNone) continue;
    if (marks.time_ns[i] < trace_.from_ns || marks.time_ns[i] > trace_.to_ns) continue;
    if (const int32_t tenant = tenant_of(marks.category_of(i)); tenant != kNone)
      ++trace_.tenants[static_cast<size_t>(tenant)].not_sent;
  }
}

int32_t Reader::frame_of(int32_t tenant, int64_t id) const {
  const auto& of_tenant = frames_[static_cast<size_t>(tenant)];
  const auto found = of_tenant.find(id);
  return found == of_tenant.end() ? kNone : found->second;
}

// Stages come to stand by frame, in the order of their starts; those of no frame are left out.
void Reader::place_stages() {
  std::vector<TenantStage> found = std::move(trace_.stages);
  std::vector<int32_t> frame_of_stage(found.size());
  for (size_t i = 0; i < found.size(); ++i) {
    frame_of_stage[i] = frame_of(found[i].tenant, timeline_.ranges.frame[static_cast<size_t>(found[i].range)]);
    if (frame_of_stage[i] == kNone)
      ++trace_.stages_without_frame;
    else
      ++trace_.frames[static_cast<size_t>(frame_of_stage[i])].stage_count;
  }
  int32_t next = 0;
  for (TenantFrame& frame : trace_.frames) {
    frame.first_stage = next;
    next += frame.stage_count;
    frame.stage_count = 0;
  }
  trace_.stages.assign(static_cast<size_t>(next), {});
  std::vector<int32_t> place(found.size(), kNone);
  for (size_t i = 0; i < found.size(); ++i) {
    if (frame_of_stage[i] == kNone) continue;
    TenantFrame& frame = trace_.frames[static_cast<size_t>(frame_of_stage[i])];
    place[i] = frame.first_stage + frame.stage_count++;
    found[i].frame = frame_of_stage[i];
    trace_.stages[static_cast<size_t>(place[i])] = found[i];
  }
  for (int32_t& stage : stage_of_range_)
    if (stage != kNone) stage = place[static_cast<size_t>(stage)];
}

// The same for operations; a stage without any gets one.
void Reader::place_operations() {
  std::vector<TenantOperation> found = std::move(trace_.operations);
  std::unordered_map<int32_t, int32_t> tenant_of_lane;
  for (const TenantStage& stage : trace_.stages) tenant_of_lane.try_emplace(stage.lane, stage.tenant);
  std::vector<int32_t> orphans;
  for (size_t i = 0; i < found.size(); ++i) {
    TenantOperation& operation = found[i];
    operation.stage = stage_of_range_[static_cast<size_t>(range_of_operation_[i])];
    if (operation.stage != kNone) {
      TenantStage& stage = trace_.stages[static_cast<size_t>(operation.stage)];
      operation.tenant = stage.tenant;
      ++stage.operation_count;
      continue;
    }
    ++trace_.operations_without_stage;
    const auto lane = static_cast<size_t>(range_of_operation_[i]);
    if (const auto owner = tenant_of_lane.find(timeline_.ranges.lane[lane]); owner != tenant_of_lane.end()) {
      operation.tenant = owner->second;
      orphans.push_back(static_cast<int32_t>(i));
    }
  }
  const auto plain = [&]() {
    const auto id = timeline_.strings.find("cpu");
    if (id != kNone) return class_of(static_cast<StringId>(id));
    return class_of(0);
  }();
  int32_t next = 0;
  for (TenantStage& stage : trace_.stages) {
    stage.first_operation = next;
    next += std::max(1, stage.operation_count);
  }
  trace_.operations.assign(static_cast<size_t>(next) + orphans.size(), {});
  std::vector<int32_t> place(found.size(), kNone), used(trace_.stages.size(), 0);
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i].stage == kNone) continue;
    const auto stage = static_cast<size_t>(found[i].stage);
    place[i] = trace_.stages[stage].first_operation + used[stage]++;
    trace_.operations[static_cast<size_t>(place[i])] = found[i];
  }
  for (size_t i = 0; i < trace_.stages.size(); ++i) {
    TenantStage& stage = trace_.stages[i];
    if (stage.operation_count > 0) continue;
    stage.operation_count = 1;
    TenantOperation& only = trace_.operations[static_cast<size_t>(stage.first_operation)];
    only.stage = static_cast<int32_t>(i);
    only.tenant = stage.tenant;
    only.resource = trace_.tenants[static_cast<size_t>(stage.tenant)].cpu;
    only.kind = plain;
    only.name = stage.name;
    only.ready_ns = only.start_ns = stage.start_ns;
    only.end_ns = stage.end_ns;
    only.cpu_ns = stage.cpu_ns;
    only.runnable_ns = stage.runnable_ns;
  }
  for (size_t i = 0; i < orphans.size(); ++i) {
    place[static_cast<size_t>(orphans[i])] = next + static_cast<int32_t>(i);
    trace_.operations[static_cast<size_t>(next) + i] = found[static_cast<size_t>(orphans[i])];
  }
  for (TenantOperation& operation : trace_.operations)
    if (operation.inside != kNone) operation.inside = place[static_cast<size_t>(operation.inside)];
}

// Clock noise may let an operation be ready before the one before it ended; time runs forwards within a stage.
void Reader::order_operations() {
  for (TenantStage& stage : trace_.stages) {
    stage.runnable_ns = std::min(stage.runnable_ns, stage.end_ns - stage.start_ns);
    int64_t at = stage.start_ns;
    for (int32_t i = stage.first_operation; i < stage.first_operation + stage.operation_count; ++i) {
      TenantOperation& operation = trace_.operations[static_cast<size_t>(i)];
      operation.end_ns = std::min(operation.end_ns, stage.end_ns);
      operation.start_ns = std::clamp(operation.start_ns, std::min(at, stage.end_ns), stage.end_ns);
      operation.end_ns = std::max(operation.end_ns, operation.start_ns);
      operation.ready_ns = std::clamp(operation.ready_ns, std::min(at, operation.start_ns), operation.start_ns);
      operation.runnable_ns = std::min(operation.runnable_ns, operation.end_ns - operation.start_ns);
      // What follows may lie inside this one, if its range did.
      const bool holds_next = i + 1 < stage.first_operation + stage.operation_count &&
                              trace_.operations[static_cast<size_t>(i) + 1].inside == i;
      at = holds_next ? operation.start_ns : operation.end_ns;
    }
  }
}

void Reader::link_lanes() {
  std::vector<int32_t>& order = trace_.lane_stages;
  order.resize(trace_.stages.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int32_t>(i);
  const auto& stages = trace_.stages;
  std::sort(order.begin(), order.end(), [&stages](int32_t a, int32_t b) {
    const TenantStage &x = stages[static_cast<size_t>(a)], &y = stages[static_cast<size_t>(b)];
    if (x.lane != y.lane) return x.lane < y.lane;
    return x.start_ns != y.start_ns ? x.start_ns < y.start_ns : a < b;
  });
  for (size_t i = 1; i < order.size(); ++i) {
    TenantStage& stage = trace_.stages[static_cast<size_t>(order[i])];
    if (trace_.stages[static_cast<size_t>(order[i - 1])].lane == stage.lane) stage.before_on_lane = order[i - 1];
  }
}

// Of the stages of its frame that had ended when a stage began, the last; else the one before it.
int32_t Reader::latest_before(const TenantFrame& frame, int32_t stage) const {
  const int64_t start = trace_.stages[static_cast<size_t>(stage)].start_ns;
  int32_t best = kNone;
  for (int32_t i = frame.first_stage; i < stage; ++i) {
    const int64_t end = trace_.stages[static_cast<size_t>(i)].end_ns;
    if (end <= start && (best == kNone || end > trace_.stages[static_cast<size_t>(best)].end_ns)) best = i;
  }
  return best == kNone ? stage - 1 : best;
}

// A stage came after those from which a flow leads to it, or after the one before it of its frame on its thread.
void Reader::link_stages() {
  const double band = 2 * trace_.dead_band_ns();
  const trace::Flows& flows = timeline_.flows;
  std::vector<std::pair<int32_t, int32_t>> edges;  // to, from
  const auto stage_at = [this](int32_t range) {
    return range == kNone ? kNone : stage_of_range_[static_cast<size_t>(range)];
  };
  for (size_t i = 0; i < flows.size(); ++i) {
    const int32_t from = stage_at(flows.from_range[i]), to = stage_at(flows.to_range[i]);
    if (from == kNone || to == kNone || from == to) continue;
    const TenantStage &cause = trace_.stages[static_cast<size_t>(from)],
                      &effect = trace_.stages[static_cast<size_t>(to)];
    if (cause.frame != effect.frame) continue;
    if (static_cast<double>(flows.from_ns[i] - flows.to_ns[i]) > band) ++trace_.contradictions;
    // Noise may turn the order of two short ones round; a cycle must not come of it.
    if (from < to) edges.emplace_back(to, from);
  }
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  size_t next = 0;
  for (const TenantFrame& frame : trace_.frames) {
    for (int32_t i = frame.first_stage; i < frame.first_stage + frame.stage_count; ++i) {
      TenantStage& stage = trace_.stages[static_cast<size_t>(i)];
      stage.first_edge = static_cast<int32_t>(trace_.edges.size());
      for (; next < edges.size() && edges[next].first == i; ++next) trace_.edges.push_back(edges[next].second);
      const bool by_flow = static_cast<int32_t>(trace_.edges.size()) > stage.first_edge;
      if (static_cast<double>(frame.arrival_ns - stage.start_ns) > band ||
          (frame.finished() && static_cast<double>(stage.end_ns - frame.done_ns) > band))
        ++trace_.contradictions;
      if (by_flow) ++trace_.edges_wanted, ++trace_.edges_recorded;
      if (i > frame.first_stage) {
        int32_t before = i - 1;  // on its thread, even with others' work between
        while (before >= frame.first_stage && trace_.stages[static_cast<size_t>(before)].lane != stage.lane) --before;
        const bool same_thread = before >= frame.first_stage;
        if (same_thread &&
            std::find(trace_.edges.begin() + stage.first_edge, trace_.edges.end(), before) == trace_.edges.end())
          trace_.edges.push_back(before);
        if (!same_thread && !by_flow) {
          trace_.edges.push_back(latest_before(frame, i));
          stage.cause_known = false;
          ++trace_.edges_wanted;
        }
      }
      stage.edge_count = static_cast<int32_t>(trace_.edges.size()) - stage.first_edge;
    }
  }
}

}  // namespace

int32_t TenantTrace::find_tenant(const std::string& name) const {
  for (size_t i = 0; i < tenants.size(); ++i)
    if (tenants[i].name == name) return static_cast<int32_t>(i);
  return kNone;
}

int32_t TenantTrace::find_resource(const std::string& name) const {
  for (size_t i = 0; i < resources.size(); ++i)
    if (resources[i].name == name) return static_cast<int32_t>(i);
  return kNone;
}

bool TenantTrace::keeps_server(int32_t operation, int32_t next) const {
  const TenantOperation &a = operations[static_cast<size_t>(operation)], &b = operations[static_cast<size_t>(next)];
  if (a.stage == kNone || a.stage != b.stage || a.resource != b.resource || a.resource == kNone) return false;
  const TenantResource& what = resources[static_cast<size_t>(a.resource)];
  if (what.kind != ResourceKind::kExclusive) return false;
  // A lock of no contention takes less than the second; kernels are launched within the first.
  constexpr int64_t kShortGap = 100'000, kAtOnce = 2'000;
  const auto noise = static_cast<int64_t>(std::ceil(2 * dead_band_ns()));
  return b.start_ns - b.ready_ns <= std::max(noise, kAtOnce) && (what.by_stage || b.start_ns - a.end_ns <= kShortGap);
}

bool is_tenant_trace(const Timeline& timeline) {
  return timeline.facts.count(words::kTenants) > 0;
}

Result<TenantTrace> tenant_trace(const Timeline& timeline) {
  return Reader(timeline).read();
}

}  // namespace strobe::analyze
