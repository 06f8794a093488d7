#include "record/ring.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "record/file_limit.h"

namespace strobe::record {

Result<std::shared_ptr<Ring>> Ring::create(const std::filesystem::path& path, uint64_t capacity_words) {
  const HoldFileLimitSignal hold;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return io_error_errno("cannot make the ring file " + path.string());
  const size_t bytes = kHeaderBytes + capacity_words * 8;
  const int failed = ::posix_fallocate(file, 0, static_cast<off_t>(bytes));
  void* mapped = MAP_FAILED;
  if (failed == 0) {
    mapped = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  } else {
    errno = failed;
  }
  if (mapped == MAP_FAILED) {
    Error error = io_error_errno("cannot set aside " + std::to_string(bytes) + " bytes for " + path.string());
    ::close(file);
    ::unlink(path.c_str());
    return error;
  }
  ::close(file);
  // A first touch of every page now spares the recorded thread page faults of up to a millisecond.
  auto* page = static_cast<volatile unsigned char*>(mapped);
  for (size_t at = 0; at < bytes; at += 4096) page[at] = 0;
  auto* header = new (mapped) RingHeader{};
  header->version = kFormatVersion;
  header->header_bytes = kHeaderBytes;
  header->capacity_words = capacity_words;
  // Last: a reader takes a ring without it for one whose making was cut short.
  publish_magic(header->magic, kRingMagic);
  return std::shared_ptr<Ring>(new Ring(path, header, capacity_words));
}

Ring::Ring(std::filesystem::path path, RingHeader* header, uint64_t capacity)
    : path_(std::move(path)),
      header_(header),
      words_(reinterpret_cast<uint64_t*>(reinterpret_cast<char*>(header) + kHeaderBytes)),
      capacity_(capacity) {}

Ring::~Ring() {
  ::munmap(header_, bytes());
}

void Ring::assign(uint32_t serial, int32_t tid) {
  // A reader trusts the rest of the header only while the serial is not 0.
  header_->serial.store(0, std::memory_order_seq_cst);
  header_->head.store(0, std::memory_order_release);
  header_->tail.store(0, std::memory_order_release);
  header_->dropped.store(0, std::memory_order_release);
  header_->tid = tid;
  ended.store(false);
  announced = false;
  drained_ns = 0;
  header_->serial.store(serial, std::memory_order_release);
}

void Ring::remove_file() const {
  ::unlink(path_.c_str());
}

void Ring::detach_from_file() const {
  ::mmap(header_, bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
}

}  // namespace strobe::record
