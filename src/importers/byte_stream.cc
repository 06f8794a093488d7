#include "importers/byte_stream.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "importers/gzip_inflater.h"

namespace strobe::importers {

// Gives inflated bytes. Used by one thread.
class ByteStream::Reader {
 public:
  Reader(int file, uint64_t size) : file_(file), file_size(size), buffer_(kBlockBytes) {}
  explicit Reader(std::string_view text) : file_size(text.size()), rest_(text) {}
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;
  ~Reader() {
    if (file_ >= 0) ::close(file_);
  }

  // Up to `size` bytes; fewer only at the end.
  size_t read(char* to, size_t size) {
    if (first_) look_at_magic();
    return inflater_ ? inflate_some(to, size) : copy_some(to, size);
  }

 private:
  int file_ = -1;

 public:
  const uint64_t file_size;
  uint64_t file_done = 0;
  std::string damage;

 private:
  // Makes rest_ non-empty unless the file is at its end.
  void fill() {
    if (!rest_.empty() || file_ < 0) return;
    ssize_t count = 0;
    do {
      count = ::read(file_, buffer_.data(), buffer_.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) damage = std::string("the file cannot be read on: ") + std::strerror(errno);
    rest_ = {buffer_.data(), static_cast<size_t>(std::max<ssize_t>(count, 0))};
  }

  void look_at_magic() {
    first_ = false;
    fill();
    if (rest_.size() < 2 || rest_[0] != '\x1f' || rest_[1] != '\x8b') return;
    inflater_ = std::make_unique<GzipInflater>();
  }

  void took(size_t count) {
    rest_.remove_prefix(count);
    file_done += count;
  }

  size_t copy_some(char* to, size_t size) {
    size_t done = 0;
    while (done < size) {
      fill();
      if (rest_.empty()) break;
      const size_t count = std::min(size - done, rest_.size());
      std::memcpy(to + done, rest_.data(), count);
      took(count);
      done += count;
    }
    return done;
  }

  // Inflates in pieces of one size, whatever size the caller asks for: what the inflater still gives of damaged data
  // depends on the room it is offered.
  size_t inflate_some(char* to, size_t size) {
    size_t done = 0;
    while (done < size) {
      if (!staged_.empty()) {
        const size_t count = std::min(size - done, staged_.size());
        std::memcpy(to + done, staged_.data(), count);
        staged_.remove_prefix(count);
        done += count;
      } else if (size - done >= kPieceBytes) {
        const size_t count = inflate_piece(to + done);
        done += count;
        if (count < kPieceBytes) break;
      } else {
        piece_.resize(kPieceBytes);
        staged_ = {piece_.data(), inflate_piece(piece_.data())};
        if (staged_.empty()) break;
      }
    }
    return done;
  }

  // Up to kPieceBytes; fewer only at the end.
  size_t inflate_piece(char* to) {
    size_t done = 0;
    while (done < kPieceBytes && !over_) {
      fill();
      const bool at_end = rest_.empty();
      if (at_end && between_members_) break;
      // A file may hold several gzip members; what follows the last one is none of them (tar pads with zeros).
      if (between_members_) {
        if (rest_[0] != '\x1f') {
          over_ = true;
          break;
        }
        inflater_->start_member();
        between_members_ = false;
      }
      const GzipInflater::Step step =
          inflater_->inflate(rest_.data(), std::min<size_t>(rest_.size(), 1U << 30), to + done, kPieceBytes - done);
      took(step.taken);
      done += step.given;
      if (step.state == GzipInflater::Step::State::kDamaged) {
        damage = "the gzip data is damaged at byte " + std::to_string(file_done) + " of the file";
        over_ = true;
      } else if (step.state == GzipInflater::Step::State::kMemberEnds) {
        between_members_ = true;
      } else if (at_end && step.given == 0) {  // else the inflater still held something
        if (damage.empty())
          damage = "the gzip data breaks off after byte " + std::to_string(file_done) + " of the file";
        break;
      }
    }
    return done;
  }

  static constexpr size_t kPieceBytes = 64 << 10;
  static_assert(kBlockBytes % kPieceBytes == 0, "so that pieces of a file are inflated in place");

  std::vector<char> buffer_, piece_;
  std::string_view rest_;                   // read, not used yet
  std::string_view staged_;                 // of piece_, inflated, not given yet
  std::unique_ptr<GzipInflater> inflater_;  // of a gzip file
  bool first_ = true, between_members_ = false, over_ = false;
};

ByteStream::ByteStream(std::unique_ptr<Reader> reader, size_t block_bytes)
    : block_bytes_(block_bytes),
      headroom_(std::min<size_t>(block_bytes, 64 << 10)),
      reader_(std::move(reader)),
      file_size_(reader_->file_size) {
  static const char kNothing[kPadding] = {};
  begin_ = end_ = kNothing;
}

Result<std::unique_ptr<ByteStream>> ByteStream::open(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    if (errno == ENOENT) return not_found("no such file").at(path.string());
    return io_error_errno("cannot be opened").at(path.string());
  }
  struct stat status {};
  if (::fstat(file, &status) != 0 || S_ISDIR(status.st_mode)) {
    ::close(file);
    return io_error("is a folder, expected a trace file").at(path.string());
  }
  const uint64_t size = S_ISREG(status.st_mode) ? static_cast<uint64_t>(status.st_size) : 0;
  std::unique_ptr<ByteStream> stream(new ByteStream(std::make_unique<Reader>(file, size), kBlockBytes));
  stream->start_thread();
  return stream;
}

std::unique_ptr<ByteStream> ByteStream::of_text(std::string_view text, size_t block_bytes) {
  return std::unique_ptr<ByteStream>(new ByteStream(std::make_unique<Reader>(text), block_bytes));
}

ByteStream::~ByteStream() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    cancelled_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void ByteStream::start_thread() {
  thread_ = std::thread([this] { produce_all(); });
}

ByteStream::Block ByteStream::new_block() {
  return {std::make_unique_for_overwrite<char[]>(headroom_ + block_bytes_ + kPadding), 0, 0};
}

void ByteStream::produce_all() {
  for (;;) {
    Block block;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return cancelled_ || ready_.size() < kAhead; });
      if (cancelled_) return;
      if (!free_.empty()) {
        block = std::move(free_.back());
        free_.pop_back();
      }
    }
    if (!block.memory) block = new_block();
    block.size = reader_->read(block.memory.get() + headroom_, block_bytes_);
    block.file_done = reader_->file_done;
    const std::lock_guard lock(mutex_);
    finished_ = block.size < block_bytes_;
    if (block.size > 0) ready_.push_back(std::move(block));
    changed_.notify_all();
    if (finished_) return;
  }
}

