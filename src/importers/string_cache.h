// Interning of texts that repeat: a direct-mapped cache in front of Strings, which reads three words of a text instead
// of hashing all of it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "strobe/trace/timeline.h"

namespace strobe::importers {

class StringCache {
 public:
  explicit StringCache(trace::Strings& strings) : strings_(strings), slots_(std::make_unique<Slots>()) {}

  trace::StringId intern(std::string_view text) {
    if (text.empty()) return 0;
    trace::StringId& slot = (*slots_)[hash(text) >> (64 - kBits)];
    if (slot == 0 || strings_[slot] != text) slot = strings_.intern(text);
    return slot;
  }

 private:
  static constexpr int kBits = 13;
  using Slots = std::array<trace::StringId, size_t{1} << kBits>;  // 0: empty

  static uint64_t hash(std::string_view text) {
    uint64_t words[3] = {0, 0, 0};
    const size_t size = text.size();
    if (size >= 8) {
      std::memcpy(&words[0], text.data(), 8);
      std::memcpy(&words[1], text.data() + (size - 8) / 2, 8);
      std::memcpy(&words[2], text.data() + size - 8, 8);
    } else {
      std::memcpy(&words[0], text.data(), size);
    }
    uint64_t mixed = (words[0] ^ size) * 0x9E3779B97F4A7C15ULL;
    mixed = (mixed ^ (mixed >> 32) ^ words[1]) * 0xD6E8FEB86659FD93ULL;
    mixed = (mixed ^ (mixed >> 32) ^ words[2]) * 0xA0761D6478BD642FULL;
    return mixed ^ mixed << 32;
  }

  trace::Strings& strings_;
  std::unique_ptr<Slots> slots_;
};

}  // namespace strobe::importers
