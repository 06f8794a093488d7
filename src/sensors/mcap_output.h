// The pieces of an MCAP file on their way to the disk: chunks are compressed by any thread, and written in order.
#pragma once

#include <condition_variable>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "sensors/mcap_codec.h"
#include "sensors/mcap_records.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

// What stands in the file in one piece: a chunk with its message index, or records that are written as they are.
struct McapPiece {
  bool chunk = false;
  McapBuffer plain;  // records
  // Of a chunk:
  uint64_t start_time = 0, end_time = 0;
  std::vector<McapMessageIndex> indexes;  // one a channel, in the order of their first messages

  // Made by pack():
  McapBuffer packed;
  bool compressed = false;
  uint32_t body_crc = 0;
  std::string head, tail;
  std::vector<std::pair<uint16_t, uint64_t>> tail_offsets;  // channel, place of its MessageIndex in `tail`
  ByteView body() const { return compressed ? packed.view() : plain.view(); }
};

struct McapOutputOptions {
  McapCompression compression = McapCompression::kNone;
  McapLevel level = McapLevel::kFastest;
  bool message_index = true;
  int threads = 1;
  std::string extra;
};

class McapOutput {
 public:
  // Creates a file under a temporary name. Errors: kIo.
  static Result<std::unique_ptr<McapOutput>> create(const std::filesystem::path& path,
                                                    const McapOutputOptions& options);
  McapOutput(const McapOutput&) = delete;
  McapOutput& operator=(const McapOutput&) = delete;
  // Removes the temporary file where finish() was not called.
  ~McapOutput();

  // An empty piece, with memory of an earlier one where there is.
  std::unique_ptr<McapPiece> new_piece();
  // Errors: kIo, of this piece or of one before.
  Result<void> put(std::unique_ptr<McapPiece> piece);
  // Until all pieces are in the file.
  Result<void> flush();
  // Gives the file its name.
  Result<void> finish();

  // After flush():
  uint64_t offset() const { return offset_; }
  uint32_t crc() const { return crc_; }  // of all bytes so far
  std::vector<McapChunkIndex>& chunk_indexes() { return chunk_indexes_; }

 private:
  struct Job {
    std::unique_ptr<McapPiece> piece;
    enum class State : uint8_t { kWaiting, kPacking, kReady } state = State::kWaiting;
  };
  McapOutput(std::filesystem::path path, McapOutputOptions options);
  void pack(McapPiece& piece, McapCodec& codec) const;
  void write_piece(const McapPiece& piece);
  void write_ready(std::unique_lock<std::mutex>& lock);
  bool pack_one(std::unique_lock<std::mutex>& lock, McapCodec& codec);
  void recycle(std::unique_ptr<McapPiece> piece);
  void work();

  std::filesystem::path path_, temporary_;
  McapOutputOptions options_;
  int fd_ = -1;
  McapCodec codec_;
  // Only the caller's thread writes.
  uint64_t offset_ = 0;
  uint32_t crc_ = 0;
  std::vector<McapChunkIndex> chunk_indexes_;
  std::string error_;  // of the first write that failed
  std::vector<std::unique_ptr<McapPiece>> free_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Job> jobs_;  // in the order of the file; addresses of elements stay
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace strobe::sensors
