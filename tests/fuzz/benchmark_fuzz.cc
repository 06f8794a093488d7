// Links: strobe_bench nlohmann_json::nlohmann_json
// Any bytes as a benchmark.json or benchmark_mean.json: an error of one line, or figures that can be made and read
// back.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "bench/read.h"
#include "bench/results.h"
#include "bench/warmup.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe::bench;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  (void)read_mean(text);
  auto read = read_benchmark(text);
  if (!read) {
    if (read.error().to_string().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  const Warmup warmup = resolve({.automatic = true}, read->ranges);
  for (const Rules rules : {Rules::kStrobe, Rules::kOriginal}) {
    const Json file = benchmark_of(read->obj_name, read->ranges, warmup, rules, read->meta);
    const std::string written = file.dump(-1, ' ', false, Json::error_handler_t::replace);
    if (written.empty()) std::abort();
  }
  (void)stage_table({{"proc_0_gpu_0", "", std::move(*read)}}, {1, 1});
  return 0;
}
