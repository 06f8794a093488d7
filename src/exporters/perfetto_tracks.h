// Where things are drawn in Perfetto: processes, threads, devices with their streams, and tracks for what does not
// nest.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "exporters/perfetto_packets.h"
#include "strobe/trace/timeline.h"

namespace strobe::exporters {

class PerfettoTracks {
 public:
  // Describes processes and lanes.
  PerfettoTracks(PerfettoPackets& packets, const trace::Timeline& timeline);

  uint64_t of_lane(int32_t lane) const { return lanes_[static_cast<size_t>(lane)].track; }
  // One more track of a lane, for ranges that overlap those of its other tracks without nesting in them.
  uint64_t overlap_of_lane(int32_t lane);
  // A track for asynchronous ranges of a name; those of one name in one process are shown together.
  uint64_t async_of_lane(int32_t lane, trace::StringId name);
  uint64_t counter(int32_t pid, int32_t lane, trace::StringId name);
  // For what has no place: of the whole trace.
  uint64_t outside();

 private:
  struct LaneTrack {
    uint64_t track = 0, parent = 0;
    std::string name;
  };
  struct CounterKey {
    int32_t pid, lane;
    trace::StringId name;
    auto operator<=>(const CounterKey&) const = default;
  };

  uint64_t process(int32_t pid);  // 0: none, of everything without a process
  uint64_t add(uint64_t parent, std::string_view name);
  void describe_thread(const trace::Lane& lane, LaneTrack& track);
  void describe_device(const trace::Lane& lane, LaneTrack& track);

  PerfettoPackets& packets_;
  const trace::Timeline& timeline_;
  std::vector<LaneTrack> lanes_;
  std::unordered_map<int32_t, uint64_t> processes_;
  std::map<std::pair<int32_t, int32_t>, uint64_t> threads_;                 // pid, tid
  std::map<std::pair<int32_t, int32_t>, uint64_t> devices_;                 // pid, device
  std::map<std::tuple<int32_t, int32_t, int32_t>, int32_t> stream_counts_;  // pid, device, stream: of contexts
  std::map<CounterKey, uint64_t> counters_;
  uint64_t outside_ = 0, last_ = 0;
};

}  // namespace strobe::exporters
