// Links: strobe_record
// What one range costs, beside two bare readings of the counter. Use ratios within one run; see docs/recorder.md.
// A run is a burst that fits the rings, so that no range is cheap because it was dropped: `dropped` must be 0.
#include <benchmark/benchmark.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <array>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>

#include "strobe/record/annotate.h"

namespace {

using strobe::record::Name;
using strobe::record::Range;

std::filesystem::path scratch_folder() {
  return std::filesystem::temp_directory_path() / ("strobe-record-bench-" + std::to_string(::getpid()));
}

// Records while it lives; the first thread of a benchmark holds it.
class Recording {
 public:
  Recording() {
    strobe::record::Options options;
    options.folder = scratch_folder();
    options.ring_bytes = 16 << 20;
    const auto started = strobe::record::start(options);
    if (!started) std::fprintf(stderr, "%s\n", started.error().to_string().c_str());
  }
  ~Recording() {
    const auto totals = strobe::record::stop();
    if (!totals) std::fprintf(stderr, "%s\n", totals.error().to_string().c_str());
    if (totals && totals->dropped > 0)
      std::fprintf(stderr, "invalid run: %llu records dropped\n", static_cast<unsigned long long>(totals->dropped));
    std::error_code ignored;
    std::filesystem::remove_all(scratch_folder(), ignored);
  }
};
std::unique_ptr<Recording> current;

void set_up(const benchmark::State& /*state*/) {
  current = std::make_unique<Recording>();
}
void tear_down(const benchmark::State& /*state*/) {
  current.reset();
}

// Gives the thread its ring before the clock runs.
void join() {
  strobe::record::mark(Name("join"));
}

void two_rdtsc(benchmark::State& state) {
#if defined(__x86_64__)
  for (auto _ : state) {
    benchmark::DoNotOptimize(__rdtsc());
    benchmark::ClobberMemory();
    benchmark::DoNotOptimize(__rdtsc());
  }
#else
  state.SkipWithError("no time-stamp counter");
#endif
}

// A range with a frame id and one integer argument.
void range_with_int(benchmark::State& state) {
  static const Name name("bench");
  static const Name key("batch");
  int64_t frame = 0;
  join();
  for (auto _ : state) {
    Range range(name, frame);
    range.arg(key, frame++);
  }
}

// The frame id is the only payload.
void range_with_frame(benchmark::State& state) {
  static const Name name("bench");
  int64_t frame = 0;
  join();
  for (auto _ : state) {
    const Range range(name, frame++);
  }
}

void range_dynamic_name(benchmark::State& state) {
  std::array<std::string, 16> names;
  for (size_t i = 0; i < names.size(); ++i) names[i] = "backbone.layer" + std::to_string(i) + ".conv2d";
  size_t i = 0;
  join();
  for (auto _ : state) {
    const Range range(std::string_view{names[i++ % names.size()]}, 1);
  }
}

void range_disabled(benchmark::State& state) {
  static const Name name("bench");
  int64_t frame = 0;
  for (auto _ : state) {
    const Range range(name, frame++);
  }
}

}  // namespace

constexpr int kBurst = 200'000;
BENCHMARK(two_rdtsc)->Iterations(kBurst)->Threads(1)->Threads(2);
BENCHMARK(range_with_int)->Setup(set_up)->Teardown(tear_down)->Iterations(kBurst)->Threads(1)->Threads(2);
BENCHMARK(range_with_frame)->Setup(set_up)->Teardown(tear_down)->Iterations(kBurst)->Threads(1)->Threads(2);
BENCHMARK(range_dynamic_name)->Setup(set_up)->Teardown(tear_down)->Iterations(kBurst)->Threads(1)->Threads(2);
BENCHMARK(range_disabled)->Iterations(kBurst)->Threads(1)->Threads(2);
BENCHMARK_MAIN();
