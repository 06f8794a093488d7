#include "exporters/chrome_places.h"

#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace strobe::exporters {

using trace::Lane;

ChromePlaces chrome_places(const trace::Timeline& timeline) {
  ChromePlaces places;
  std::set<int64_t> taken;
  std::map<int32_t, std::string> names;
  for (const trace::Process& process : timeline.processes) {
    taken.insert(process.pid);
    const std::string name(timeline.strings[process.name]);
    names.emplace(process.pid, name);
    places.processes.push_back({process.pid, name});
  }
  for (const Lane& lane : timeline.lanes)
    if (lane.kind == Lane::Kind::kThread) taken.insert(lane.pid);

  constexpr int64_t kFirstFree = 1'000'000'000;
  const auto free_number = [](const auto& is_taken, int64_t wanted) {
    if (!is_taken(wanted)) return wanted;
    int64_t number = kFirstFree;
    while (is_taken(number)) ++number;
    return number;
  };
  std::map<std::pair<int32_t, int32_t>, int64_t> devices;  // pid, device
  std::set<std::pair<int64_t, int64_t>> streams;           // as shown
  for (const Lane& lane : timeline.lanes) {
    if (lane.kind == Lane::Kind::kThread) {
      places.lanes.push_back({lane.pid, lane.tid});
      continue;
    }
    auto [device, is_new] = devices.try_emplace({lane.pid, lane.device}, 0);
    if (is_new) {
      device->second = free_number([&](int64_t number) { return number < 0 || taken.contains(number); }, lane.device);
      taken.insert(device->second);
      std::string name = lane.device < 0 ? std::string("GPU") : "GPU " + std::to_string(lane.device);
      const auto owner = names.find(lane.pid);
      name += " of " + (owner != names.end() && !owner->second.empty() ? owner->second + " " : std::string()) +
              std::to_string(lane.pid);
      places.processes.push_back({device->second, std::move(name)});
    }
    // Streams of one number in two contexts.
    const int64_t pid = device->second;
    const int64_t tid = free_number([&](int64_t number) { return streams.contains({pid, number}); }, lane.tid);
    streams.emplace(pid, tid);
    places.lanes.push_back({pid, tid});
  }
  return places;
}

}  // namespace strobe::exporters
