// What work of a device is put together by, besides its name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analyze/device_work.h"
#include "analyze/work_owners.h"
#include "base/table.h"
#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

enum class KernelsBy : uint8_t {
  kName,
  // The innermost annotation or operator around the launch call on its thread. A node of a graph belongs where it was
  // captured, if that is known and lies in one.
  kLayer,
  kRange,  // the innermost annotation there
  kFrame,
  kStage,  // as WorkOwners (work_owners.h) tells them
  kTenant,
};
// "", "name", "layer", "range", "frame", "stage", "tenant". Errors: kUsage naming them.
Result<KernelsBy> parse_kernels_by(const std::string& name);
// The part that WorkOwners knows.
WorkBy owners_of(KernelsBy by);

class KernelGroups {
 public:
  KernelGroups(const trace::Timeline& timeline, KernelsBy by);
  // Of a row of device_rows(): its layer, range, frame, stage or tenant; kNone: none, and always by name.
  int64_t of(const DeviceRow& row) const;
  Cell cell(int64_t group) const;
  // None by name.
  static std::vector<Column> columns(KernelsBy by);

 private:
  const trace::Timeline& timeline_;
  KernelsBy by_;
  bool owned_;
  WorkOwners owners_;
  std::vector<int32_t> around_;
};

}  // namespace strobe::analyze
