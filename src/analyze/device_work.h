// What every analysis of a device's work needs: which device a stream belongs to, what kind of work a name is, what ran
// around a call, and what a thread did at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "analyze/intervals.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// The devices of a timeline. Processes may number the same device differently: the facts "gpu.of.PID.DEVICE" tell;
// where they are missing, equal numbers are taken for the same device.
class Devices {
 public:
  explicit Devices(const trace::Timeline& timeline);
  size_t count() const { return numbers_.size(); }
  // Index of the device of a lane; kNone for a thread.
  int32_t of_lane(int32_t lane) const { return of_lane_[static_cast<size_t>(lane)]; }
  // As the trace calls it.
  int64_t number(size_t device) const { return numbers_[device]; }

 private:
  std::vector<int64_t> numbers_;
  std::vector<int32_t> of_lane_;
};

// Kernels that move data between devices, by their name: NCCL, RCCL, HCCL.
bool is_communication(std::string_view name);

// Of each text of a timeline, whether it is the name of such a kernel.
std::vector<uint8_t> communication_names(const trace::Timeline& timeline);

// For each range the innermost one at or around it on its thread for which `is` holds of the kind; kNone: none.
template <typename Is>
std::vector<int32_t> innermost(const trace::Ranges& ranges, Is is) {
  std::vector<int32_t> found(ranges.size(), trace::kNone);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (is(ranges.kind[i]))
      found[i] = static_cast<int32_t>(i);
    else if (ranges.parent[i] != trace::kNone)
      found[i] = found[static_cast<size_t>(ranges.parent[i])];
  }
  return found;
}

// What was open on a thread at a time.
class OpenRanges {
 public:
  explicit OpenRanges(const trace::Timeline& timeline);
  // The innermost nested range of the lane with start <= time < end; kNone: none.
  int32_t at(int32_t lane, int64_t time) const;

 private:
  const trace::Ranges& ranges_;
  std::vector<std::vector<int32_t>> of_lane_;
};

// Columns of a device operation, in time order, for passes over all of them.
struct DeviceRow {
  int32_t range;
  int32_t launch;       // kNone: not in the trace
  int32_t capture;      // as in DeviceOp
  int32_t op;           // index into Timeline::device_ops; kNone: none
  int64_t previous_ns;  // latest end of the earlier operations of its stream (synchronisation is none); before: kBefore
};
inline constexpr int64_t kBefore = INT64_MIN;
// Kernels, copies, sets and graphs.
std::vector<DeviceRow> device_rows(const trace::Timeline& timeline);

}  // namespace strobe::analyze
