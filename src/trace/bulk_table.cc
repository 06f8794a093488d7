#include "trace/bulk_table.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace strobe::trace {

namespace {

constexpr size_t kFlushAt = size_t{1} << 20;
// The page at this offset is SQLite's for locking and holds no data.
constexpr uint64_t kLockOffset = uint64_t{1} << 30;
// Head of the file: where the number of pages stands, and two counters that are equal where that number is true.
constexpr size_t kPageSizeAt = 16, kChangeCounterAt = 24, kPageCountAt = 28, kVersionValidForAt = 92, kHeadBytes = 100;
constexpr uint8_t kInteriorPage = 5, kLeafPage = 13;
constexpr size_t kLongestVarint = 9;

uint32_t read_big_endian(const uint8_t* at, int bytes) {
  uint32_t value = 0;
  for (int i = 0; i < bytes; ++i) value = value << 8 | at[i];
  return value;
}

void write_big_endian(uint8_t* at, uint64_t value, int bytes) {
  for (int i = bytes; i-- > 0; value >>= 8) at[i] = static_cast<uint8_t>(value);
}

// Seven bits a byte, the highest first; a ninth byte has eight.
size_t write_varint(uint8_t* at, uint64_t value) {
  if (value >> 56 != 0) {
    at[8] = static_cast<uint8_t>(value);
    value >>= 8;
    for (int i = 7; i >= 0; --i, value >>= 7) at[i] = static_cast<uint8_t>(value | 0x80);
    return kLongestVarint;
  }
  size_t bytes = 1;
  for (uint64_t rest = value >> 7; rest != 0; rest >>= 7) ++bytes;
  for (size_t i = bytes; i-- > 0; value >>= 7)
    at[i] = static_cast<uint8_t>((value & 0x7f) | (i + 1 < bytes ? 0x80 : 0));
  return bytes;
}

}  // namespace

BulkTable::BulkTable(BulkFile& file, uint32_t root) : file_(&file), root_(root) {
  start_page(true);
}

void BulkTable::start_page(bool is_leaf) {
  page_.assign(file_->page_size_, 0);
  page_[0] = is_leaf ? kLeafPage : kInteriorPage;
  header_ = is_leaf ? 8 : 12;
  cells_ = 0;
  content_ = page_.size();
}

// The caller has seen to it that there is room.
void BulkTable::add_cell(const uint8_t* cell, size_t size) {
  content_ -= size;
  std::memcpy(page_.data() + content_, cell, size);
  write_big_endian(page_.data() + header_ + 2 * cells_, content_, 2);
  ++cells_;
  write_big_endian(page_.data() + 3, cells_, 2);
  write_big_endian(page_.data() + 5, content_, 2);
}

void BulkTable::end_row() {
  // All serial types are below 128, and so is the size of the head with them.
  uint8_t cell[2 * kLongestVarint + 1 + kMostColumns + sizeof body_];
  const size_t head = 1 + static_cast<size_t>(columns_);
  size_t size = write_varint(cell, head + body_size_);
  size += write_varint(cell + size, static_cast<uint64_t>(rowid_));
  cell[size++] = static_cast<uint8_t>(head);
  std::memcpy(cell + size, types_, static_cast<size_t>(columns_));
  size += static_cast<size_t>(columns_);
  std::memcpy(cell + size, body_, body_size_);
  size += body_size_;
  is_ordered_ &= !has_rows_ || rowid_ > last_rowid_;
  has_rows_ = true;
  if (header_ + 2 * (cells_ + 1) + size > content_) end_leaf();
  add_cell(cell, size);
  last_rowid_ = rowid_;
  columns_ = 0;
  body_size_ = 0;
}

void BulkTable::end_leaf() {
  children_.push_back({file_->append(page_), last_rowid_});
  start_page(true);
}

