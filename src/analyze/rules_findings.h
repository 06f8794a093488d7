// What the rules of rules.h share.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/rules.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

struct Finding {
  const char* rule;
  std::string where;
  int64_t count;
  int64_t ns;
  const char* why;
  const char* next_step;
};
using Findings = std::vector<Finding>;

// sync_copy, pageable_async, host_sync.
void find_calls(const trace::Timeline& timeline, Findings& findings);
// device_gap, small_kernels.
void find_device(const trace::Timeline& timeline, const RulesOptions& options, Findings& findings);
// starved_stage, oversubscribed.
void find_pipeline(const trace::Timeline& timeline, Findings& findings);

}  // namespace strobe::analyze
