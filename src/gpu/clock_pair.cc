#include "gpu/clock_pair.h"

#include <ctime>

#include "record/clock.h"

namespace strobe::gpu {
namespace {

int64_t realtime_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace

std::optional<ClockPair> read_clock_pair(cupti::Code (*timestamp)(uint64_t*)) {
  std::optional<ClockPair> best;
  for (int attempt = 0; attempt < 10; ++attempt) {
    uint64_t cupti_now = 0;
    const int64_t wall_before = realtime_ns();
    const int64_t before = record::monotonic_ns();
    const auto code = timestamp(&cupti_now);
    const int64_t after = record::monotonic_ns();
    const int64_t wall_after = realtime_ns();
    if (code != cupti::kSuccess) return std::nullopt;
    if (best && after - before >= best->width_ns) continue;
    best = ClockPair{
        {cupti_now}, before + (after - before) / 2, wall_before + (wall_after - wall_before) / 2, after - before};
  }
  return best;
}

}  // namespace strobe::gpu
