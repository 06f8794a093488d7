// Open-loop load: requests arrive when the schedule says, whether or not the program keeps up. Latency counts from the
// intended arrival, so that a stall also shows in the requests that had to wait behind it ("coordinated omission" of
// closed loops: G. Tene, How NOT to Measure Latency, 2013; open against closed: Schroeder, Wierman & Harchol-Balter,
// NSDI 2006).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::bench {

struct Arrival {
  int64_t index = 0;
  int64_t intended_ns = 0;  // steady clock
  int64_t started_ns = 0;   // when next() returned: later than intended where the program was behind
};

// Used by one thread, or by several under a lock of theirs.
class Arrivals {
 public:
  // "constant:RATE", "poisson:RATE" or "poisson:RATE:SEED" (arrivals a second), or "trace:FILE" (CSV; the first column
  // of each row is a time in seconds, ascending; a first row of words is a header). Errors: kUsage, kNotFound,
  // kBadData.
  static Result<Arrivals> parse(std::string_view spec);
  // What STROBE_BENCH_ARRIVALS says (`strobe bench --arrivals`); nothing where it is not set. Errors: as parse().
  static Result<std::optional<Arrivals>> from_environment();

  static Arrivals constant(double rate_per_s);
  static Arrivals poisson(double rate_per_s, uint64_t seed = 1);
  // Times in seconds from the start, ascending.
  static Arrivals times(std::vector<double> seconds);

  const std::string& spec() const { return spec_; }
  // The time of arrival i in seconds after the start (constant: i / rate; Poisson: the first comes after one gap);
  // nothing after the last one of a trace. To be asked in ascending order, or with i below one that was asked for.
  std::optional<double> time_of(int64_t index);
  // Waits until the next arrival is due, not at all where it is overdue. The schedule starts at the first call.
  // Nothing after the last one of a trace.
  std::optional<Arrival> next();

 private:
  Arrivals() = default;

  std::string spec_;
  double rate_ = 0;
  bool poisson_ = false, trace_ = false;
  uint64_t random_ = 0;
  std::vector<double> seconds_;  // Poisson: as far as drawn
  int64_t next_ = 0, start_ns_ = 0;
};

}  // namespace strobe::bench
