#include "record/zstd_codec.h"

#ifdef STROBE_HAVE_ZSTD
#include <zstd.h>
#endif

namespace strobe::record {

#ifdef STROBE_HAVE_ZSTD

bool zstd_available() {
  return true;
}

bool zstd_compress(std::span<const uint8_t> plain, std::vector<uint8_t>& out) {
  const size_t before = out.size();
  out.resize(before + ZSTD_compressBound(plain.size()));
  const size_t bytes = ZSTD_compress(out.data() + before, out.size() - before, plain.data(), plain.size(), 1);
  const bool pays = ZSTD_isError(bytes) == 0 && bytes < plain.size();
  out.resize(pays ? before + bytes : before);
  return pays;
}

bool zstd_decompress(std::span<const uint8_t> stored, std::span<uint8_t> plain) {
  const size_t bytes = ZSTD_decompress(plain.data(), plain.size(), stored.data(), stored.size());
  return ZSTD_isError(bytes) == 0 && bytes == plain.size();
}

#else

bool zstd_available() {
  return false;
}
bool zstd_compress(std::span<const uint8_t> /*plain*/, std::vector<uint8_t>& /*out*/) {
  return false;
}
bool zstd_decompress(std::span<const uint8_t> /*stored*/, std::span<uint8_t> /*plain*/) {
  return false;
}

#endif

}  // namespace strobe::record
