// What the benchmarks of the recorder and of its peers share: nanoseconds of the counter, and percentiles of one range.
#pragma once

#include <benchmark/benchmark.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include <algorithm>
#include <cstdint>
#include <vector>

namespace strobe::bench {

inline constexpr int kBurst =
    200'000;  // ranges a thread: fits the buffers of every recorder, so that nothing is dropped

inline int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1'000'000'000LL + now.tv_nsec;
}

inline uint64_t ticks() {
#if defined(__x86_64__)
  return __rdtsc();
#else
  return static_cast<uint64_t>(now_ns());
#endif
}

inline double ns_per_tick() {
  static const double value = [] {
    const int64_t start_ns = now_ns();
    const uint64_t start = ticks();
    while (now_ns() - start_ns < 20'000'000) {
    }
    const uint64_t passed = ticks() - start;
    return static_cast<double>(now_ns() - start_ns) / static_cast<double>(passed);
  }();
  return value;
}

// Runs `one` as the benchmark's body. With range(0) set each is timed by itself instead (two readings of the counter
// included), and the counters p50_ns, p99_ns, p999_ns say how long one took.
template <typename One>
void measure(benchmark::State& state, One one) {
  if (state.range(0) == 0) {
    for (auto _ : state) one();
    return;
  }
  std::vector<uint32_t> took(static_cast<size_t>(kBurst));
  for (uint32_t& each : took) each = 1;  // pages are touched before the clock runs
  size_t count = 0;
  for (auto _ : state) {
    const uint64_t start = ticks();
    one();
    took[count++ % took.size()] = static_cast<uint32_t>(std::min<uint64_t>(ticks() - start, UINT32_MAX));
  }
  took.resize(std::min(count, took.size()));
  std::sort(took.begin(), took.end());
  const auto at = [&took](double share) {
    return took[static_cast<size_t>(share * static_cast<double>(took.size() - 1))] * ns_per_tick();
  };
  using benchmark::Counter;
  state.counters["p50_ns"] = Counter(at(0.5), Counter::kAvgThreads);
  state.counters["p99_ns"] = Counter(at(0.99), Counter::kAvgThreads);
  state.counters["p999_ns"] = Counter(at(0.999), Counter::kAvgThreads);
}

// Threads and both ways of measuring.
inline benchmark::internal::Benchmark* cases(benchmark::internal::Benchmark* made) {
  return made->ArgName("each")->Arg(0)->Arg(1)->Iterations(kBurst)->Threads(1)->Threads(2)->Threads(8);
}

// A peer that is not here is a benchmark that says why.
inline void register_skipped(const char* name, const char* reason) {
  benchmark::RegisterBenchmark(name, [reason](benchmark::State& state) { state.SkipWithError(reason); });
}

// Of one file each, or of recorders_absent.cc.
void register_nvtx();
void register_lttng();
void register_torch();

}  // namespace strobe::bench
