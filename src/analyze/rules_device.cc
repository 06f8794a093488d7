// device_gap and small_kernels of rules.h.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analyze/device_work.h"
#include "analyze/rules_findings.h"

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;

namespace {

constexpr int64_t kManyKernels = 100;

struct Sum {
  int64_t count = 0, ns = 0;
};

// What held up the operation that ends a gap.
std::string cause_of(const Timeline& timeline, const OpenRanges& open, const DeviceRow& row, int64_t from, int64_t to) {
  if (row.launch == trace::kNone) return "unknown: the launch call is not in the trace";
  const trace::Ranges& ranges = timeline.ranges;
  const auto launch = static_cast<size_t>(row.launch);
  if (ranges.start_ns[launch] <= from)
    return "the operation was asked for before the gap: it waited for something else";
  // Half way of the part in which it had not been asked for.
  const int64_t middle = from + (std::min(to, ranges.start_ns[launch]) - from) / 2;
  const int32_t inside = open.at(ranges.lane[launch], middle);
  if (inside == trace::kNone) return "the host: nothing recorded on the launching thread";
  return "the host: in " + std::string(timeline.strings[ranges.name[static_cast<size_t>(inside)]]);
}

}  // namespace

void find_device(const Timeline& timeline, const RulesOptions& options, Findings& findings) {
  const trace::Ranges& ranges = timeline.ranges;
  const std::vector<DeviceRow> rows = device_rows(timeline);
  if (rows.empty()) return;
  const Devices devices(timeline);
  const OpenRanges open(timeline);
  std::vector<int64_t> busy_until(devices.count(), kBefore);
  std::map<std::string, Sum> gaps;
  std::map<trace::StringId, Sum> small;
  int64_t kernels = 0, small_count = 0, small_wait_ns = 0;
  for (const DeviceRow& row : rows) {
    const auto i = static_cast<size_t>(row.range);
    const int32_t device = devices.of_lane(ranges.lane[i]);
    if (device == trace::kNone) continue;
    int64_t& until = busy_until[static_cast<size_t>(device)];
    const int64_t gap = until == kBefore ? 0 : std::max<int64_t>(0, ranges.start_ns[i] - until);
    if (gap > options.gap_ns) {
      Sum& sum = gaps[cause_of(timeline, open, row, until, ranges.start_ns[i])];
      ++sum.count;
      sum.ns += gap;
    }
    until = std::max(until, ranges.end_ns[i]);
    if (ranges.kind[i] != RangeKind::kKernel) continue;
    ++kernels;
    if (ranges.end_ns[i] - ranges.start_ns[i] >= options.small_kernel_ns) continue;
    ++small_count;
    ++small[ranges.name[i]].count;
    // Long gaps have a finding of their own.
    if (gap <= options.gap_ns) small_wait_ns += gap;
  }
  for (const auto& [cause, sum] : gaps)
    findings.push_back(
        {"device_gap", cause, sum.count, sum.ns, "the device does nothing in that time",
         "prepare the next work earlier or on another thread, so that launches run ahead of the device"});
  if (small_count >= kManyKernels && 2 * small_count >= kernels) {
    const auto most = std::max_element(small.begin(), small.end(),
                                       [](const auto& a, const auto& b) { return a.second.count < b.second.count; });
    findings.push_back({"small_kernels",
                        fmt::format("{:.0f} % of {} kernels, most often {}",
                                    100.0 * static_cast<double>(small_count) / static_cast<double>(kernels), kernels,
                                    timeline.strings[most->first]),
                        small_count, small_wait_ns,
                        "a launch costs as much as such a kernel takes: the device waits for launches",
                        "fuse operations, use larger batches, or launch a recorded graph"});
  }
}

}  // namespace strobe::analyze
