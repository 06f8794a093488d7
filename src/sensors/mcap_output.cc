#include "sensors/mcap_output.h"

#include <fcntl.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/crc32.h"
#include "base/file.h"

namespace strobe::sensors {

McapOutput::McapOutput(std::filesystem::path path, McapOutputOptions options)
    : path_(std::move(path)), options_(std::move(options)) {
  static std::atomic<int> counter{0};
  temporary_ = path_;
  temporary_ += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
}

Result<std::unique_ptr<McapOutput>> McapOutput::create(const std::filesystem::path& path,
                                                       const McapOutputOptions& options) {
  STROBE_TRY(check_replaceable(path));
  std::unique_ptr<McapOutput> output(new McapOutput(path, options));
  output->fd_ = ::open(output->temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (output->fd_ < 0) return io_error_errno(path.string());
  for (int i = 1; i < options.threads; ++i) output->threads_.emplace_back([raw = output.get()] { raw->work(); });
  return output;
}

McapOutput::~McapOutput() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

std::unique_ptr<McapPiece> McapOutput::new_piece() {
  if (free_.empty()) return std::make_unique<McapPiece>();
  auto piece = std::move(free_.back());
  free_.pop_back();
  return piece;
}

void McapOutput::recycle(std::unique_ptr<McapPiece> piece) {
  if (free_.size() > 2 * threads_.size() + 2) return;
  auto fresh = std::make_unique<McapPiece>();
  fresh->plain = std::move(piece->plain);
  fresh->packed = std::move(piece->packed);
  fresh->plain.resize(0);
  free_.push_back(std::move(fresh));
}

void McapOutput::pack(McapPiece& piece, McapCodec& codec) const {
  const ByteView plain = piece.plain.view();
  if (!piece.chunk) {
    piece.body_crc = crc32(plain.data(), plain.size());
    return;
  }
  McapChunk chunk;
  chunk.message_start_time = piece.start_time;
  chunk.message_end_time = piece.end_time;
  chunk.uncompressed_size = plain.size();
  chunk.uncompressed_crc = crc32(plain.data(), plain.size());
  chunk.compression = chunk_name(options_.compression);
  if (options_.compression != McapCompression::kNone) {
    codec.compress(options_.compression, options_.level, plain, piece.packed).value();
    piece.compressed = true;
    piece.body_crc = crc32(piece.packed.data(), piece.packed.size());
  } else {
    piece.body_crc = chunk.uncompressed_crc;
  }
  chunk.records = piece.body();
  append_chunk_head(piece.head, chunk);
  if (!options_.message_index) return;
  for (const McapMessageIndex& index : piece.indexes) {
    piece.tail_offsets.emplace_back(index.channel_id, piece.tail.size());
    append_record(piece.tail, index, options_.extra);
  }
}

void McapOutput::write_piece(const McapPiece& piece) {
  const ByteView body = piece.body();
  iovec parts[3] = {{const_cast<char*>(piece.head.data()), piece.head.size()},
                    {const_cast<uint8_t*>(body.data()), body.size()},
                    {const_cast<char*>(piece.tail.data()), piece.tail.size()}};
  const uint64_t total = piece.head.size() + body.size() + piece.tail.size();
  for (uint64_t left = total; left > 0 && error_.empty();) {
    const ssize_t written = ::writev(fd_, parts, 3);
    if (written < 0) {
      if (errno == EINTR) continue;
      error_ = std::strerror(errno);
      return;
    }
    left -= static_cast<uint64_t>(written);
    auto skip = static_cast<size_t>(written);
    for (iovec& part : parts) {
      const size_t taken = std::min(skip, part.iov_len);
      part.iov_base = static_cast<char*>(part.iov_base) + taken;
      part.iov_len -= taken;
      skip -= taken;
    }
  }
  if (piece.chunk) {
    McapChunkIndex index;
    index.message_start_time = piece.start_time;
    index.message_end_time = piece.end_time;
    index.chunk_start_offset = offset_;
    index.chunk_length = piece.head.size() + body.size();
    index.message_index_length = piece.tail.size();
    for (const auto& [channel, place] : piece.tail_offsets)
      index.message_index_offsets.emplace_back(channel, offset_ + index.chunk_length + place);
    index.compression = chunk_name(options_.compression);
    index.compressed_size = body.size();
    index.uncompressed_size = piece.plain.size();
    chunk_indexes_.push_back(std::move(index));
  }
  crc_ = crc32(piece.head.data(), piece.head.size(), crc_);
  crc_ = crc32_combine(crc_, piece.body_crc, body.size());
  crc_ = crc32(piece.tail.data(), piece.tail.size(), crc_);
  offset_ += total;
}

bool McapOutput::pack_one(std::unique_lock<std::mutex>& lock, McapCodec& codec) {
  const auto waiting = [](const Job& job) { return job.state == Job::State::kWaiting; };
  const auto found = std::find_if(jobs_.begin(), jobs_.end(), waiting);
  if (found == jobs_.end()) return false;
  Job& job = *found;
  job.state = Job::State::kPacking;
  lock.unlock();
  pack(*job.piece, codec);
  lock.lock();
  job.state = Job::State::kReady;
  changed_.notify_all();
  return true;
}

void McapOutput::work() {
  McapCodec codec;
  std::unique_lock lock(mutex_);
  while (!stop_)
    if (!pack_one(lock, codec)) changed_.wait(lock);
}

void McapOutput::write_ready(std::unique_lock<std::mutex>& lock) {
  while (!jobs_.empty() && jobs_.front().state == Job::State::kReady) {
    auto piece = std::move(jobs_.front().piece);
    jobs_.pop_front();
    lock.unlock();
    write_piece(*piece);
    recycle(std::move(piece));
    lock.lock();
  }
}

Result<void> McapOutput::put(std::unique_ptr<McapPiece> piece) {
  if (threads_.empty()) {
    pack(*piece, codec_);
    write_piece(*piece);
    recycle(std::move(piece));
  } else {
    std::unique_lock lock(mutex_);
    jobs_.push_back({std::move(piece), Job::State::kWaiting});
    changed_.notify_all();
    write_ready(lock);
    while (jobs_.size() > 2 * threads_.size() + 1) {
      if (!pack_one(lock, codec_) && jobs_.front().state != Job::State::kReady) changed_.wait(lock);
      write_ready(lock);
    }
  }
  if (!error_.empty()) return io_error(path_.string() + ": " + error_);
  return {};
}

Result<void> McapOutput::flush() {
  std::unique_lock lock(mutex_);
  while (!jobs_.empty()) {
    if (!pack_one(lock, codec_) && jobs_.front().state != Job::State::kReady) changed_.wait(lock);
    write_ready(lock);
  }
  if (!error_.empty()) return io_error(path_.string() + ": " + error_);
  return {};
}

Result<void> McapOutput::finish() {
  STROBE_TRY(flush());
  const int closed = ::close(fd_);
  fd_ = -1;
  if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    auto error = io_error_errno(path_.string());
    ::unlink(temporary_.c_str());
    return error;
  }
  return {};
}

}  // namespace strobe::sensors
