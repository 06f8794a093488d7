#include "analyze/device_work.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;

Devices::Devices(const Timeline& timeline) : of_lane_(timeline.lanes.size(), trace::kNone) {
  std::map<int64_t, int32_t> index;
  const auto number_of = [&](const trace::Lane& lane) -> int64_t {
    const auto fact = timeline.facts.find("gpu.of." + std::to_string(lane.pid) + "." + std::to_string(lane.device));
    int64_t number = lane.device;
    if (fact != timeline.facts.end())
      std::from_chars(fact->second.data(), fact->second.data() + fact->second.size(), number);
    return number;
  };
  for (const trace::Lane& lane : timeline.lanes)
    if (lane.kind != trace::Lane::Kind::kThread) index.emplace(number_of(lane), 0);
  for (auto& [number, position] : index) {
    position = static_cast<int32_t>(numbers_.size());
    numbers_.push_back(number);
  }
  for (size_t i = 0; i < timeline.lanes.size(); ++i)
    if (timeline.lanes[i].kind != trace::Lane::Kind::kThread) of_lane_[i] = index[number_of(timeline.lanes[i])];
}

bool is_communication(std::string_view name) {
  return name.starts_with("nccl") || name.starts_with("rccl") || name.starts_with("hccl") ||
         name.find("ncclKernel") != std::string_view::npos || name.find("ncclDevKernel") != std::string_view::npos;
}

std::vector<uint8_t> communication_names(const Timeline& timeline) {
  std::vector<uint8_t> is(timeline.strings.size());
  for (size_t i = 0; i < is.size(); ++i) is[i] = is_communication(timeline.strings[static_cast<trace::StringId>(i)]);
  return is;
}

OpenRanges::OpenRanges(const Timeline& timeline) : ranges_(timeline.ranges), of_lane_(timeline.lanes.size()) {
  for (size_t i = 0; i < ranges_.size(); ++i)
    if (!ranges_.is_async[i] && !is_device(ranges_.kind[i]))
      of_lane_[static_cast<size_t>(ranges_.lane[i])].push_back(static_cast<int32_t>(i));
}

int32_t OpenRanges::at(int32_t lane, int64_t time) const {
  if (lane == trace::kNone) return trace::kNone;
  const auto& rows = of_lane_[static_cast<size_t>(lane)];
  const auto after = std::partition_point(
      rows.begin(), rows.end(), [&](int32_t row) { return ranges_.start_ns[static_cast<size_t>(row)] <= time; });
  if (after == rows.begin()) return trace::kNone;
  // What is open now was open when the last one began, so it is that one or around it.
  int32_t row = *(after - 1);
  while (row != trace::kNone && ranges_.end_ns[static_cast<size_t>(row)] <= time)
    row = ranges_.parent[static_cast<size_t>(row)];
  return row;
}

std::vector<DeviceRow> device_rows(const Timeline& timeline) {
  const trace::Ranges& ranges = timeline.ranges;
  std::vector<int64_t> latest(timeline.lanes.size(), kBefore);
  std::vector<DeviceRow> rows;
  auto op = timeline.device_ops.begin();
  for (size_t i = 0; i < ranges.size(); ++i) {
    const RangeKind kind = ranges.kind[i];
    if (!is_device(kind) || kind == RangeKind::kSync) continue;
    const auto row = static_cast<int32_t>(i);
    while (op != timeline.device_ops.end() && op->range < row) ++op;
    const bool has_op = op != timeline.device_ops.end() && op->range == row;
    int64_t& end = latest[static_cast<size_t>(ranges.lane[i])];
    rows.push_back({row, has_op ? op->launch : trace::kNone, has_op ? op->capture : trace::kNone,
                    has_op ? static_cast<int32_t>(op - timeline.device_ops.begin()) : trace::kNone, end});
    end = std::max(end, ranges.end_ns[i]);
  }
  return rows;
}

}  // namespace strobe::analyze
