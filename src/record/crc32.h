#pragma once

#include <cstddef>
#include <cstdint>

namespace strobe::record {

// CRC-32 as in zlib, PNG and IEEE 802.3. `seed` is the CRC of what came before.
uint32_t crc32(const void* data, size_t bytes, uint32_t seed = 0);

}  // namespace strobe::record