std::optional<ByteStream::Block> ByteStream::next_block() {
  if (!thread_.joinable()) {
    Block block = new_block();
    block.size = reader_->read(block.memory.get() + headroom_, block_bytes_);
    file_done_ = reader_->file_done;
    damage_ = reader_->damage;
    if (block.size == 0) return std::nullopt;
    return block;
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return finished_ || !ready_.empty(); });
  if (ready_.empty()) {
    file_done_ = reader_->file_done;
    damage_ = reader_->damage;
    return std::nullopt;
  }
  Block block = std::move(ready_.front());
  ready_.pop_front();
  file_done_ = block.file_done;
  changed_.notify_all();
  return block;
}

void ByteStream::recycle(Block block) {
  if (!thread_.joinable()) return;
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(block));
}

bool ByteStream::refill(const char* keep) {
  begin_offset_ += static_cast<uint64_t>(keep - begin_);
  begin_ = keep;
  std::optional<Block> next = next_block();
  if (!next) return false;
  const auto tail = static_cast<size_t>(end_ - keep);
  if (tail <= headroom_) {
    char* data = next->memory.get() + headroom_;
    if (tail > 0) std::memcpy(data - tail, keep, tail);
    begin_ = data - tail;
    end_ = data + next->size;
    std::memset(data + next->size, 0, kPadding);
    if (current_) recycle(std::move(*current_));
    current_ = std::move(next);
    joined_.reset();
    return true;
  }
  // Something longer than a block: the window at least doubles, so that starting over costs no more than twice.
  const size_t capacity = 2 * tail + block_bytes_;
  auto joined = std::make_unique_for_overwrite<char[]>(capacity + kPadding);
  std::memcpy(joined.get(), keep, tail);
  size_t size = tail;
  while (next) {
    std::memcpy(joined.get() + size, next->memory.get() + headroom_, next->size);
    size += next->size;
    recycle(std::move(*next));
    next.reset();
    if (size + block_bytes_ <= capacity) next = next_block();
  }
  std::memset(joined.get() + size, 0, kPadding);
  if (current_) recycle(std::move(*current_));
  current_.reset();
  joined_ = std::move(joined);
  begin_ = joined_.get();
  end_ = begin_ + size;
  return true;
}

Result<std::string> read_all(ByteStream& stream, size_t limit) {
  std::string text(stream.begin(), stream.end());
  while (stream.refill(stream.end())) {
    text.append(stream.begin(), stream.end());
    if (text.size() > limit) return bad_data("is longer than " + std::to_string(limit >> 20) + " MiB");
  }
  return text;
}

}  // namespace strobe::importers
