#include "bench/environment.h"

#include <cstdlib>

namespace strobe::bench {
namespace {

std::string value_of(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::string() : value;
}

}  // namespace

bool wanted_by_environment() {
  return !value_of("BENCHMARK_PY").empty();
}

Result<Warmup> warmup_of_environment() {
  static constexpr const char* kName = "STROBE_BENCH_WARMUP";
  const std::string text = value_of(kName);
  if (text.empty()) return Warmup{};
  auto warmup = parse_warmup(text);
  if (!warmup) return std::move(warmup.error().at(kName));
  return warmup;
}

Result<Rules> rules_of_environment() {
  static constexpr const char* kName = "STROBE_BENCH_RULES";
  const std::string text = value_of(kName);
  if (text.empty()) return Rules::kStrobe;
  auto rules = parse_rules(text);
  if (!rules) return std::move(rules.error().at(kName));
  return rules;
}

std::string arrivals_of_environment() {
  return value_of("STROBE_BENCH_ARRIVALS");
}

}  // namespace strobe::bench
