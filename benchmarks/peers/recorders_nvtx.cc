// NVTX 3 without a tool: what a program pays for annotations that nobody records.
#include <nvtx3/nvToolsExt.h>

#include "peers/recorders.h"

namespace strobe::bench {

void register_nvtx() {
  cases(benchmark::RegisterBenchmark("nvtx_push_pop", [](benchmark::State& state) {
    measure(state, [] {
      benchmark::DoNotOptimize(nvtxRangePushA("bench"));
      benchmark::DoNotOptimize(nvtxRangePop());
    });
  }));
}

}  // namespace strobe::bench
