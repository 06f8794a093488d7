// CRC-32 as in zlib, PNG, IEEE 802.3 and MCAP: polynomial 0x04C11DB7, bits reflected. More than 10 GB/s where the
// processor multiplies without carry.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strobe {

// `seed` is the CRC of what came before.
uint32_t crc32(const void* data, size_t bytes, uint32_t seed = 0);

// The CRC of A followed by B, out of the CRC of each and the length of B.
uint32_t crc32_combine(uint32_t a, uint32_t b, uint64_t bytes_of_b);

namespace detail {
// The same by tables, for processors without that instruction (and to test against).
uint32_t crc32_by_tables(const void* data, size_t bytes, uint32_t seed);
}  // namespace detail

}  // namespace strobe
