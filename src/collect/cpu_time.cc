#include "collect/cpu_time.h"

#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>

#include "collect/cgroup.h"
#include "collect/proc_text.h"

namespace strobe::collect {

int64_t process_cpu_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// "cpu3 user nice system idle iowait irq softirq steal guest guest_nice", in ticks; guest time is part of user time.
std::optional<CpuUse> cpu_use_of_tree(const std::filesystem::path& root, const std::vector<int>& cpus) {
  const auto text = read_text(root / "proc/stat");
  if (!text) return std::nullopt;
  const int64_t tick_ns = 1'000'000'000 / std::max(1L, ::sysconf(_SC_CLK_TCK));
  CpuUse use;
  size_t found = 0;
  for (const std::string_view line : lines_of(*text)) {
    const auto words = words_of(line);
    if (words.size() < 9 || !words[0].starts_with("cpu") || words[0].size() == 3) continue;
    const auto cpu = number_of(words[0].substr(3));
    if (!cpu || std::find(cpus.begin(), cpus.end(), *cpu) == cpus.end()) continue;
    ++found;
    for (const size_t field : {1UL, 2UL, 3UL, 6UL, 7UL}) use.busy_ns += number_of(words[field]).value_or(0) * tick_ns;
    use.stolen_ns += number_of(words[8]).value_or(0) * tick_ns;
  }
  if (found == 0) return std::nullopt;
  return use;
}

std::optional<CpuUse> cpu_use() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return std::nullopt;
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  if (const auto quota = cgroup_cpu_quota("/"); quota && *quota < static_cast<double>(cpus.size())) return std::nullopt;
  return cpu_use_of_tree("/", cpus);
}

}  // namespace strobe::collect
