#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace strobe::record {

// The names that one thread made at run time and used lately: a fixed cache, so that endlessly many different names
// take no memory. A name's slot is its id; putting another name into the slot gives the id a new meaning, which the
// thread writes down (RecordType::kDefine) before it uses it.
class DynamicNames {
 public:
  static constexpr size_t kSlots = 512;
  static constexpr size_t kMaxBytes = 112;
  // The slot of names too long to be kept: defined anew at every use.
  static constexpr uint32_t kPassing = kSlots;

  struct Found {
    uint32_t slot;
    bool known;
  };
  // The slot that holds `text`, or the one that should take it.
  Found find(std::string_view text) const {
    if (text.size() > kMaxBytes) return {kPassing, false};
    const uint64_t hash = hash_of(text);
    const auto first = static_cast<uint32_t>((hash >> 32) % (kSlots / 2) * 2);
    for (const uint32_t slot : {first, first + 1}) {
      const Entry& entry = entries_[slot];
      if (entry.hash == hash && entry.bytes == text.size() && std::memcmp(entry.text, text.data(), text.size()) == 0)
        return {slot, true};
    }
    return {entries_[first].used > entries_[first + 1].used ? first + 1 : first, false};
  }
  void put(uint32_t slot, std::string_view text) {
    if (slot == kPassing) return;
    Entry& entry = entries_[slot];
    entry.hash = hash_of(text);
    entry.bytes = static_cast<uint32_t>(text.size());
    entry.used = ++clock_;
    std::memcpy(entry.text, text.data(), text.size());
  }

 private:
  static constexpr uint64_t kMix = 0x9E37'79B9'7F4A'7C15;  // 2^64 / golden ratio
  struct Entry {
    uint64_t hash = 0;
    uint32_t bytes = ~0U;
    uint32_t used = 0;  // when it was put here: the older one of a pair makes room
    char text[kMaxBytes];
  };
  static_assert(sizeof(Entry) == 128);

  // Only spreads names over slots: equality is decided by the text.
  static uint64_t hash_of(std::string_view text) {
    uint64_t hash = text.size() * kMix;
    const char* at = text.data();
    size_t left = text.size();
    for (; left >= 8; at += 8, left -= 8) hash = step(hash, load(at, 8));
    if (left > 0) hash = step(hash, load(at, left));
    return hash ^ hash >> 29;
  }
  static uint64_t load(const char* at, size_t bytes) {
    uint64_t word = 0;
    std::memcpy(&word, at, bytes);
    return word;
  }
  static uint64_t step(uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * kMix;
    return hash ^ hash >> 32;
  }

  std::array<Entry, kSlots> entries_{};
  uint32_t clock_ = 0;
};

}  // namespace strobe::record
