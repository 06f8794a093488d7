// One benchmark: starts its processes, waits for them, sums up what they left.
#pragma once

#include <string>

#include "bench/plan.h"
#include "strobe/base/result.h"
#include "strobe/bench/clocks.h"
#include "strobe/bench/perf.h"

namespace strobe::app {

struct BenchOptions {
  bench::PlanOptions plan;
  bench::Warmup warmup;
  bench::Rules rules = bench::Rules::kStrobe;
  double timeout_s = 0;
  bool maximize_clocks = false, record = true;
  std::string format = "table", log_level = "info";
};

// Exit code 0, or 1 when a process is missing. Errors: kUsage, kNotFound, kIo, kInterrupted.
Result<int> run_bench(BenchOptions options, const bench::Log& log);

}  // namespace strobe::app
