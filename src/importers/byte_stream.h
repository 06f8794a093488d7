// The bytes of a trace file, plain or gzip, as a window that moves forward. A thread reads and inflates ahead; the
// parser looks at the bytes in place. Memory: a few blocks, whatever the size of the file.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::importers {

class ByteStream {
 public:
  static constexpr size_t kBlockBytes = size_t{256} << 10;
  // Bytes behind end() that may be read (they are 0).
  static constexpr size_t kPadding = 64;

  // Errors: kNotFound, kIo (no regular file, cannot be read).
  static Result<std::unique_ptr<ByteStream>> open(const std::filesystem::path& path);
  // A text in memory (plain or gzip), in blocks of the given size and without a thread. The text must outlive it.
  static std::unique_ptr<ByteStream> of_text(std::string_view text, size_t block_bytes = kBlockBytes);

  ByteStream(const ByteStream&) = delete;
  ByteStream& operator=(const ByteStream&) = delete;
  ~ByteStream();

  const char* begin() const { return begin_; }
  const char* end() const { return end_; }
  // Drops what stands before `keep` and appends what comes next; begin() is then where `keep` was. False at the end
  // of the data: the window is then unchanged but for what was dropped. Pointers into the old window are void.
  bool refill(const char* keep);
  // Offset in the (inflated) data.
  uint64_t offset_of(const char* at) const { return begin_offset_ + static_cast<uint64_t>(at - begin_); }
  // Of the file: bytes read so far, and in all (0: unknown).
  uint64_t file_done() const { return file_done_; }
  uint64_t file_size() const { return file_size_; }
  // After refill() gave false: why the data ends early, as a kind of fault; empty: it does not.
  const std::string& damage() const { return damage_; }

 private:
  struct Block {
    std::unique_ptr<char[]> memory;  // room for a tail of the block before, the data, the padding
    size_t size = 0;
    uint64_t file_done = 0;
  };
  class Reader;

  explicit ByteStream(std::unique_ptr<Reader> reader, size_t block_bytes);
  void start_thread();
  void produce_all();
  Block new_block();
  // The next block with data; nothing at the end.
  std::optional<Block> next_block();
  void recycle(Block block);

  static constexpr size_t kAhead = 4;  // blocks
  const size_t block_bytes_;
  const size_t headroom_;
  std::unique_ptr<Reader> reader_;
  uint64_t file_size_ = 0;
  uint64_t file_done_ = 0;
  std::string damage_;

  std::optional<Block> current_;    // whose memory the window is in, or
  std::unique_ptr<char[]> joined_;  // several blocks in one piece
  const char* begin_ = nullptr;
  const char* end_ = nullptr;
  uint64_t begin_offset_ = 0;

  std::thread thread_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Block> ready_;
  std::vector<Block> free_;
  bool finished_ = false, cancelled_ = false;
};

// All of it as one text; at most `limit` bytes (kBadData beyond).
Result<std::string> read_all(ByteStream& stream, size_t limit);

}  // namespace strobe::importers
