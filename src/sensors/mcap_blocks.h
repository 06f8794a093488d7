// The runs of records that hold a file's messages, and reading them ahead on several threads.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "sensors/mcap_codec.h"
#include "sensors/mcap_records.h"

namespace strobe::sensors {

// A Chunk record, or a run of records that stand in the data section by themselves.
struct McapBlock {
  uint64_t offset = 0, length = 0;        // of the records in the file; of a chunk, the whole Chunk record
  uint64_t start_time = 0, end_time = 0;  // of its messages
  bool chunk = false;
  bool knows_channels = false;     // whether `channels` is known
  std::vector<uint16_t> channels;  // that have messages in it
};

struct McapLoadOptions {
  bool verify_crc = true;
  int threads = 1;                             // that decompress, the caller's included
  bool mapped = false;                         // the bytes are a mapped file
  uint64_t largest_chunk = uint64_t{4} << 30;  // uncompressed; larger ones are refused
};

// Records of a block: in the file itself where they are not compressed.
struct McapLoaded {
  ByteView records;
  std::shared_ptr<const void> owner;  // of decompressed bytes; empty where they are the file's own
  std::optional<Error> fault;         // then there are no records
};

// Takes a list of blocks, each once and in order, with as many others being decompressed meanwhile as there are
// threads.
class McapBlockLoader {
 public:
  // `file` and `blocks` must live as long as the loader.
  McapBlockLoader(ByteView file, std::vector<const McapBlock*> blocks, const McapLoadOptions& options);
  McapBlockLoader(const McapBlockLoader&) = delete;
  McapBlockLoader& operator=(const McapBlockLoader&) = delete;
  ~McapBlockLoader();

  size_t size() const { return blocks_.size(); }
  const McapBlock& block(size_t i) const { return *blocks_[i]; }
  // The block after the one that was taken last.
  McapLoaded take();

 private:
  // Buffers go back here when the last reader of their bytes is gone.
  struct Pool;
  enum class State : uint8_t { kWaiting, kLoading, kReady };
  struct Slot {
    State state = State::kWaiting;
    McapLoaded loaded;
  };
  McapLoaded load(const McapBlock& block, McapCodec& codec) const;
  void work();

  ByteView file_;
  std::vector<const McapBlock*> blocks_;
  McapLoadOptions options_;
  std::shared_ptr<Pool> pool_;
  McapCodec codec_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Slot> slots_;  // a ring of what is being read ahead
  size_t taken_ = 0;         // blocks that were handed out
  size_t begun_ = 0;         // blocks of which a thread took hold
  bool stop_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace strobe::sensors
