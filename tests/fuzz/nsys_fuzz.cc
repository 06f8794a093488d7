// Links: strobe_importers strobe_trace
// The importer of Nsight Systems exports: any bytes give a timeline that holds together, or an error. Input that starts
// with "SQL" is a script that damages a small valid export, "BIN" patches its bytes, "CUT" cuts it; anything else is a
// file.
#include <cstdint>
#include <string>
#include <string_view>

#include "fuzz/sqlite_input.h"
#include "importers/nsys.h"
#include "trace/nsys_export.h"

namespace {

using namespace strobe;
using namespace strobe::fuzz;

// What the importer promises beyond what every timeline must hold.
void check_import(const trace::Timeline& timeline) {
  check_timeline(timeline);
  const trace::Ranges& ranges = timeline.ranges;
  for (size_t i = 0; i < ranges.size(); ++i)
    check(ranges.start_ns[i] >= 0 && ranges.end_ns[i] <= timeline.duration_ns, "a range lies outside the trace");
  for (const trace::DeviceOp& op : timeline.device_ops)
    check(is_device(ranges.kind[static_cast<size_t>(op.range)]), "a device operation's kind");
}

const std::string& valid_export() {
  static const std::string bytes = [] {
    trace::Timeline timeline;
    auto& strings = timeline.strings;
    timeline.processes.push_back({1, strings.intern("python3")});
    timeline.lanes.push_back({trace::Lane::Kind::kThread, 1, 1, strings.intern("main")});
    timeline.lanes.push_back({trace::Lane::Kind::kStream, 1, 7, strings.intern("stream"), 0, 1});
    const auto range = [&](const char* name, int32_t lane, int64_t start, trace::RangeKind kind) {
      timeline.ranges.name.push_back(strings.intern(name));
      timeline.ranges.lane.push_back(lane);
      timeline.ranges.start_ns.push_back(start);
      timeline.ranges.end_ns.push_back(start + 50);
      timeline.ranges.frame.push_back(trace::kNoFrame);
      timeline.ranges.is_async.push_back(0);
      timeline.ranges.open.push_back(0);
      timeline.ranges.kind.push_back(kind);
      const auto row = static_cast<int32_t>(timeline.ranges.size() - 1);
      if (kind == trace::RangeKind::kApi) timeline.api_calls.push_back({row, start / 10});
      if (!is_device(kind)) return;
      trace::DeviceOp& op = timeline.device_ops.emplace_back();
      op.range = row;
      op.correlation = start / 10 - 1;
      op.sync_type = kind == trace::RangeKind::kSync ? 2 : 0;
      op.sync_correlation = kind == trace::RangeKind::kSync ? 3 : 0;
    };
    range("aten::add, seq = 7, op_id = 12, sizes = [[2, 3]]", 0, 0, trace::RangeKind::kAnnotation);
    for (int kind = 2; kind <= static_cast<int>(trace::RangeKind::kGraph); ++kind) {
      range("cudaLaunchKernel_v7000", 0, 100 * kind, trace::RangeKind::kApi);
      const auto what = static_cast<trace::RangeKind>(kind);
      range("gemm", is_device(what) ? 1 : 0, 100 * kind + 10, what);
    }
    timeline.marks.time_ns = {70};
    timeline.marks.name = {strings.intern("drop")};
    timeline.marks.lane = {0};
    timeline.marks.frame = {trace::kNoFrame};
    timeline.facts = {{"gpu.0.name", "GPU"}, {"gpu.of.1.0", "0"}};
    timeline.losses.faults["unmatched pop"] = 1;
    timeline.duration_ns = 1000;
    timeline.finish();
    return bytes_written_by([&](const char* path) { return trace::write_nsys(timeline, path).has_value(); });
  }();
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  with_input_file(input, valid_export(), [](const std::string& path) {
    if (const auto timeline = importers::import_nsys(path, {})) check_import(*timeline);
  });
  return 0;
}
