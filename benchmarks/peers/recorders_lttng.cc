// LTTng-UST, into the session that recorders.sh made.
#include <cstdint>
#include <string>
#include <vector>

#include "peers/recorders.h"
#include "peers/recorders_lttng_events.h"

namespace strobe::bench {

namespace {

bool has_session(benchmark::State& state) {
  if (lttng_ust_tracepoint_enabled(strobe_bench, begin)) return true;
  state.SkipWithError("no LTTng session records this: run benchmarks/peers/recorders.sh");
  return false;
}

}  // namespace

void register_lttng() {
  cases(benchmark::RegisterBenchmark("lttng_ust", [](benchmark::State& state) {
    if (!has_session(state)) return;
    int64_t batch = 0;
    measure(state, [&batch] {
      lttng_ust_tracepoint(strobe_bench, begin, batch++);
      lttng_ust_tracepoint(strobe_bench, end);
    });
  }));
  cases(benchmark::RegisterBenchmark("lttng_ust_dynamic_name", [](benchmark::State& state) {
    if (!has_session(state)) return;
    std::vector<std::string> names;
    for (int i = 0; i < 16; ++i) names.push_back("backbone.layer" + std::to_string(i) + ".conv2d");
    size_t i = 0;
    measure(state, [&] {
      lttng_ust_tracepoint(strobe_bench, begin_named, names[i++ % names.size()].c_str());
      lttng_ust_tracepoint(strobe_bench, end);
    });
  }));
}

}  // namespace strobe::bench
