#include "analyze/kernel_groups.h"

namespace strobe::analyze {

using trace::RangeKind;
using trace::Timeline;

Result<KernelsBy> parse_kernels_by(const std::string& name) {
  if (name.empty() || name == "name") return KernelsBy::kName;
  if (name == "layer") return KernelsBy::kLayer;
  if (name == "range") return KernelsBy::kRange;
  if (name == "frame") return KernelsBy::kFrame;
  if (name == "stage") return KernelsBy::kStage;
  if (name == "tenant") return KernelsBy::kTenant;
  return usage_error("--by " + name + ": expected name, layer, range, frame, stage or tenant");
}

WorkBy owners_of(KernelsBy by) {
  return by == KernelsBy::kStage ? WorkBy::kStage : by == KernelsBy::kTenant ? WorkBy::kTenant : WorkBy::kNobody;
}

KernelGroups::KernelGroups(const Timeline& timeline, KernelsBy by)
    : timeline_(timeline), by_(by), owned_(owners_of(by) != WorkBy::kNobody), owners_(timeline, owners_of(by)) {
  if (by == KernelsBy::kLayer)
    around_ = innermost(timeline.ranges,
                        [](RangeKind kind) { return kind == RangeKind::kAnnotation || kind == RangeKind::kOperator; });
  if (by == KernelsBy::kRange)
    around_ = innermost(timeline.ranges, [](RangeKind kind) { return kind == RangeKind::kAnnotation; });
}

int64_t KernelGroups::of(const DeviceRow& row) const {
  if (owned_) return owners_.of(row);
  if (by_ == KernelsBy::kFrame) return timeline_.ranges.frame[static_cast<size_t>(row.range)];
  if (by_ == KernelsBy::kName) return trace::kNone;
  // A graph's launch asks for the work of many layers: each node was captured in its own.
  int32_t around = row.capture == trace::kNone ? trace::kNone : around_[static_cast<size_t>(row.capture)];
  if (around == trace::kNone && row.launch != trace::kNone) around = around_[static_cast<size_t>(row.launch)];
  return around == trace::kNone ? trace::kNone : int64_t{timeline_.ranges.name[static_cast<size_t>(around)]};
}

Cell KernelGroups::cell(int64_t group) const {
  if (group == trace::kNone) return {};
  if (owned_) return owners_.cell(static_cast<int32_t>(group));
  if (by_ == KernelsBy::kFrame) return group;
  return std::string(timeline_.strings[static_cast<trace::StringId>(group)]);
}

std::vector<Column> KernelGroups::columns(KernelsBy by) {
  if (by == KernelsBy::kLayer)
    return {{"layer",
             "innermost annotation or operator around the launch call on its thread; of a graph's node, around the "
             "call that "
             "captured it"}};
  if (by == KernelsBy::kRange)
    return {{"range",
             "innermost annotation around the launch call on its thread; of a graph's node, around the call that "
             "captured it"}};
  if (by == KernelsBy::kFrame) return {{"frame", "frame for which it ran", 0}};
  if (const WorkBy owners = owners_of(by); owners != WorkBy::kNobody) return {WorkOwners::column(owners)};
  return {};
}

}  // namespace strobe::analyze
