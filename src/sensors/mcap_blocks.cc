#include "sensors/mcap_blocks.h"

#include <algorithm>

#include "base/crc32.h"
#include "sensors/mcap_file.h"

namespace strobe::sensors {

struct McapBlockLoader::Pool {
  std::mutex mutex;
  std::vector<McapBuffer> free;

  McapBuffer take() {
    const std::lock_guard lock(mutex);
    if (free.empty()) return {};
    McapBuffer buffer = std::move(free.back());
    free.pop_back();
    return buffer;
  }
  // As an owner that gives the buffer back.
  static std::shared_ptr<const void> lend(const std::shared_ptr<Pool>& pool, McapBuffer buffer) {
    struct Lent {
      std::shared_ptr<Pool> pool;
      McapBuffer buffer;
      Lent(std::shared_ptr<Pool> from, McapBuffer what) : pool(std::move(from)), buffer(std::move(what)) {}
      Lent(const Lent&) = delete;
      Lent& operator=(const Lent&) = delete;
      ~Lent() {
        const std::lock_guard lock(pool->mutex);
        if (pool->free.size() < 16) pool->free.push_back(std::move(buffer));
      }
    };
    return std::make_shared<Lent>(pool, std::move(buffer));
  }
};

McapBlockLoader::McapBlockLoader(ByteView file, std::vector<const McapBlock*> blocks, const McapLoadOptions& options)
    : file_(file), blocks_(std::move(blocks)), options_(options), pool_(std::make_shared<Pool>()) {
  const auto helpers = static_cast<size_t>(std::max(options_.threads, 1) - 1);
  if (helpers == 0 || blocks_.size() < 2) return;
  slots_.resize(2 * helpers + 1);
  for (size_t i = 0; i < std::min(helpers, blocks_.size() - 1); ++i) threads_.emplace_back([this] { work(); });
}

McapBlockLoader::~McapBlockLoader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

McapLoaded McapBlockLoader::load(const McapBlock& block, McapCodec& codec) const {
  McapLoaded loaded;
  const auto fail = [&](Error error) {
    loaded.fault = std::move(error).at("chunk at byte " + std::to_string(block.offset));
    loaded.records = {};
    return std::move(loaded);
  };
  if (block.offset > file_.size() || block.length > file_.size() - block.offset)
    return fail(bad_data("lies beyond the end of the file"));
  const ByteView bytes = file_.subspan(static_cast<size_t>(block.offset), static_cast<size_t>(block.length));
  if (options_.mapped) populate(bytes);
  if (!block.chunk) {
    loaded.records = bytes;
    return loaded;
  }
  McapRecord record;
  McapCursor cursor(bytes);
  if (cursor.next(record) != McapCursor::Step::kRecord || record.opcode != McapOpcode::kChunk ||
      record.end() != bytes.size())
    return fail(bad_data("there is no Chunk record of this length"));
  auto chunk = parse_chunk(record.content);
  if (!chunk) return fail(std::move(chunk).error());
  if (chunk->compression.empty()) {
    if (chunk->records.size() != chunk->uncompressed_size)
      return fail(bad_data("holds " + std::to_string(chunk->records.size()) + " bytes, says " +
                           std::to_string(chunk->uncompressed_size)));
    loaded.records = chunk->records;
  } else {
    if (chunk->uncompressed_size > options_.largest_chunk)
      return fail(unsupported("says that it holds " + std::to_string(chunk->uncompressed_size) +
                              " bytes, expected at most " + std::to_string(options_.largest_chunk)));
    McapBuffer buffer = pool_->take();
    auto done = codec.decompress(chunk->compression, chunk->records, chunk->uncompressed_size, buffer);
    if (!done) return fail(std::move(done).error());
    loaded.records = buffer.view();
    loaded.owner = Pool::lend(pool_, std::move(buffer));
  }
  if (options_.verify_crc && chunk->uncompressed_crc != 0 &&
      crc32(loaded.records.data(), loaded.records.size()) != chunk->uncompressed_crc)
    return fail(bad_data("its CRC is wrong"));
  return loaded;
}

void McapBlockLoader::work() {
  McapCodec codec;
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return stop_ || begun_ == blocks_.size() || begun_ < taken_ + slots_.size(); });
    if (stop_ || begun_ == blocks_.size()) return;
    const size_t mine = begun_++;
    Slot& slot = slots_[mine % slots_.size()];
    slot.state = State::kLoading;
    lock.unlock();
    McapLoaded loaded = load(*blocks_[mine], codec);
    lock.lock();
    slot.loaded = std::move(loaded);
    slot.state = State::kReady;
    changed_.notify_all();
  }
}

McapLoaded McapBlockLoader::take() {
  if (threads_.empty()) return load(*blocks_[taken_++], codec_);
  std::unique_lock lock(mutex_);
  const size_t mine = taken_;
  if (begun_ == mine) {
    ++begun_;
    ++taken_;
    lock.unlock();
    changed_.notify_all();
    return load(*blocks_[mine], codec_);
  }
  Slot& slot = slots_[mine % slots_.size()];
  // Rather than wait for a block that another thread has in hand, the next one is begun.
  while (slot.state == State::kLoading && begun_ < blocks_.size() && begun_ < taken_ + slots_.size()) {
    const size_t ahead = begun_++;
    Slot& other = slots_[ahead % slots_.size()];
    other.state = State::kLoading;
    lock.unlock();
    McapLoaded loaded = load(*blocks_[ahead], codec_);
    lock.lock();
    other.loaded = std::move(loaded);
    other.state = State::kReady;
  }
  changed_.wait(lock, [&] { return slot.state == State::kReady; });
  McapLoaded loaded = std::move(slot.loaded);
  slot.loaded = {};
  slot.state = State::kWaiting;
  ++taken_;
  lock.unlock();
  changed_.notify_all();
  return loaded;
}

}  // namespace strobe::sensors
