#pragma once

#include <cstdint>
#include <vector>

namespace strobe::record {

// A view of words of a ring; `mask` wraps positions.
struct RingWords {
  const uint64_t* words = nullptr;
  uint64_t mask = 0;
  uint64_t operator[](uint64_t position) const { return words[position & mask]; }
};

struct Encoded {
  uint64_t to = 0;       // position after the last whole record
  uint64_t records = 0;  // of the program: not drops, not definitions of names
  bool damaged = false;  // the words at `to` are no record
};

// Packs the ring's records [from, to) into `out` (replaced): a type byte, then varints; clock readings as differences
// to the record before, frames to the last frame. Each call starts anew, so that every block can be read alone.
Encoded encode(RingWords ring, uint64_t from, uint64_t to, std::vector<uint8_t>& out);

}  // namespace strobe::record
