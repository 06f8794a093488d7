#include "measure/interference.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <vector>

#include "collect/proc_reader.h"

namespace strobe::measure {

namespace {

int64_t waited_ns() {
  std::vector<int32_t> threads;
  collect::numbers_in("/proc/self/task", threads);
  int64_t sum = 0;
  for (const int32_t thread : threads) {
    collect::ProcFile file("/proc/self/task/" + std::to_string(thread) + "/schedstat");
    collect::SchedStat stat;
    if (const char* text = file.read(); text != nullptr && collect::parse_schedstat(text, stat)) sum += stat.wait_ns;
  }
  return sum;
}

}  // namespace

UseCounters count_use() {
  UseCounters now;
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  now.time_ns = int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  now.cpus = collect::cpu_use();
  now.own_cpu_ns = collect::process_cpu_ns();
  now.wait_ns = waited_ns();
  rusage use{};
  ::getrusage(RUSAGE_SELF, &use);
  now.involuntary_switches = use.ru_nivcsw;
  return now;
}

Interference interference_between(const UseCounters& begin, const UseCounters& end, int cpus, int threads) {
  constexpr int64_t kTwoTicks_ns = 20'000'000;
  Interference found;
  found.involuntary_switches = std::max<int64_t>(0, end.involuntary_switches - begin.involuntary_switches);
  const auto time = static_cast<double>(end.time_ns - begin.time_ns);
  if (time <= 0) return found;
  const double all_cpus = time * std::max(1, cpus);
  found.wait_share =
      static_cast<double>(std::max<int64_t>(0, end.wait_ns - begin.wait_ns)) / (time * std::max(1, threads));
  if (!begin.cpus || !end.cpus) return found;
  const int64_t noise = kTwoTicks_ns * std::max(1, cpus);
  const auto beyond = [&](int64_t ns) { return ns > noise ? static_cast<double>(ns) / all_cpus : 0; };
  found.others_share = beyond((end.cpus->busy_ns - begin.cpus->busy_ns) - (end.own_cpu_ns - begin.own_cpu_ns));
  found.stolen_share = beyond(end.cpus->stolen_ns - begin.cpus->stolen_ns);
  return found;
}

double Interference::degree() const {
  // What is not told is below 0.
  return std::max({others_share / kMostOthers, stolen_share / kMostStolen, wait_share / kMostWait,
                   gpu.others_share / kMostGpuOthers, gpu.throttled_share / kMostThrottled,
                   gpu.clock_spread / kMostClockSpread});
}

}  // namespace strobe::measure
