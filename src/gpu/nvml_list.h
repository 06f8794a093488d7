// Lists of NVML: the number of entries is asked for, and may have grown when they are.
#pragma once

#include <algorithm>
#include <vector>

#include "gpu/nvml_abi.h"

namespace strobe::gpu {

// ask(unsigned* count, Entry* entries) is the call; null entries ask for the number.
template <typename Entry, typename Ask>
nvml::Code read_nvml_list(std::vector<Entry>& entries, Ask&& ask) {
  constexpr int kTries = 5;
  constexpr unsigned kRoom = 8, kMostEntries = 1 << 16;  // of a list that the library announces
  entries.clear();
  unsigned count = 0;
  nvml::Code code = ask(&count, nullptr);
  for (int i = 0; i < kTries; ++i) {
    // "Too small" and "done" both tell how many there are.
    if (code != nvml::kSuccess && code != nvml::kInsufficientSize) return code;
    if (count == 0) return nvml::kSuccess;
    entries.resize(std::min(count, kMostEntries) + kRoom);
    count = static_cast<unsigned>(entries.size());
    code = ask(&count, entries.data());
    if (code == nvml::kSuccess) {
      entries.resize(std::min<size_t>(count, entries.size()));
      return code;
    }
  }
  entries.clear();
  return code;
}

}  // namespace strobe::gpu
