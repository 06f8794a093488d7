// strobe_scale_analyses TRACE: the time that each analysis takes of a timeline that is in memory, one line of JSON
// each:
// {"what": ..., "ms": smallest of three, "cpu_ms": of all threads in that round, "rows": of its answer,
// "error": where it cannot be asked of this trace}.
#include <chrono>
#include <cstdio>
#include <ctime>
#include <functional>
#include <string>

#include "analyze/compare.h"
#include "analyze/critical_path.h"
#include "analyze/idle.h"
#include "analyze/kernels.h"
#include "analyze/launches.h"
#include "analyze/layers.h"
#include "analyze/memcpy.h"
#include "analyze/pipeline.h"
#include "analyze/rules.h"
#include "analyze/stats.h"
#include "analyze/what_if.h"
#include "trace/open.h"

namespace {

using namespace strobe;
using Clock = std::chrono::steady_clock;

double ms_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Of all threads.
double cpu_ms() {
  return 1e3 * static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

void measure(const char* what, const std::function<Result<Table>()>& ask) {
  double least = 0, cpu_of_least = 0;
  size_t rows = 0;
  for (int round = 0; round < 3; ++round) {
    const double cpu_before = cpu_ms();
    const auto begin = Clock::now();
    const Result<Table> answer = ask();
    const double ms = ms_since(begin), cpu = cpu_ms() - cpu_before;
    if (!answer) {
      std::printf("{\"what\": \"%s\", \"ms\": %.1f, \"error\": true}\n", what, ms);
      std::fprintf(stderr, "%s: %s\n", what, answer.error().to_string().c_str());
      return;
    }
    rows = answer->row_count();
    if (round > 0 && ms >= least) continue;
    least = ms;
    cpu_of_least = cpu;
  }
  std::printf("{\"what\": \"%s\", \"ms\": %.1f, \"cpu_ms\": %.1f, \"rows\": %zu}\n", what, least, cpu_of_least, rows);
  std::fflush(stdout);
}

Result<Table> path_of(const trace::Timeline& timeline, const analyze::WindowChoice& choice) {
  STROBE_ASSIGN(auto path, analyze::critical_path(timeline, choice));
  return std::move(path.rows);
}

Result<Table> what_if_of(const trace::Timeline& timeline, const analyze::WhatIfOptions& options) {
  STROBE_ASSIGN(auto result, analyze::what_if(timeline, options));
  return std::move(result.answer);
}

void measure_all(const trace::Timeline& timeline) {
  using namespace analyze;
  for (const char* by : {"range", "operator", "kernel", "api", "memcpy", "stage"})
    measure((std::string("stats by ") + by).c_str(), [&]() -> Result<Table> {
      StatsOptions options;
      STROBE_ASSIGN(options.by, parse_stats_by(by));
      return stats(timeline, options);
    });
  for (const char* by : {"name", "layer", "range", "frame"})
    measure((std::string("kernels by ") + by).c_str(), [&]() -> Result<Table> {
      KernelsOptions options;
      STROBE_ASSIGN(options.by, parse_kernels_by(by));
      return kernels(timeline, options);
    });
  measure("memcpy", [&] { return memcpy_table(timeline); });
  measure("memcpy overlap", [&] { return memcpy_overlap(timeline); });
  measure("idle", [&] { return idle(timeline, {}); });
  measure("idle by HTA's rules", [&] { return idle(timeline, {.rules = IdleRules::kHta}); });
  measure("launches", [&] { return launches(timeline, IdleRules::kStrobe); });
  measure("frames bound by host or device", [&] { return frame_bound(timeline, {}); });
  measure("advise", [&] { return rules(timeline, {}); });
  measure("layers", [&] { return layers(timeline); });
  measure("stage latency", [&] { return stage_latency(timeline); });
  measure("frame latency", [&] { return frame_latency(timeline); });
  measure("throughput", [&] { return throughput(timeline); });
  measure("compare, largest changes", [&] { return largest_changes(timeline, timeline, {}); });
  const bool is_pipeline = timeline.facts.contains("pipeline.stages");
  const std::string step = is_pipeline ? "infer" : "ProfilerStep#5";
  measure("compare, one name", [&]() -> Result<Table> {
    STROBE_ASSIGN(const auto samples, samples_of(timeline, is_pipeline ? "range:infer" : "operator:aten::conv2d"));
    return comparison_table(compare("one name", samples, samples, {}));
  });
  measure("critical-path of a range", [&] { return path_of(timeline, {.range = step}); });
  if (is_pipeline) {
    measure("critical-path of a frame", [&] { return path_of(timeline, {.range = "", .frame = 100}); });
    WhatIfOptions options;
    options.scales = {{{Selector::Kind::kStage, "infer"}, 0.5}};
    measure("what-if, a stage", [&] { return what_if_of(timeline, options); });
  } else {
    measure("critical-path of a range, HTA's rules", [&]() -> Result<Table> {
      STROBE_ASSIGN(auto path, critical_path_hta(timeline, {.range = step}));
      return std::move(path.rows);
    });
    WhatIfOptions options;
    options.scales = {{{Selector::Kind::kKernel, "sgemm"}, 0.5}};
    options.range = "ProfilerStep";
    measure("what-if, a kernel", [&] { return what_if_of(timeline, options); });
  }
  measure("critical-path of all", [&] { return path_of(timeline, {}); });
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: strobe_scale_analyses TRACE\n", stderr);
    return 2;
  }
  const auto begin = Clock::now();
  auto timeline = trace::open_trace(argv[1]);
  if (!timeline) {
    std::fprintf(stderr, "%s\n", timeline.error().to_string().c_str());
    return 2;
  }
  std::printf("{\"what\": \"reading the trace\", \"ms\": %.1f, \"rows\": %zu}\n", ms_since(begin),
              timeline->ranges.size());
  measure_all(*timeline);
  return 0;
}
