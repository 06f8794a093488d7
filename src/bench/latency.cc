#include "bench/latency.h"

#include <algorithm>
#include <vector>

#include "base/statistics.h"
#include "bench/figures.h"

namespace strobe::bench {
namespace {

constexpr double kNsPerMs = 1e6, kNsPerS = 1e9;

std::vector<double> sorted_ms(std::span<const Request> requests, int64_t Request::*from, int64_t Request::*to) {
  std::vector<double> out;
  for (const auto& request : requests) out.push_back(static_cast<double>(request.*to - request.*from) / kNsPerMs);
  std::sort(out.begin(), out.end());
  return out;
}

Json rate(size_t gaps, int64_t ns) {
  return gaps == 0 || ns <= 0 ? Json() : Json(round_ms(static_cast<double>(gaps) * kNsPerS / static_cast<double>(ns)));
}

}  // namespace

Json latency_figures(std::span<const Request> requests, const std::string& arrivals) {
  if (requests.empty()) return {};
  int64_t first = requests[0].intended_ns, last = first, done = requests[0].done_ns;
  for (const auto& request : requests) {
    first = std::min(first, request.intended_ns);
    last = std::max(last, request.intended_ns);
    done = std::max(done, request.done_ns);
  }
  const auto whole = sorted_ms(requests, &Request::intended_ns, &Request::done_ns);
  const auto wait = sorted_ms(requests, &Request::intended_ns, &Request::started_ns);
  const auto service = sorted_ms(requests, &Request::started_ns, &Request::done_ns);
  const auto at = [](const std::vector<double>& values, double q) { return round_ms(quantile_sorted(values, q)); };
  return {{"arrivals", arrivals.empty() ? Json() : Json(arrivals)},
          {"requests", requests.size()},
          {"offered_per_s", rate(requests.size() - 1, last - first)},
          {"completed_per_s", rate(requests.size(), done - first)},
          {"mean", round_ms(mean(whole))},
          {"p50", at(whole, 0.5)},
          {"p90", at(whole, 0.9)},
          {"p99", at(whole, 0.99)},
          {"max", at(whole, 1)},
          {"wait_mean", round_ms(mean(wait))},
          {"wait_p99", at(wait, 0.99)},
          {"service_mean", round_ms(mean(service))},
          {"service_p99", at(service, 0.99)}};
}

}  // namespace strobe::bench
