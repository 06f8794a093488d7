#include "tenants/usage_samples.h"

#include <fmt/format.h>
#include <unistd.h>

#include "collect/cpu_time.h"
#include "collect/machine.h"
#include "tenants/board.h"

namespace strobe::tenants {
namespace {

constexpr int64_t kPeriod_ns = 100'000'000;

}  // namespace

UsageSamples::UsageSamples(const std::vector<std::pair<std::string, int32_t>>& processes) {
  for (const auto& [name, pid] : processes) {
    const std::string suffix = name.empty() ? "" : ":" + name;
    processes_.push_back({record::Name("cpu_percent" + suffix), record::Name("rss_bytes" + suffix),
                          collect::ProcFile(fmt::format("/proc/{}/stat", pid)), -1});
  }
}

void UsageSamples::sample() {
  const int64_t now = monotonic_ns();
  if (now - last_ns_ < kPeriod_ns) return;
  const auto elapsed = static_cast<double>(now - last_ns_);
  static const auto tick_ns = 1e9 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  static const auto page_bytes = static_cast<int64_t>(::sysconf(_SC_PAGESIZE));
  for (Process& process : processes_) {
    collect::ProcessStat stat;
    const char* text = process.stat.read();
    if (text == nullptr || !collect::parse_stat(text, stat)) continue;
    if (process.ticks >= 0)
      record::counter(process.cpu, 100 * static_cast<double>(stat.cpu_ticks - process.ticks) * tick_ns / elapsed);
    record::counter(process.memory, stat.rss_pages * page_bytes);
    process.ticks = stat.cpu_ticks;
  }
  if (const auto use = collect::cpu_use()) {
    static const record::Name machine("machine_cpu_percent");
    if (machine_busy_ns_ >= 0)
      record::counter(machine, 100 * static_cast<double>(use->busy_ns - machine_busy_ns_) / elapsed /
                                   std::max(1.0, collect::allowed_cores()));
    machine_busy_ns_ = use->busy_ns;
  }
  last_ns_ = now;
}

}  // namespace strobe::tenants
