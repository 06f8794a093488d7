#include <algorithm>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "exporters/exporter.h"
#include "exporters/folder.h"
#include "importers/importer.h"
#include "trace/timeline_maker.h"

namespace strobe {
namespace {

using trace::RangeKind;
using trace::Timeline;

class Chrome : public test::Folder {
 protected:
  nlohmann::json exported(const Timeline& timeline) {
    const auto path = folder_ / "out.json";
    EXPECT_TRUE(exporters::export_timeline(timeline, "chrome", path));
    return nlohmann::json::parse(*read_file(path));
  }
  // There and back again.
  Timeline returned(const Timeline& timeline, const char* name = "out.json") {
    const auto path = folder_ / name;
    EXPECT_TRUE(exporters::export_timeline(timeline, "chrome", path));
    auto back = importers::import_trace(path, {});
    EXPECT_TRUE(back) << back.error().to_string();
    return std::move(*back);
  }
};

// What a range is and where, in words, so that two timelines compare whatever their numbers of texts and lanes.
std::vector<std::string> ranges_of(const Timeline& timeline) {
  std::vector<std::string> lines;
  const trace::Ranges& ranges = timeline.ranges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const trace::Lane& lane = timeline.lanes[static_cast<size_t>(ranges.lane[i])];
    std::ostringstream line;
    line << timeline.strings[ranges.name[i]] << " " << ranges.start_ns[i] << ".." << ranges.end_ns[i] << " kind "
         << static_cast<int>(ranges.kind[i]) << " lane " << static_cast<int>(lane.kind) << " " << lane.pid << "/"
         << lane.tid << "/" << lane.device << " async " << int{ranges.is_async[i]} << " open " << int{ranges.open[i]};
    for (size_t k = 0; k < timeline.arguments.size(); ++k) {
      if (timeline.arguments.range[k] != static_cast<int32_t>(i)) continue;
      line << " " << timeline.strings[timeline.arguments.key[k]] << "=";
      const auto& value = timeline.arguments.value[k];
      if (value.index() == 0) line << std::get<0>(value);
      if (value.index() == 1) line << "real " << std::get<1>(value);
      if (value.index() == 2) line << "'" << timeline.strings[std::get<2>(value)] << "'";
    }
    for (const trace::DeviceOp& op : timeline.device_ops)
      if (op.range == static_cast<int32_t>(i))
        line << " launch " << op.launch << " correlation " << op.correlation << " bytes " << op.bytes << " copy "
             << int{op.copy_kind} << " grid " << op.grid[0] << "," << op.grid[1] << "," << op.grid[2] << " block "
             << op.block[0] << " registers " << op.registers << " shared " << op.dynamic_shared << " sync "
             << int{op.sync_type} << "/" << op.sync_stream << "/" << op.sync_correlation;
    lines.push_back(line.str());
  }
  return lines;
}

Timeline device_timeline() {
  test::TimelineMaker maker;
  maker.timeline.processes.push_back({100, maker.timeline.strings.intern("python")});
  const int32_t thread = maker.lane(101, "main");
  const int32_t stream = maker.lane(7, "stream 7", 100, trace::Lane::Kind::kStream, 0);
  const int32_t step = maker.range("step", thread, 0, 2'000'000, 5);
  maker.argument(step, "loss", 0.25);
  maker.argument(step, "whole", 3.0);
  maker.argument(step, "large", int64_t{9'007'199'254'740'993});
  maker.argument(step, "kind", std::string("of the program's own"));
  maker.range("aten::conv2d", thread, 1, 900'000, trace::kNoFrame, false, false, RangeKind::kOperator);
  maker.api_call("cudaLaunchKernel", thread, 1001, 2002, 17);
  maker.api_call("cudaMemcpyAsync", thread, 3003, 4004, 18);
  auto& kernel = maker.device_op(RangeKind::kKernel, "gemm", stream, 50'000, 60'000, 17);
  kernel.grid[0] = 4, kernel.grid[1] = 2, kernel.grid[2] = 1;
  kernel.block[0] = kernel.block[1] = kernel.block[2] = 8;
  kernel.registers = 32;
  kernel.dynamic_shared = 1024;
  auto& copy = maker.device_op(RangeKind::kCopy, "Memcpy HtoD (Pinned -> Device)", stream, 70'000, 80'000, 18);
  copy.bytes = 4096;
  copy.copy_kind = 1;
  copy.source_kind = 1;
  copy.target_kind = 2;
  auto& sync = maker.device_op(RangeKind::kSync, "wait", stream, 90'000, 91'000, 0);
  sync.sync_type = 2;
  sync.sync_stream = 3;
  sync.sync_correlation = 17;
  maker.range("request", thread, 10, 1'500'000, trace::kNoFrame, true);
  maker.range("request", thread, 20, 1'600'000, trace::kNoFrame, true);
  maker.range("never ended", thread, 1'900'000, 2'000'000, trace::kNoFrame, false, true);
  maker.mark("tick", thread, 1'234'567);
  maker.flow("item", thread, 1500, thread, 1'950'000);
  maker.counter("queue", 100, 5, 2.5);
  maker.counter("queue", 100, 6, 3);
  maker.timeline.facts["engine"] = "torch";
  maker.timeline.utc_start_ns = 1'700'000'000'123'456'789;
  maker.timeline.duration_ns = 2'000'000;
  return maker.finish();
}

TEST_F(Chrome, ComesBackThroughOurImporter) {
  const Timeline before = device_timeline();
  for (const char* name : {"out.json", "out.json.gz"}) {
    const Timeline after = returned(before, name);
    // The one thing that moves: a frame becomes an argument, since such traces have no word for it.
    std::vector<std::string> expected = ranges_of(before), got = ranges_of(after);
    const auto drop_frame = [](std::string line) {
      const size_t at = line.find(" frame=5");
      return at == std::string::npos ? line : line.erase(at, 8);
    };
    size_t with_frame = 0;
    for (std::string& line : got) {
      const std::string without = drop_frame(line);
      with_frame += without != line;
      line = without;
    }
    EXPECT_EQ(got, expected) << name;
    EXPECT_EQ(with_frame, static_cast<size_t>(std::count(before.ranges.frame.begin(), before.ranges.frame.end(), 5)));
    EXPECT_EQ(after.marks.time_ns, before.marks.time_ns);
    EXPECT_EQ(after.flows.from_ns, before.flows.from_ns);
    EXPECT_EQ(after.flows.to_ns, before.flows.to_ns);
    EXPECT_EQ(after.flows.from_range, before.flows.from_range);
    EXPECT_EQ(after.flows.to_range, before.flows.to_range);
    EXPECT_EQ(after.counters.value, before.counters.value);
    EXPECT_EQ(after.counters.time_ns, before.counters.time_ns);
    EXPECT_EQ(after.utc_start_ns, before.utc_start_ns);
    EXPECT_EQ(after.strings[after.processes[0].name], "python");
    EXPECT_EQ(after.facts.at("trace.engine"), "torch");
    EXPECT_TRUE(after.losses.faults.empty());
  }
}

TEST_F(Chrome, TextStaysText) {
  test::TimelineMaker maker;
  const int32_t lane = maker.lane(1, test::kHostileName);
  const int32_t range = maker.range(test::kHostileName, lane, 0, 10);
  maker.argument(range, test::kHostileName, test::kHostileName);
  maker.argument(range, "not a number", std::nan(""));
  maker.mark(test::kHostileName, lane, 3);
  maker.timeline.facts[test::kHostileName] = test::kHostileName;
  const nlohmann::json json = exported(maker.finish());
  size_t found = 0;
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    ++found;
    EXPECT_EQ(event.at("name"), test::kHostileNameClean);
    EXPECT_EQ(event.at("args").at(test::kHostileNameClean), test::kHostileNameClean);
    EXPECT_EQ(event.at("args").at("not a number"), "nan");
  }
  EXPECT_EQ(found, 1U);
  EXPECT_EQ(json.at(test::kHostileNameClean), test::kHostileNameClean);
}

TEST_F(Chrome, KeysOfAnEventDiffer) {
  test::TimelineMaker maker;
  const int32_t range = maker.range("r", maker.lane(1), 0, 10, 3);
  for (int64_t i = 0; i < 3; ++i) maker.argument(range, "frame", i);
  const nlohmann::json json = exported(maker.finish());
  for (const auto& event : json.at("traceEvents")) {
    if (event.at("ph") == "X") {
      EXPECT_EQ(event.at("args").dump(), R"({"frame":3,"frame #2":0,"frame #3":1,"frame #4":2})");
    }
  }
}

TEST_F(Chrome, AnyTimelineIsJsonThatImports) {
  for (uint32_t seed = 0; seed < 20; ++seed) {
    const Timeline timeline = test::random_timeline(seed, 200);
    const nlohmann::json json = exported(timeline);
    std::map<std::string, size_t> phases;
    for (const auto& event : json.at("traceEvents")) ++phases[event.at("ph")];
    EXPECT_EQ(phases["X"] + phases["B"] + phases["b"], timeline.ranges.size());
    EXPECT_EQ(phases["i"], timeline.marks.size());
    EXPECT_EQ(phases["C"], timeline.counters.size());
    EXPECT_EQ(returned(timeline).ranges.size(), timeline.ranges.size());
  }
}

TEST_F(Chrome, OneDeviceOfTwoProcessesIsTwoPlaces) {
  test::TimelineMaker maker;
  for (const int32_t pid : {100, 200})
    maker.range("k", maker.lane(7, "", pid, trace::Lane::Kind::kStream, 0), 0, 10, trace::kNoFrame, false, false,
                RangeKind::kKernel);
  const nlohmann::json json = exported(maker.finish());
  std::set<int64_t> pids;
  for (const auto& event : json.at("traceEvents"))
    if (event.at("ph") == "X") pids.insert(event.at("pid").get<int64_t>());
  EXPECT_EQ(pids.size(), 2U);
}

}  // namespace
}  // namespace strobe
