// sync_copy, pageable_async, host_sync of rules.h.
#include <map>
#include <string_view>

#include "analyze/device_work.h"
#include "analyze/memcpy.h"
#include "analyze/rules_findings.h"

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;

namespace {

bool has(std::string_view name, std::string_view part) {
  return name.find(part) != std::string_view::npos;
}

bool is_synchronous_copy(std::string_view name) {
  const bool copies = name.starts_with("cudaMemcpy") || name.starts_with("cuMemcpy") || name.starts_with("hipMemcpy");
  return copies && !has(name, "Async");
}

bool waits_for_device(std::string_view name) {
  const bool is_runtime = name.starts_with("cuda") || name.starts_with("cu") || name.starts_with("hip");
  return is_runtime && has(name, "Synchronize");
}

struct Sum {
  int64_t count = 0, ns = 0;
};

void add(const Timeline& timeline, const std::map<trace::StringId, Sum>& sums, const char* rule, const char* why,
         const char* next_step, Findings& findings) {
  for (const auto& [name, sum] : sums)
    findings.push_back({rule, std::string(timeline.strings[name]), sum.count, sum.ns, why, next_step});
}

}  // namespace

void find_calls(const Timeline& timeline, Findings& findings) {
  const trace::Ranges& ranges = timeline.ranges;
  // 1: a copy that waits, 2: a wait. By name, since names are few.
  std::vector<uint8_t> meaning(timeline.strings.size());
  for (size_t i = 0; i < meaning.size(); ++i) {
    const std::string_view name = timeline.strings[static_cast<trace::StringId>(i)];
    meaning[i] = is_synchronous_copy(name) ? 1 : waits_for_device(name) ? 2 : 0;
  }
  std::map<trace::StringId, Sum> copies, waits;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.kind[i] != RangeKind::kApi || ranges.open[i] || meaning[ranges.name[i]] == 0) continue;
    Sum& sum = (meaning[ranges.name[i]] == 1 ? copies : waits)[ranges.name[i]];
    ++sum.count;
    sum.ns += ranges.end_ns[i] - ranges.start_ns[i];
  }
  add(timeline, copies, "sync_copy", "the host waits until the copy is done and queues nothing meanwhile",
      "use the asynchronous call on a stream, with pinned memory", findings);
  add(timeline, waits, "host_sync", "the host waits for the device, which then waits for the host's next launch",
      "wait for an event as late as possible, or keep one more frame in flight", findings);

  std::map<trace::StringId, Sum> pageable;
  for (const trace::DeviceOp& op : timeline.device_ops) {
    const auto i = static_cast<size_t>(op.range);
    if (ranges.kind[i] != RangeKind::kCopy || op.launch == trace::kNone) continue;
    const bool is_pageable = (op.copy_kind == 1 && op.source_kind == 0) || (op.copy_kind == 2 && op.target_kind == 0);
    if (!is_pageable || !has(timeline.strings[ranges.name[static_cast<size_t>(op.launch)]], "Async")) continue;
    Sum& sum = pageable[ranges.name[i]];
    ++sum.count;
    sum.ns += ranges.end_ns[i] - ranges.start_ns[i];
  }
  add(timeline, pageable, "pageable_async",
      "pageable memory is first copied to a staging buffer: slower, and the call waits for it",
      "allocate the host buffer as pinned memory", findings);
}

}  // namespace strobe::analyze
