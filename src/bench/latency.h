// Latency under an open-loop load, as figures.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

namespace strobe::bench {

struct Request {
  int64_t index = 0;
  int64_t intended_ns = 0, started_ns = 0, done_ns = 0;
};

// {"arrivals", "requests", "offered_per_s", "completed_per_s", "mean", "p50", "p90", "p99", "max" (from the intended
// arrival), "wait_mean", "wait_p99" (until it was started), "service_mean", "service_p99" (from then on)}; times in
// milliseconds. Null for no requests. offered_per_s: null for fewer than two.
nlohmann::ordered_json latency_figures(std::span<const Request> requests, const std::string& arrivals);

}  // namespace strobe::bench
