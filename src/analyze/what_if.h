// What would have happened if: a replay of what was recorded, with a change. docs/critical-path.md says how.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// Which part of the work a change is about.
struct Selector {
  enum class Kind : uint8_t { kStage, kLayer, kKernel, kRange, kTenant } kind = Kind::kStage;
  std::string name;  // of a kernel: a regular expression, searched for
  std::string text() const;
};

struct Scale {
  Selector what;
  double factor = 1;  // of its service time
};

// "stage:infer", "layer:conv_3", "kernel:gemm.*", "range:NAME", "tenant:PID or process name". Errors: kUsage.
Result<Selector> parse_selector(const std::string& text);
// SELECTOR=FACTOR, FACTOR >= 0. Errors: kUsage.
Result<Scale> parse_scale(const std::string& text);

struct WhatIfOptions {
  std::vector<Scale> scales;
  std::vector<Selector> removed;
  std::optional<int64_t> cores, sessions, queue;  // of a pipeline
  std::string range;                              // of other traces: whose instances are what takes time
  bool sweep = false;
  uint64_t seed = 1;  // of the bootstrap
};

struct WhatIf {
  // How far a replay without any change is from what was measured, as a share.
  double p50_error = 0, p99_error = 0;
  bool is_reliable = false;  // within 3 % and 10 %
  // One row a figure (p50_ms, p95_ms, p99_ms, max_ms of latency, throughput): metric, measured, replay, error, after,
  // change, low, high. change = after / replay - 1 with its 95 % interval.
  Table answer;
  // The critical path of the replays, one row a stage or name: name, before_share, after_share.
  Table path;
  // With sweep: one row an item: item, time_share, p50_slope, throughput_slope: what a speed-up of 1 % is worth, in %.
  std::optional<Table> sweep;
};

// A pipeline's run is replayed as stages, sessions, bounded queues and cores; another trace as its dependency graph.
// Errors: kUsage (a change that fits no trace of this kind), kNotFound (nothing selected; no such range; no frames).
Result<WhatIf> what_if(const trace::Timeline& timeline, const WhatIfOptions& options);

}  // namespace strobe::analyze
