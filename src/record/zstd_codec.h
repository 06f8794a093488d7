// zstd at its fastest level, where the library is there; without it blocks are stored plain.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace strobe::record {

bool zstd_available();
// Appends the compressed bytes to `out`; false, with `out` as before, when that is impossible or does not pay.
bool zstd_compress(std::span<const uint8_t> plain, std::vector<uint8_t>& out);
// Fills `plain`, whose size is the expected one; false when the data is damaged or the library absent.
bool zstd_decompress(std::span<const uint8_t> stored, std::span<uint8_t> plain);

}  // namespace strobe::record
