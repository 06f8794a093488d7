#include "sensors/mcap_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace strobe::sensors {

Result<McapFile> McapFile::open(const std::filesystem::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return not_found(path.string() + ": no such file");
    return io_error_errno(path.string());
  }
  struct stat facts {};
  McapFile file;
  if (::fstat(fd, &facts) != 0 || !S_ISREG(facts.st_mode)) {
    ::close(fd);
    return io_error(path.string() + ": is no file, expected an MCAP file");
  }
  if (facts.st_size > 0) {
    const auto size = static_cast<size_t>(facts.st_size);
    void* mapped = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd, 0);
    if (mapped == MAP_FAILED) {
      auto error = io_error_errno(path.string());
      ::close(fd);
      return error;
    }
    file.bytes_ = {static_cast<const uint8_t*>(mapped), size};
  }
  ::close(fd);
  return file;
}

McapFile& McapFile::operator=(McapFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

McapFile::~McapFile() {
  if (!bytes_.empty()) ::munmap(const_cast<uint8_t*>(bytes_.data()), bytes_.size());
}

void populate(ByteView part) {
#ifdef MADV_POPULATE_READ
  constexpr uintptr_t kPage = 4096;
  const uintptr_t first = reinterpret_cast<uintptr_t>(part.data()) & ~(kPage - 1);
  const uintptr_t end = reinterpret_cast<uintptr_t>(part.data()) + part.size();
  // Only a hint: where the kernel does not know it, the pages come by faults.
  ::madvise(reinterpret_cast<void*>(first), end - first, MADV_POPULATE_READ);
#else
  (void)part;
#endif
}

}  // namespace strobe::sensors
