// Traces of several tenants by hand, by the words of docs/tenant-trace.md. Times in microseconds.
#pragma once

#include <string>

#include "trace/timeline_maker.h"

namespace strobe::test {

class TenantMaker : public TimelineMaker {
 public:
  explicit TenantMaker(const std::string& names) {
    timeline.facts["tenants"] = names;
    timeline.facts["tenants.policy"] = "fifo";
    timeline.facts["tenants.clock_sigma_ns"] = "0";
  }
  int32_t frame(const std::string& tenant, int32_t lane, int64_t id, int64_t from_us, int64_t to_us,
                const std::string& outcome = "finished") {
    const int32_t row = range("frame", lane, from_us * 1000, to_us * 1000, id, true);
    timeline.ranges.categorize_last(timeline.strings.intern(tenant), timeline.strings.intern("strobe.tenant"));
    argument(row, "outcome", outcome);
    return row;
  }
  int32_t stage(const std::string& tenant, int32_t lane, int64_t id, const std::string& name, int64_t from_us,
                int64_t to_us) {
    const int32_t row = range(name, lane, from_us * 1000, to_us * 1000, id);
    timeline.ranges.categorize_last(timeline.strings.intern(tenant), timeline.strings.intern("strobe.tenant"));
    return row;
  }
  int32_t operation(const std::string& name, int32_t lane, const std::string& resource, const std::string& kind,
                    int64_t ready_us, int64_t start_us, int64_t end_us) {
    const int32_t row = range(name, lane, start_us * 1000, end_us * 1000);
    timeline.ranges.categorize_last(timeline.strings.intern(kind), timeline.strings.intern("strobe.operation"));
    argument(row, "resource", resource);
    if (start_us > ready_us) argument(row, "waited_ns", (start_us - ready_us) * 1000);
    return row;
  }
};

}  // namespace strobe::test
