#include "gpu/clock_align.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace strobe::gpu {
namespace {

// NTP slews by at most 500 ppm; readings themselves are off by the width of their brackets.
constexpr double kMostSlew = 600e-6;
constexpr int64_t kSlack_ns = 20'000;
constexpr int64_t kFarthest = int64_t{1} << 61;

int64_t clamped(int64_t value) {
  return std::clamp(value, -kFarthest, kFarthest);
}

}  // namespace

ClockAlignment::ClockAlignment(std::vector<ClockPair> pairs) {
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const ClockPair& a, const ClockPair& b) { return a.monotonic_ns < b.monotonic_ns; });
  // A reading that was interrupted is worth less than its neighbours, as long as there are some.
  std::vector<int64_t> widths;
  for (const ClockPair& pair : pairs) widths.push_back(pair.width_ns);
  int64_t widest = INT64_MAX;
  if (!widths.empty()) {
    std::nth_element(widths.begin(), widths.begin() + static_cast<std::ptrdiff_t>(widths.size() / 2), widths.end());
    const int64_t median = widths[widths.size() / 2];
    widest = median > kFarthest / 8 ? INT64_MAX : std::max<int64_t>(8 * median, 2'000);
  }
  for (const ClockPair& pair : pairs) {
    if (pair.width_ns > widest) continue;
    const int64_t cupti = static_cast<int64_t>(std::min<uint64_t>(pair.cupti.ns, kFarthest));
    const int64_t monotonic = clamped(pair.monotonic_ns);
    if (!pairs_.empty() && pairs_.back().monotonic_ns == monotonic) continue;
    if (!pairs_.empty()) {
      Point& before = pairs_.back();
      const int64_t passed = monotonic - before.monotonic_ns;
      const int64_t off = std::abs(cupti - before.cupti_ns - passed);
      before.steps_to_next = static_cast<double>(off) > kMostSlew * static_cast<double>(passed) + kSlack_ns;
      steps_ += before.steps_to_next ? 1 : 0;
    }
    pairs_.push_back({cupti, monotonic, false});
    uncertainty_ns_ = std::max(uncertainty_ns_, std::clamp<int64_t>(pair.width_ns / 2, 0, kFarthest));
  }
}

int64_t ClockAlignment::to_monotonic_ns(uint64_t cupti_ns) const {
  const auto time = static_cast<int64_t>(std::min<uint64_t>(cupti_ns, kFarthest));
  if (pairs_.empty()) return time;
  const auto by = [time](const Point& point) { return clamped(time - point.cupti_ns + point.monotonic_ns); };
  // After a step back several places fit; the last pair that is not later than the time is as good as any.
  const auto later =
      std::find_if(pairs_.rbegin(), pairs_.rend(), [time](const Point& p) { return p.cupti_ns <= time; });
  if (later == pairs_.rend()) return by(pairs_.front());
  const Point& a = *later;
  if (later == pairs_.rbegin()) return by(a);
  const Point& b = *(later - 1);
  if (a.steps_to_next || b.cupti_ns <= a.cupti_ns) return std::min(by(a), b.monotonic_ns);
  const double share = static_cast<double>(time - a.cupti_ns) / static_cast<double>(b.cupti_ns - a.cupti_ns);
  return a.monotonic_ns + std::llround(share * static_cast<double>(b.monotonic_ns - a.monotonic_ns));
}

}  // namespace strobe::gpu
