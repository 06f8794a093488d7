#include "record/spool_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>

#include "base/crc32.h"
#include "record/file_limit.h"
#include "record/zstd_codec.h"

namespace strobe::record {

Result<std::unique_ptr<SpoolFile>> SpoolFile::create(const std::filesystem::path& path) {
  const HoldFileLimitSignal hold;
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
  if (file < 0) return io_error_errno("cannot make " + path.string());
  const int failed = ::posix_fallocate(file, 0, kHeaderBytes);
  void* mapped = MAP_FAILED;
  if (failed == 0) {
    mapped = ::mmap(nullptr, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  } else {
    errno = failed;
  }
  if (mapped == MAP_FAILED) {
    Error error = io_error_errno("cannot write " + path.string());
    ::close(file);
    ::unlink(path.c_str());
    return error;
  }
  auto* header = new (mapped) SpoolHeader{};
  header->version = kFormatVersion;
  header->header_bytes = kHeaderBytes;
  return std::unique_ptr<SpoolFile>(new SpoolFile(path, file, header));
}

SpoolFile::SpoolFile(std::filesystem::path path, int file, SpoolHeader* header)
    : path_(std::move(path)), file_(file), header_(header) {}

SpoolFile::~SpoolFile() {
  ::munmap(header_, kHeaderBytes);
  if (file_ >= 0) ::close(file_);
}

Result<void> SpoolFile::append(BlockHeader header, std::span<const uint8_t> payload, bool compress) {
  buffer_.resize(sizeof header);
  header.magic = kBlockMagic;
  header.plain_bytes = static_cast<uint32_t>(payload.size());
  header.codec = Codec::kPlain;
  header.reserved = 0;
  if (compress && zstd_compress(payload, buffer_)) {
    header.codec = Codec::kZstd;
  } else {
    buffer_.insert(buffer_.end(), payload.begin(), payload.end());
  }
  header.stored_bytes = static_cast<uint32_t>(buffer_.size() - sizeof header);
  std::memcpy(buffer_.data(), &header, sizeof header);
  header.crc = crc32(buffer_.data() + 8, buffer_.size() - 8);
  std::memcpy(buffer_.data(), &header, sizeof header);
  buffer_.resize((buffer_.size() + 7) / 8 * 8);

  size_t done = 0;
  while (done < buffer_.size()) {
    const ssize_t wrote =
        ::pwrite(file_, buffer_.data() + done, buffer_.size() - done, static_cast<off_t>(bytes_ + done));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      Error error = io_error_errno("cannot write " + path_.string());
      [[maybe_unused]] const int ignored = ::ftruncate(file_, static_cast<off_t>(bytes_));
      return error;
    }
    done += static_cast<size_t>(wrote);
  }
  bytes_ += buffer_.size();
  return {};
}

Result<void> SpoolFile::sync() const {
  if (::fdatasync(file_) != 0) return io_error_errno("cannot sync " + path_.string());
  return {};
}

void SpoolFile::detach_from_file() {
  ::mmap(header_, kHeaderBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  ::close(file_);
  file_ = -1;
}

}  // namespace strobe::record
