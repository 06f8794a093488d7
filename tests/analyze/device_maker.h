// Timelines with a device, by hand: calls on threads that launch kernels and copies on streams.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trace/timeline_maker.h"

namespace strobe::test {

class DeviceMaker : public TimelineMaker {
 public:
  int32_t stream(int32_t number, int32_t device = 0, int32_t pid = 100) {
    const int32_t row = lane(number, "stream " + std::to_string(number), pid, trace::Lane::Kind::kStream);
    timeline.lanes.back().device = device;
    return row;
  }
  int32_t kind(trace::RangeKind kind, const std::string& name, int32_t lane, int64_t start, int64_t end) {
    const int32_t row = range(name, lane, start, end);
    timeline.ranges.kind.resize(timeline.ranges.size(), trace::RangeKind::kAnnotation);
    timeline.ranges.kind[static_cast<size_t>(row)] = kind;
    return row;
  }
  int32_t api(const std::string& name, int32_t lane, int64_t start, int64_t end) {
    const int32_t row = kind(trace::RangeKind::kApi, name, lane, start, end);
    timeline.api_calls.push_back({row, 0});
    return row;
  }
  int32_t op(const std::string& name, int32_t lane, int64_t start, int64_t end) {
    return kind(trace::RangeKind::kOperator, name, lane, start, end);
  }
  // launch: row of its call; kNone: not in the trace.
  trace::DeviceOp& kernel(const std::string& name, int32_t lane, int64_t start, int64_t end,
                          int32_t launch = trace::kNone) {
    return device_op(trace::RangeKind::kKernel, name, lane, start, end, launch);
  }
  trace::DeviceOp& copy(uint8_t copy_kind, uint8_t source, uint8_t target, int64_t bytes, int32_t lane, int64_t start,
                        int64_t end, int32_t launch = trace::kNone) {
    trace::DeviceOp& made = device_op(trace::RangeKind::kCopy, "Memcpy", lane, start, end, launch);
    made.copy_kind = copy_kind;
    made.source_kind = source;
    made.target_kind = target;
    made.bytes = bytes;
    return made;
  }
  trace::DeviceOp& device_op(trace::RangeKind what, const std::string& name, int32_t lane, int64_t start, int64_t end,
                             int32_t launch) {
    trace::DeviceOp made;
    made.range = kind(what, name, lane, start, end);
    made.launch = launch;
    timeline.device_ops.push_back(made);
    return timeline.device_ops.back();
  }
  trace::Timeline finish() {
    timeline.ranges.kind.resize(timeline.ranges.size(), trace::RangeKind::kAnnotation);
    return TimelineMaker::finish();
  }
};

// A random host and device: nested operators and calls on two threads, kernels and copies on three streams of two
// devices. The operations of a stream may overlap; one in eight has no launch.
inline trace::Timeline random_device_timeline(uint32_t seed, int calls) {
  std::mt19937 random(seed);
  const auto below = [&random](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
  DeviceMaker maker;
  const int32_t threads[] = {maker.lane(1, "a"), maker.lane(2, "b")};
  const int32_t streams[] = {maker.stream(7), maker.stream(8), maker.stream(7, 1)};
  const char* kernels[] = {"gemm", "relu", "ncclKernel_AllReduce", "copy_Memcpy_kernel"};
  int64_t now[2] = {0, 0};
  for (int i = 0; i < calls; ++i) {
    const int64_t thread = below(2);
    int64_t& at = now[thread];
    const int64_t begin = at, call = begin + below(20), end = call + 1 + below(30);
    if (below(2) == 0) maker.op(below(2) == 0 ? "aten::conv" : "aten::relu", threads[thread], begin, end + below(10));
    const int32_t launch = maker.api("cudaLaunchKernel", threads[thread], call, end);
    at = end + 10 + below(100);
    const int64_t start = call + below(200), stop = start + below(80);
    const int32_t stream = streams[below(3)];
    const int32_t known = below(8) == 0 ? trace::kNone : launch;
    if (below(4) == 0)
      maker.copy(static_cast<uint8_t>(1 + below(2)), static_cast<uint8_t>(below(3)), static_cast<uint8_t>(below(3)),
                 below(5) == 0 ? -1 : below(1000), stream, start, stop, known);
    else
      maker.kernel(kernels[below(4)], stream, start, stop, known);
  }
  return maker.finish();
}

inline std::optional<size_t> row_with(const Table& table, const std::string& column, const std::string& text) {
  for (size_t row = 0; row < table.row_count(); ++row)
    if (table.text(row, column) == text) return row;
  return {};
}

}  // namespace strobe::test
