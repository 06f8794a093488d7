// Rows of a table by their token.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

namespace strobe::sensors {

namespace nuscenes {
inline constexpr uint32_t kNone = UINT32_MAX;
}

// An open hash table of places; the tokens themselves stay in the rows, which are handed in with each call.
class TokenIndex {
 public:
  // Rows have a member `token`. Returns the place of the first row whose token another one has, kNone where all differ.
  template <typename Row>
  uint32_t build(const std::vector<Row>& rows) {
    size_t size = 16;
    while (size < rows.size() * 2) size *= 2;
    slots_.assign(size, {});
    for (uint32_t i = 0; i < rows.size(); ++i) {
      const size_t hash = std::hash<std::string_view>{}(rows[i].token);
      const auto tag = static_cast<uint32_t>(hash >> 32);
      size_t at = hash & (size - 1);
      while (slots_[at].row != nuscenes::kNone) {
        if (slots_[at].tag == tag && rows[slots_[at].row].token == rows[i].token) return i;
        at = (at + 1) & (size - 1);
      }
      slots_[at] = {i, tag};
    }
    return nuscenes::kNone;
  }

  // `guess` is a row that may well be it: tables follow each other's order in long runs.
  template <typename Row>
  uint32_t find(const std::vector<Row>& rows, std::string_view token, uint32_t guess = nuscenes::kNone) const {
    if (guess < rows.size() && rows[guess].token == token) return guess;
    if (slots_.empty()) return nuscenes::kNone;
    const size_t hash = std::hash<std::string_view>{}(token);
    const auto tag = static_cast<uint32_t>(hash >> 32);
    for (size_t at = hash & (slots_.size() - 1); slots_[at].row != nuscenes::kNone; at = (at + 1) & (slots_.size() - 1))
      if (slots_[at].tag == tag && rows[slots_[at].row].token == token) return slots_[at].row;
    return nuscenes::kNone;
  }

 private:
  struct Slot {
    uint32_t row = nuscenes::kNone;
    uint32_t tag = 0;
  };
  std::vector<Slot> slots_;
};

}  // namespace strobe::sensors
