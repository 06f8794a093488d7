#include "exporters/byte_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "trace/new_file.h"

namespace strobe::exporters {

ByteSink::~ByteSink() {
  if (zipped_ != nullptr) gzclose(zipped_);
  if (fd_ >= 0) ::close(fd_);
}

Result<void> ByteSink::open(const std::filesystem::path& path, bool gzip) {
  fd_ = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd_ < 0) return io_error(std::strerror(errno));
  if (!gzip) return {};
  // The fastest level: traces repeat themselves so much that the next ones win little for twice the time.
  zipped_ = gzdopen(fd_, "wb1");
  if (zipped_ == nullptr) return io_error("not enough memory to compress");
  fd_ = -1;
  constexpr unsigned kZipBuffer = 1U << 18;
  gzbuffer(zipped_, kZipBuffer);
  return {};
}

void ByteSink::flush() {
  std::string_view left = buffer_;
  while (!left.empty() && good()) {
    errno = 0;
    const size_t part = std::min(left.size(), kBlock);
    const ssize_t count = zipped_ != nullptr ? gzwrite(zipped_, left.data(), static_cast<unsigned>(part))
                                             : ::write(fd_, left.data(), part);
    if (count > 0) {
      left.remove_prefix(static_cast<size_t>(count));
    } else if (errno != EINTR) {
      failure_ = errno != 0 ? std::strerror(errno) : "write failed";
    }
  }
  buffer_.clear();
}

Result<void> ByteSink::close() {
  flush();
  errno = 0;
  bool closed = true;
  if (zipped_ != nullptr) closed = gzclose(std::exchange(zipped_, nullptr)) == Z_OK;
  if (fd_ >= 0) closed = ::close(std::exchange(fd_, -1)) == 0;
  if (!closed && good()) failure_ = errno != 0 ? std::strerror(errno) : "write failed";
  if (!good()) return io_error(failure_);
  return {};
}

Result<void> write_whole_file(const std::filesystem::path& path, bool gzip,
                              const std::function<void(ByteSink& sink)>& write) {
  return trace::write_new_file(path, [&](const std::filesystem::path& temporary) -> Result<void> {
    ByteSink sink;
    STROBE_TRY(sink.open(temporary, gzip));
    write(sink);
    return sink.close();
  });
}

}  // namespace strobe::exporters
