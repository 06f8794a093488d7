#include "bench/timeline_times.h"

#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <utility>

namespace strobe::bench {
namespace {

constexpr double kNsPerMs = 1e6;

struct Projection {
  int64_t start_ns = std::numeric_limits<int64_t>::max(), end_ns = std::numeric_limits<int64_t>::min();
  double ms() const { return end_ns > start_ns ? static_cast<double>(end_ns - start_ns) / kNsPerMs : 0; }
};

// Every name on the way to a range is a place, whether or not it is a range itself.
class Paths {
 public:
  explicit Paths(const RangeTimes& ranges) {
    for (size_t i = 0; i < ranges.size(); ++i) {
      const std::string& path = ranges[i].path;
      // What stands before the first slash is obj_name, of which the timeline knows nothing.
      const size_t first = path.find('/');
      if (first == std::string::npos) continue;
      int32_t place = kRoot;
      for (size_t at = first + 1; at <= path.size();) {
        const size_t end = std::min(path.find('/', at), path.size());
        place = places_.try_emplace({place, path.substr(at, end - at)}, static_cast<int32_t>(places_.size()) + 1)
                    .first->second;
        at = end + 1;
      }
      range_at_[place] = i;
    }
  }
  static constexpr int32_t kRoot = 0, kNowhere = -1;

  int32_t below(int32_t place, std::string_view name) const {
    for (size_t at = 0; place != kNowhere && at <= name.size();) {
      const size_t end = std::min(name.find('/', at), name.size());
      const auto found = places_.find({place, std::string(name.substr(at, end - at))});
      place = found == places_.end() ? kNowhere : found->second;
      at = end + 1;
    }
    return place;
  }
  const size_t* range_at(int32_t place) const {
    const auto found = range_at_.find(place);
    return found == range_at_.end() ? nullptr : &found->second;
  }

 private:
  std::map<std::pair<int32_t, std::string>, int32_t> places_;
  std::unordered_map<int32_t, size_t> range_at_;
};

}  // namespace

Filled fill_times(RangeTimes& ranges, const trace::Timeline& timeline, bool cpu) {
  const Paths paths(ranges);
  const auto& all = timeline.ranges;
  std::vector<int32_t> place(all.size(), Paths::kNowhere);
  std::map<std::pair<size_t, int32_t>, size_t> last;  // by range and lane: the timeline's range
  for (size_t i = 0; i < all.size(); ++i) {
    const bool annotation = i >= all.kind.size() || all.kind[i] == trace::RangeKind::kAnnotation;
    if (!annotation || all.is_async[i] != 0) continue;
    // Calls and operators may lie between two annotations.
    int32_t above = all.parent[i];
    while (above != trace::kNone && static_cast<size_t>(above) < all.kind.size() &&
           all.kind[static_cast<size_t>(above)] != trace::RangeKind::kAnnotation)
      above = all.parent[static_cast<size_t>(above)];
    const int32_t from = above == trace::kNone ? Paths::kRoot : place[static_cast<size_t>(above)];
    place[i] = paths.below(from, timeline.strings[all.name[i]]);
    if (const size_t* range = paths.range_at(place[i])) last[{*range, all.lane[i]}] = i;
  }
  std::unordered_map<size_t, Projection> projections;  // by the timeline's range
  for (const auto& op : timeline.device_ops) {
    if (op.range == trace::kNone) continue;
    const auto device = static_cast<size_t>(op.range);
    for (int32_t at = op.launch; at != trace::kNone; at = all.parent[static_cast<size_t>(at)]) {
      if (place[static_cast<size_t>(at)] == Paths::kNowhere) continue;
      Projection& projection = projections[static_cast<size_t>(at)];
      projection.start_ns = std::min(projection.start_ns, all.start_ns[device]);
      projection.end_ns = std::max(projection.end_ns, all.end_ns[device]);
    }
  }
  Filled filled{.found = 0, .device = !timeline.device_ops.empty()};
  for (auto entry = last.begin(); entry != last.end();) {
    const size_t range = entry->first.first;
    double cpu_ms = 0, gpu_ms = 0, lanes = 0;
    for (; entry != last.end() && entry->first.first == range; ++entry) {
      const size_t i = entry->second;
      cpu_ms += static_cast<double>(all.end_ns[i] - all.start_ns[i]) / kNsPerMs;
      if (const auto projection = projections.find(i); projection != projections.end())
        gpu_ms += projection->second.ms();
      ++lanes;
    }
    if (cpu) ranges[range].cpu_ms = cpu_ms / lanes;
    ranges[range].gpu_ms = gpu_ms / lanes;
    ++filled.found;
  }
  return filled;
}

}  // namespace strobe::bench
