// The pid and tid under which a Chrome trace shows each lane.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strobe/trace/timeline.h"

namespace strobe::exporters {

struct ChromePlace {
  int64_t pid = 0, tid = 0;
};

struct ChromeProcess {
  int64_t pid = 0;
  std::string name;
};

struct ChromePlaces {
  std::vector<ChromePlace> lanes;        // by lane
  std::vector<ChromeProcess> processes;  // also devices, which such traces show as processes
};

// Threads are where they are. The streams of a device stand, as in PyTorch's traces, under a process of the device's
// number, or of another free number where that is a process, or where several processes use the device.
ChromePlaces chrome_places(const trace::Timeline& timeline);

}  // namespace strobe::exporters
