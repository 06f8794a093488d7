#include "trace/new_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/file.h"

namespace strobe::trace {

namespace fs = std::filesystem;

namespace {

// Created here and now, so that it is ours to remove.
Result<fs::path> reserve_temporary(const fs::path& target) {
  static std::atomic<int> counter{0};
  fs::path name = target;
  name += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
  const int fd = ::open(name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return io_error(std::strerror(errno));
  ::close(fd);
  return name;
}

}  // namespace

Result<void> write_new_file(const fs::path& path, const std::function<Result<void>(const fs::path& temporary)>& write) {
  STROBE_TRY(check_replaceable(path));
  auto temporary = reserve_temporary(path);
  if (!temporary) return std::move(temporary.error().at(path.string()));
  Result<void> written = write(*temporary);
  if (written && ::rename(temporary->c_str(), path.c_str()) != 0) written = io_error(std::strerror(errno));
  if (!written) {
    ::unlink(temporary->c_str());
    return std::move(written.error().at(path.string()));
  }
  return {};
}

}  // namespace strobe::trace
