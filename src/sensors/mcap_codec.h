// The compressions of MCAP's chunks: none, LZ4 (frame format) and Zstandard.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "sensors/mcap_buffer.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

enum class McapCompression : uint8_t { kNone, kLz4, kZstd };
enum class McapLevel : uint8_t { kFastest, kDefault, kSmallest };

// As a chunk names it: "", "lz4", "zstd".
std::string_view chunk_name(McapCompression compression);
// As a user names it: "none", "lz4", "zstd". Errors: kUsage naming the three.
Result<McapCompression> parse_mcap_compression(std::string_view name);

// Contexts of the two libraries, made at first use and used again; one a thread.
class McapCodec {
 public:
  McapCodec();
  McapCodec(McapCodec&&) noexcept;
  McapCodec& operator=(McapCodec&&) noexcept;
  ~McapCodec();

  // `out` becomes the compressed form of `plain`; not for kNone. The same input gives the same bytes on every thread.
  Result<void> compress(McapCompression compression, McapLevel level, ByteView plain, McapBuffer& out);

  // `out` becomes the `size` bytes that `stored` stands for. A size that `stored` cannot reach is refused before
  // anything is allocated, and one that is merely unlikely gets its memory as the bytes turn up. Errors: kBadData
  // (damaged, or of another size), kUnsupported (another compression).
  Result<void> decompress(std::string_view chunk_compression, ByteView stored, uint64_t size, McapBuffer& out);

 private:
  struct Contexts;
  std::unique_ptr<Contexts> contexts_;
};

}  // namespace strobe::sensors
