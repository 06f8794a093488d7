#include "tenants/board.h"

#include <algorithm>
#include <cerrno>
#include <ctime>

namespace strobe::tenants {
namespace {

constexpr int64_t kLook_ns = 20'000'000;

timespec as_timespec(int64_t ns) {
  return {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
}

}  // namespace

Result<Board> Board::create() {
  STROBE_ASSIGN(SharedPages pages, SharedPages::map(sizeof(Content)));
  new (pages.data()) Content;
  return Board(std::move(pages));
}

int64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

bool sleep_until(int64_t time_ns, const std::atomic<bool>& stop) {
  for (;;) {
    const int64_t now = monotonic_ns();
    if (now >= time_ns) return true;
    if (stop.load(std::memory_order_relaxed)) return false;
    const timespec until = as_timespec(std::min(time_ns, now + kLook_ns));
    ::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
  }
}

}  // namespace strobe::tenants
