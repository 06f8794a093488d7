// A pipeline's trace as the recorder would write it, made by a small simulation: stages with bounded queues and random
// but seeded service times.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strobe/trace/timeline.h"

namespace strobe::report::test {

struct SyntheticStage {
  std::string name;
  double mean_ms = 1;
};

struct SyntheticOptions {
  std::string engine = "torch";
  int frames = 168;
  std::vector<SyntheticStage> stages = {{"read", 1.9}, {"prep", 2.6}, {"infer", 61},
                                        {"post", 0.6}, {"draw", 1.1}, {"write", 4.2}};
  int queue_capacity = 4;
  int nested = 0;                            // further ranges inside each infer range
  bool fused = false;                        // an engine that runs convolution, batch norm and activation as one kernel
  double cores_busy = 0;                     // of 2 cores, as the argument cpu_ns of "run"; 0: not recorded
  bool afterwards = true;                    // the stages alone and the network's layers
  std::map<std::string, std::string> facts;  // beside the usual ones
  uint64_t seed = 1;
};

trace::Timeline synthetic_timeline(const SyntheticOptions& options);

}  // namespace strobe::report::test
