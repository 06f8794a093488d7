// Links: strobe_trace
// The trace file: writing and reading a run of ten million nested ranges on two threads, of two hundred names.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "trace/store.h"

namespace {

using namespace strobe;

// Frames of one range around layers of few microseconds, as a pipeline with per-layer times gives them.
trace::Timeline make_timeline(size_t count) {
  trace::Timeline timeline;
  trace::Ranges& ranges = timeline.ranges;
  std::vector<trace::StringId> names;
  for (int i = 0; i < 200; ++i) names.push_back(timeline.strings.intern("layer_" + std::to_string(i)));
  for (int32_t i = 0; i < 2; ++i)
    timeline.lanes.push_back(
        {trace::Lane::Kind::kThread, 4711, 4711 + i, timeline.strings.intern("worker " + std::to_string(i))});
  std::mt19937 random(1);
  int64_t clock[2] = {0, 500}, frame_end[2] = {0, 0}, frame[2] = {0, 1};
  for (size_t i = 0; i < count; ++i) {
    const int32_t lane = clock[0] <= clock[1] ? 0 : 1;
    const bool begins_frame = clock[lane] >= frame_end[lane];
    const int64_t length = begins_frame ? 2'000'000 : 1000 + static_cast<int64_t>(random() % 20'000);
    const int64_t start = clock[lane];
    if (begins_frame) {
      frame_end[lane] = start + length;
      frame[lane] += 2;
    }
    const int64_t end = begins_frame ? start + length : std::min(start + length, frame_end[lane]);
    ranges.start_ns.push_back(start);
    ranges.end_ns.push_back(end);
    ranges.name.push_back(names[random() % names.size()]);
    ranges.lane.push_back(lane);
    ranges.frame.push_back(frame[lane]);
    ranges.is_async.push_back(0);
    ranges.open.push_back(0);
    clock[lane] = begins_frame ? start + 100 : end + 50;
  }
  timeline.duration_ns = std::max(frame_end[0], frame_end[1]);
  timeline.finish();
  return timeline;
}

class Store : public benchmark::Fixture {
 public:
  void SetUp(const benchmark::State& state) override {
    const char* folder = std::getenv("TMPDIR");
    path_ = std::filesystem::path(folder ? folder : "/tmp") / ("strobe-store-bench-" + std::to_string(::getpid()));
    timeline_ = make_timeline(static_cast<size_t>(state.range(0)));
  }
  void TearDown(const benchmark::State&) override { std::filesystem::remove(path_); }

 protected:
  std::filesystem::path path_;
  trace::Timeline timeline_;
};

BENCHMARK_DEFINE_F(Store, Write)(benchmark::State& state) {
  for (auto _ : state)
    if (!trace::write_store(timeline_, path_)) state.SkipWithError("cannot write");
  state.SetItemsProcessed(state.iterations() * state.range(0));
  state.counters["bytes_per_range"] =
      static_cast<double>(std::filesystem::file_size(path_)) / static_cast<double>(state.range(0));
}
BENCHMARK_REGISTER_F(Store, Write)->Arg(10'000'000)->Unit(benchmark::kSecond)->UseRealTime()->MeasureProcessCPUTime();

BENCHMARK_DEFINE_F(Store, Read)(benchmark::State& state) {
  if (!trace::write_store(timeline_, path_)) state.SkipWithError("cannot write");
  for (auto _ : state) {
    auto timeline = trace::read_store(path_);
    if (!timeline) state.SkipWithError("cannot read");
    benchmark::DoNotOptimize(timeline);
  }
  state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK_REGISTER_F(Store, Read)->Arg(10'000'000)->Unit(benchmark::kSecond)->UseRealTime()->MeasureProcessCPUTime();

}  // namespace

BENCHMARK_MAIN();