void BulkTable::write_interior() {
  constexpr size_t kLargestCell = 4 + kLongestVarint;
  const size_t most = (file_->page_size_ - 12) / (kLargestCell + 2) + 1;
  const size_t pages = (children_.size() + most - 1) / most;
  std::vector<Child> above;
  size_t at = 0;
  for (size_t i = 0; i < pages; ++i) {
    const size_t end = children_.size() * (i + 1) / pages;  // evenly, so that none is left with one child
    start_page(false);
    for (; at + 1 < end; ++at) {
      uint8_t cell[kLargestCell];
      write_big_endian(cell, children_[at].page, 4);
      add_cell(cell, 4 + write_varint(cell + 4, static_cast<uint64_t>(children_[at].last_rowid)));
    }
    write_big_endian(page_.data() + 8, children_[at].page, 4);
    const int64_t last = children_[at++].last_rowid;
    if (pages > 1) above.push_back({file_->append(page_), last});
  }
  children_ = std::move(above);
}

Result<void> BulkTable::finish() {
  if (columns_ > 0) end_row();
  if (!is_ordered_) return internal_error("the rows of a table are not in the order of their numbers");
  if (!children_.empty()) {
    end_leaf();
    do {
      write_interior();
    } while (!children_.empty());
  }
  if (has_rows_) file_->write_at((uint64_t{root_} - 1) * page_.size(), page_.data(), page_.size());
  return {};
}

Result<BulkFile> BulkFile::open(const std::filesystem::path& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return io_error_errno("cannot be written");
  BulkFile opened(file, 0, 0);
  uint8_t head[kHeadBytes];
  struct stat status {};
  if (::pread(file, head, sizeof head, 0) != static_cast<ssize_t>(sizeof head) || ::fstat(file, &status) != 0)
    return io_error_errno("cannot be read");
  opened.page_size_ = read_big_endian(head + kPageSizeAt, 2);
  opened.pages_ = read_big_endian(head + kPageCountAt, 4);
  const bool is_true = std::equal(head + kChangeCounterAt, head + kChangeCounterAt + 4, head + kVersionValidForAt);
  if (opened.page_size_ < 512 || !is_true ||
      static_cast<uint64_t>(status.st_size) != uint64_t{opened.pages_} * opened.page_size_)
    return internal_error("a new trace file is not as SQLite should have left it");
  return opened;
}

BulkFile::BulkFile(BulkFile&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      page_size_(other.page_size_),
      pages_(other.pages_),
      pending_(std::move(other.pending_)),
      error_(other.error_) {}

BulkFile::~BulkFile() {
  if (file_ >= 0) ::close(file_);
}

uint32_t BulkFile::append(const std::vector<uint8_t>& page) {
  if (uint64_t{pages_} * page_size_ == kLockOffset) {
    pending_.resize(pending_.size() + page_size_, 0);
    ++pages_;
  }
  pending_.insert(pending_.end(), page.begin(), page.end());
  ++pages_;
  if (pending_.size() >= kFlushAt) flush();
  return pages_;
}

void BulkFile::write_at(uint64_t offset, const uint8_t* bytes, size_t size) {
  while (size > 0 && error_ == 0) {
    const ssize_t count = ::pwrite(file_, bytes, size, static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      error_ = count < 0 ? errno : ENOSPC;
      return;
    }
    offset += static_cast<uint64_t>(count);
    bytes += count;
    size -= static_cast<size_t>(count);
  }
}

void BulkFile::flush() {
  write_at(uint64_t{pages_} * page_size_ - pending_.size(), pending_.data(), pending_.size());
  pending_.clear();
}

Result<void> BulkFile::close() {
  flush();
  uint8_t pages[4];
  write_big_endian(pages, pages_, 4);
  write_at(kPageCountAt, pages, sizeof pages);
  if (::close(std::exchange(file_, -1)) != 0 && error_ == 0) error_ = errno;
  if (error_ == 0) return {};
  errno = error_;
  return io_error_errno("cannot be written");
}

}  // namespace strobe::trace
