#include "strobe/bench/arrivals.h"

#include <time.h>

#include <cerrno>
#include <charconv>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "base/file.h"

namespace strobe::bench {
namespace {

constexpr double kNsPerS = 1e9;

int64_t steady_ns() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// Until a time of the steady clock (CLOCK_MONOTONIC on Linux); a signal does not end the wait.
void sleep_until(int64_t time_ns) {
  const timespec until{static_cast<time_t>(time_ns / 1'000'000'000), static_cast<long>(time_ns % 1'000'000'000)};
  while (::clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
  }
}

// splitmix64 (Steele, Lea & Flood 2014): the same numbers with every compiler and C++ library.
uint64_t next_random(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

std::optional<double> number(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '"')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '"' || text.back() == '\r')) text.remove_suffix(1);
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || failed != std::errc{} || end != text.data() + text.size() || !std::isfinite(value))
    return std::nullopt;
  return value;
}

Result<std::vector<double>> read_times(const std::string& path) {
  STROBE_ASSIGN(const std::string text, read_file(path));
  std::vector<double> seconds;
  size_t line_number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    at = end + 1;
    ++line_number;
    if (line.find_first_not_of(" \r") == std::string_view::npos) continue;
    const auto value = number(line.substr(0, line.find(',')));
    if (!value && line_number == 1) continue;
    const std::string place = path + ": line " + std::to_string(line_number) + ": ";
    if (!value || *value < 0) return bad_data(place + "expected a time in seconds, 0 or more");
    if (!seconds.empty() && *value < seconds.back()) return bad_data(place + "is earlier than the one before it");
    seconds.push_back(*value);
  }
  if (seconds.empty()) return bad_data(path + ": holds no arrival times");
  return seconds;
}

}  // namespace

Result<Arrivals> Arrivals::parse(std::string_view spec) {
  const size_t colon = spec.find(':');
  const std::string_view kind = spec.substr(0, colon);
  const std::string_view rest = colon == std::string_view::npos ? std::string_view{} : spec.substr(colon + 1);
  const std::string wrong = "arrivals '" + std::string(spec) + "': ";
  if (kind == "trace" && !rest.empty()) {
    STROBE_ASSIGN(auto seconds, read_times(std::string(rest)));
    Arrivals made = times(std::move(seconds));
    made.spec_ = spec;
    return made;
  }
  if (kind != "constant" && kind != "poisson")
    return usage_error(wrong + "expected constant:RATE, poisson:RATE[:SEED] or trace:FILE");
  const size_t second = rest.find(':');
  const auto rate = number(rest.substr(0, second));
  if (!rate || *rate <= 0) return usage_error(wrong + "expected a rate above 0 (arrivals a second)");
  uint64_t seed = 1;
  if (second != std::string_view::npos) {
    const std::string_view text = rest.substr(second + 1);
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), seed);
    if (kind != "poisson" || failed != std::errc{} || end != text.data() + text.size())
      return usage_error(wrong + "expected poisson:RATE:SEED, the seed a whole number");
  }
  Arrivals made = kind == "poisson" ? poisson(*rate, seed) : constant(*rate);
  made.spec_ = spec;
  return made;
}

Result<std::optional<Arrivals>> Arrivals::from_environment() {
  const char* spec = std::getenv("STROBE_BENCH_ARRIVALS");
  if (spec == nullptr || *spec == '\0') return std::optional<Arrivals>{};
  STROBE_ASSIGN(auto made, parse(spec));
  return std::optional<Arrivals>(std::move(made));
}

Arrivals Arrivals::constant(double rate_per_s) {
  Arrivals made;
  made.rate_ = rate_per_s;
  made.spec_ = "constant:" + std::to_string(rate_per_s);
  return made;
}

Arrivals Arrivals::poisson(double rate_per_s, uint64_t seed) {
  Arrivals made;
  made.rate_ = rate_per_s;
  made.poisson_ = true;
  made.random_ = seed;
  made.spec_ = "poisson:" + std::to_string(rate_per_s) + ":" + std::to_string(seed);
  return made;
}

Arrivals Arrivals::times(std::vector<double> seconds) {
  Arrivals made;
  made.trace_ = true;
  made.seconds_ = std::move(seconds);
  made.spec_ = "times:" + std::to_string(made.seconds_.size());
  return made;
}

std::optional<double> Arrivals::time_of(int64_t index) {
  if (index < 0) return std::nullopt;
  const auto at = static_cast<size_t>(index);
  if (trace_) return at < seconds_.size() ? std::optional(seconds_[at]) : std::nullopt;
  if (!poisson_) return static_cast<double>(index) / rate_;
  while (seconds_.size() <= at) {
    // In (0, 1]: 53 bits, and never the logarithm of 0.
    constexpr double kUnit = 1.0 / (uint64_t{1} << 53);
    const double uniform = (static_cast<double>(next_random(random_) >> 11) + 1) * kUnit;
    seconds_.push_back((seconds_.empty() ? 0 : seconds_.back()) - std::log(uniform) / rate_);
  }
  return seconds_[at];
}

std::optional<Arrival> Arrivals::next() {
  if (next_ == 0) start_ns_ = steady_ns();
  const auto seconds = time_of(next_);
  if (!seconds) return std::nullopt;
  Arrival arrival{.index = next_++, .intended_ns = start_ns_ + static_cast<int64_t>(*seconds * kNsPerS)};
  if (steady_ns() < arrival.intended_ns) sleep_until(arrival.intended_ns);
  arrival.started_ns = steady_ns();
  return arrival;
}

}  // namespace strobe::bench
