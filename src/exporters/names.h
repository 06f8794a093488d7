// What kinds of ranges, copies, memories and waits are called in files.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "strobe/trace/timeline.h"

namespace strobe::exporters {

inline constexpr std::array<std::string_view, 10> kRangeKinds{"annotation", "operator", "api",    "os",   "overhead",
                                                              "kernel",     "memcpy",   "memset", "sync", "graph"};
inline constexpr std::array<std::string_view, 11> kCopyKinds{"",     "HtoD", "DtoH", "HtoA", "AtoH", "AtoA",
                                                             "AtoD", "DtoA", "DtoD", "HtoH", "PtoP"};
inline constexpr std::array<std::string_view, 7> kMemoryKinds{"pageable", "pinned", "device",        "array",
                                                              "managed",  "static", "managed static"};
inline constexpr std::array<std::string_view, 5> kSyncKinds{"", "Event Sync", "Stream Wait Event", "Stream Sync",
                                                            "Context Sync"};

// Empty for a number without a name.
template <size_t kCount>
std::string_view name_of(const std::array<std::string_view, kCount>& names, uint8_t number) {
  return number < kCount ? names[number] : std::string_view{};
}
inline std::string_view name_of(trace::RangeKind kind) {
  return name_of(kRangeKinds, static_cast<uint8_t>(kind));
}

}  // namespace strobe::exporters
