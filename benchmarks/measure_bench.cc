// Links: strobe_measure
// What measuring costs: a step in a bare loop, and the same one under measure::time_steps with its clock reads,
// interval and counters of interference. The counter `overhead_percent` is the ratio of the two within one run.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "measure/timing.h"

namespace {

using namespace strobe;
using Clock = std::chrono::steady_clock;

// About as long as asked for, the same each time.
class Work {
 public:
  explicit Work(double us) {
    const auto begin = Clock::now();
    constexpr size_t kRounds = 2'000'000;
    run(kRounds);
    const double took_us = std::chrono::duration<double, std::micro>(Clock::now() - begin).count();
    rounds_ = std::max<size_t>(1, static_cast<size_t>(kRounds * us / took_us));
  }
  void step() { run(rounds_); }

 private:
  void run(size_t rounds) {
    for (size_t i = 0; i < rounds; ++i) state_ = state_ * 6364136223846793005U + 1442695040888963407U;
    benchmark::DoNotOptimize(state_);
  }
  uint64_t state_ = 1;
  size_t rounds_ = 1;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

double cpu_seconds() {
  timespec time{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Steps of that many microseconds, 0.2 s of them: the shortest measurement of `strobe model profile`. In CPU time, so
// that other programs count on neither side.
void overhead(benchmark::State& state) {
  const auto us = static_cast<int>(state.range(0));
  Work work(us);
  const int steps = 200'000 / us;
  measure::TimingOptions options;
  options.repetitions = options.most_repetitions = steps;
  options.attempts = 1;
  options.warmup_s = 0;
  std::vector<double> ratios;
  for (auto _ : state) {
    const double begin = cpu_seconds();
    for (int i = 0; i < steps + 1; ++i) work.step();  // and the one of the warm-up
    const double between = cpu_seconds();
    benchmark::DoNotOptimize(measure::time_steps(
        [&]() -> Result<void> {
          work.step();
          return {};
        },
        options));
    ratios.push_back((cpu_seconds() - between) / (between - begin));
  }
  state.counters["overhead_percent"] = (median(ratios) - 1) * 100;
}
BENCHMARK(overhead)->Arg(100)->Arg(1000)->Arg(10000)->Unit(benchmark::kMillisecond)->Iterations(15);

}  // namespace

BENCHMARK_MAIN();
