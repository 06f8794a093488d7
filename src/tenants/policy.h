// Policy: in which order tenants get the device.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::tenants {

enum class Policy : uint8_t {
  kConcurrent,          // nobody waits: the device (or the cores' scheduler) shares itself
  kFifo,                // who asked first
  kPriority,            // the greatest priority, then who asked first; a running inference is finished
  kPriorityPreemptive,  // the same, and a running inference gives way between two layers
  kRoundRobin,          // the next tenant in turn that waits
  kEdf,                 // the earliest absolute deadline, then who asked first
  kExclusive,           // a plain lock: whoever finds it free
};

std::string_view to_string(Policy policy);  // "priority-preemptive"
std::vector<std::string> policy_names();
// Errors: kUsage (offers the names).
Result<Policy> parse_policy(std::string_view text);

}  // namespace strobe::tenants
