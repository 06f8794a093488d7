// What `strobe bench` tells the programs that it starts.
#pragma once

#include <string>

#include "strobe/bench/perf.h"

namespace strobe::bench {

// BENCHMARK_PY is set: figures are wanted.
bool wanted_by_environment();
// STROBE_BENCH_WARMUP and STROBE_BENCH_RULES; the defaults where they are not set. Errors: kUsage naming the variable.
Result<Warmup> warmup_of_environment();
Result<Rules> rules_of_environment();
// STROBE_BENCH_ARRIVALS as it stands.
std::string arrivals_of_environment();

}  // namespace strobe::bench
