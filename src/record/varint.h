// Variable-length integers of the spool: 7 bits a byte, least significant first, the top bit says that more follow.
#pragma once

#include <cstdint>

namespace strobe::record {

inline constexpr int kMaxVarintBytes = 10;

inline uint64_t zigzag(int64_t value) {
  return static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63);
}
inline int64_t unzigzag(uint64_t value) {
  return static_cast<int64_t>(value >> 1 ^ (~(value & 1) + 1));
}

inline uint8_t* put_varint(uint8_t* at, uint64_t value) {
  while (value >= 0x80) {
    *at++ = static_cast<uint8_t>(value | 0x80);
    value >>= 7;
  }
  *at++ = static_cast<uint8_t>(value);
  return at;
}

// The byte after the number, or null when it runs past `end` or has more than 64 bits.
inline const uint8_t* get_varint(const uint8_t* at, const uint8_t* end, uint64_t& value) {
  value = 0;
  for (int shift = 0; at < end && shift < 64; shift += 7) {
    const uint64_t byte = *at++;
    value |= (byte & 0x7F) << shift;
    if (byte < 0x80) return at;
  }
  return nullptr;
}

}  // namespace strobe::record
