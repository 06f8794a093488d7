#include "analyze/idle_hta.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;

namespace {

bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

constexpr std::string_view kStep = "ProfilerStep";

// The start of the last step when there are several, else nothing to leave out.
int64_t last_step_start(const Timeline& timeline) {
  std::set<trace::StringId> names;
  int64_t last = INT64_MIN;
  for (size_t i = 0; i < timeline.ranges.size(); ++i) {
    const RangeKind kind = timeline.ranges.kind[i];
    if (kind != RangeKind::kAnnotation && kind != RangeKind::kOperator) continue;
    if (!timeline.strings[timeline.ranges.name[i]].starts_with(kStep)) continue;
    names.insert(timeline.ranges.name[i]);
    last = std::max(last, timeline.ranges.start_ns[i]);
  }
  return names.size() >= 2 ? last : INT64_MAX;
}

}  // namespace

WorkType hta_type(std::string_view name) {
  const auto begins = [&](std::string_view part) { return name.starts_with(part); };
  if (begins("nccl") || begins("hip") || begins("hccl") || has(name, "ncclKernel")) return WorkType::kCommunication;
  if (begins("Memcpy") || begins("Memset") || begins("dma")) return WorkType::kMemory;
  const bool is_other = has(name, "Memcpy") || has(name, "Memset") || has(name, "dma") || has(name, "Sync") ||
                        begins("Stream Wait Event") || (begins("cuda") && has(name, "LaunchKernel"));
  return is_other ? WorkType::kOther : WorkType::kCompute;
}

HtaView::HtaView(const Timeline& timeline) : timeline_(timeline) {
  const trace::Ranges& ranges = timeline.ranges;
  origin_ns_ = timeline.utc_start_ns;
  if (const auto base = timeline.facts.find("trace.baseTimeNanoseconds"); base != timeline.facts.end()) {
    int64_t base_ns = 0;
    std::from_chars(base->second.data(), base->second.data() + base->second.size(), base_ns);
    origin_ns_ -= base_ns;
  }
  for (size_t i = 0; i < ranges.size() && !rounds_; ++i) rounds_ = (origin_ns_ + ranges.start_ns[i]) % 1000 != 0;

  const int64_t last_step = last_step_start(timeline);
  const auto on_no_stream = [&](const trace::DeviceOp& op) {
    return timeline.lanes[static_cast<size_t>(ranges.lane[static_cast<size_t>(op.range)])].tid == -1;
  };
  // Files write "no stream" as 4294967295, which HTA takes for a stream, or as -1, which it does not. Those with -1
  // have waits for events there.
  const bool no_stream_is_none =
      std::any_of(timeline.device_ops.begin(), timeline.device_ops.end(), [&](const trace::DeviceOp& op) {
        return ranges.kind[static_cast<size_t>(op.range)] == RangeKind::kSync && op.sync_type == 1 && on_no_stream(op);
      });
  for (const trace::DeviceOp& op : timeline.device_ops) {
    const bool is_sync = ranges.kind[static_cast<size_t>(op.range)] == RangeKind::kSync;
    if (is_sync && no_stream_is_none && on_no_stream(op)) continue;
    if (last_step != INT64_MAX &&
        (op.launch == trace::kNone || ranges.start_ns[static_cast<size_t>(op.launch)] >= last_step))
      continue;
    ops_.push_back({op.range, op.launch, is_sync});
  }
}

// As HTA computes it, in doubles of microseconds.
int64_t HtaView::start_ns(int32_t range) const {
  const int64_t start = origin_ns_ + timeline_.ranges.start_ns[static_cast<size_t>(range)];
  if (!rounds_) return start;
  return static_cast<int64_t>(std::ceil(static_cast<double>(static_cast<long double>(start) / 1000))) * 1000;
}

int64_t HtaView::end_ns(int32_t range) const {
  const int64_t start = origin_ns_ + timeline_.ranges.start_ns[static_cast<size_t>(range)];
  const int64_t end = origin_ns_ + timeline_.ranges.end_ns[static_cast<size_t>(range)];
  if (!rounds_) return end;
  const auto start_us = static_cast<double>(static_cast<long double>(start) / 1000);
  const auto duration_us = static_cast<double>(static_cast<long double>(end - start) / 1000);
  return static_cast<int64_t>(std::floor(start_us + duration_us)) * 1000;
}

}  // namespace strobe::analyze
