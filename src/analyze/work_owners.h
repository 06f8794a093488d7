// Who asked for a device's operation: the stage or the tenant around its launch call.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/device_work.h"
#include "base/table.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

enum class WorkBy : uint8_t { kNobody, kStage, kTenant };
// "", "stage", "tenant". Errors: kUsage naming them.
Result<WorkBy> parse_work_by(const std::string& name);

// A stage is the outermost range around the launch call that a tenant's frame or the fact "pipeline.stages" has as one.
// A tenant is that of the outermost such range; work outside of them belongs to the tenant to which the process alone
// belongs (fact tenant.NAME.pid), else to the process, by its name ("strobe run"; "strobe run 4711" where another one
// has the same name).
class WorkOwners {
 public:
  WorkOwners(const trace::Timeline& timeline, WorkBy by);
  // Index into names; kNone: nobody (of a stage: its call is not in the trace, or stands in none).
  int32_t of(const DeviceRow& row) const;
  const std::string& name(int32_t owner) const { return names_[static_cast<size_t>(owner)]; }
  Cell cell(int32_t owner) const;
  // "stage" or "tenant", with what it means.
  static Column column(WorkBy by);
  // Says how many operations belong to nobody, if any.
  static void note_unowned(WorkBy by, uint64_t operations, Table& table);

 private:
  int32_t named(const std::string& name);
  void find_stages();
  void find_tenants();

  const trace::Timeline& timeline_;
  std::vector<std::string> names_;
  std::vector<int32_t> of_range_;
  std::vector<int32_t> of_lane_;  // of tenants: where of_range_ says nobody
};

}  // namespace strobe::analyze
