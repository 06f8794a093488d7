// Links: strobe_trace strobe_analyze
// The trace reader: any bytes give a timeline that holds together, or an error. Input that starts with "SQL" is a
// script that damages a small valid trace (with it the fuzzer gets past SQLite to our own checks); anything else is a
// file.
#include <cstdint>
#include <string>
#include <string_view>

#include "analyze/layers.h"
#include "analyze/pipeline.h"
#include "fuzz/sqlite_input.h"
#include "trace/store.h"

namespace {

using namespace strobe;
using namespace strobe::fuzz;

const std::string& valid_trace() {
  static const std::string bytes = [] {
    trace::Timeline timeline;
    auto& strings = timeline.strings;
    timeline.processes.push_back({1, strings.intern("strobe")});
    timeline.lanes.push_back({trace::Lane::Kind::kThread, 1, 1, strings.intern("main")});
    timeline.lanes.push_back({trace::Lane::Kind::kStream, 1, 7, strings.intern("stream")});
    const auto range = [&](const char* name, int32_t lane, int64_t start, int64_t end, int64_t frame) {
      timeline.ranges.name.push_back(strings.intern(name));
      timeline.ranges.lane.push_back(lane);
      timeline.ranges.start_ns.push_back(start);
      timeline.ranges.end_ns.push_back(end);
      timeline.ranges.frame.push_back(frame);
      timeline.ranges.is_async.push_back(0);
      timeline.ranges.open.push_back(0);
      timeline.ranges.kind.push_back(trace::RangeKind::kAnnotation);
    };
    range("run", 0, 0, 100, trace::kNoFrame);
    range("read", 0, 10, 20, 0);
    range("infer", 0, 20, 60, 0);
    range("gemm", 1, 30, 50, 0);
    range("alone", 0, 200, 300, trace::kNoFrame);
    range("cudaLaunchKernel", 0, 25, 28, trace::kNoFrame);
    timeline.ranges.kind[3] = trace::RangeKind::kKernel;
    timeline.ranges.kind[5] = trace::RangeKind::kApi;
    timeline.device_ops.emplace_back().range = 3;
    timeline.device_ops[0].correlation = 9;
    timeline.api_calls.push_back({5, 9});
    timeline.tables.emplace_back("summary", std::vector<Column>{{"name", "", 0}, {"calls", "", 0}});
    timeline.tables[0].add_row({"gemm", int64_t{3}});
    timeline.tables[0].notes = {"a note"};
    timeline.arguments.range = {4, 4};
    timeline.arguments.key = {strings.intern("stage"), strings.intern("frames")};
    timeline.arguments.value.emplace_back(strings.intern("infer"));
    timeline.arguments.value.emplace_back(int64_t{7});
    timeline.marks.time_ns = {70};
    timeline.marks.name = {strings.intern("drop")};
    timeline.marks.lane = {0};
    timeline.marks.frame = {3};
    timeline.flows.name = {strings.intern("queue")};
    timeline.flows.from_ns = {15};
    timeline.flows.to_ns = {25};
    timeline.flows.from_range = timeline.flows.to_range = {trace::kNone};
    timeline.flows.from_lane = timeline.flows.to_lane = {0};
    timeline.counters.time_ns = {5};
    timeline.counters.name = {strings.intern("depth")};
    timeline.counters.pid = {1};
    timeline.counters.value = {2};
    timeline.layers.push_back({strings.intern("conv"), 0, 0, 1, 2, 3});
    timeline.layers.push_back({strings.intern("relu"), 0, 0, 0, 2, 3});
    timeline.kernels.push_back({strings.intern("k"), 0, 0, {0, 1}, {10, 20}});
    timeline.facts = {{"pipeline.stages", "read,infer"}, {"cores", "2"}, {"engine", "fake"}};
    timeline.losses.faults["unmatched pop"] = 1;
    timeline.duration_ns = 300;
    timeline.finish();
    return bytes_written_by([&](const char* path) { return trace::write_store(timeline, path).has_value(); });
  }();
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  with_input_file(input, valid_trace(), [](const std::string& path) {
    const auto timeline = trace::read_store(path);
    if (!timeline) return;
    check_timeline(*timeline);
    analyze::stage_latency(*timeline);
    analyze::frame_latency(*timeline);
    analyze::throughput(*timeline);
    analyze::stage_limits(*timeline);
    analyze::layers(*timeline);
    analyze::fusion(*timeline);
  });
  return 0;
}
