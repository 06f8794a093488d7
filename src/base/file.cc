#include "base/file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

namespace strobe {

namespace fs = std::filesystem;

namespace {
// Unique within the machine for as long as the process lives.
fs::path temporary_name(const fs::path& target) {
  static std::atomic<int> counter{0};
  fs::path name = target;
  name += ".part-" + std::to_string(::getpid()) + "-" + std::to_string(counter.fetch_add(1));
  return name;
}
}  // namespace

Result<std::string> read_file(const fs::path& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    if (errno == ENOENT) return not_found(path.string() + ": no such file");
    return io_error_errno(path.string());
  }
  std::string text;
  struct stat facts {};
  if (::fstat(fd, &facts) == 0 && facts.st_size > 0) text.reserve(static_cast<size_t>(facts.st_size));
  char buffer[1 << 16];
  for (;;) {
    const ssize_t count = ::read(fd, buffer, sizeof buffer);
    if (count < 0) {
      if (errno == EINTR) continue;
      auto error = io_error_errno(path.string());
      ::close(fd);
      return error;
    }
    if (count == 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  ::close(fd);
  return text;
}

Result<void> check_replaceable(const fs::path& path) {
  if (path.empty()) return usage_error("the name of the output is empty");
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0 || S_ISREG(facts.st_mode)) return {};
  return io_error(path.string() + (S_ISDIR(facts.st_mode) ? ": is a folder" : ": is a device or a pipe") +
                  ", expected the name of a file");
}

Result<FolderLock> FolderLock::take(const fs::path& folder) {
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return io_error_errno(folder.string());
  if (::flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(fd);
    return io_error(folder.string() + ": another run is writing into this folder; wait for it or give another one");
  }
  return FolderLock(fd);
}

FolderLock::~FolderLock() {
  if (fd_ >= 0) ::close(fd_);
}

Result<void> write_file(const fs::path& path, std::string_view text) {
  STROBE_TRY(check_replaceable(path));
  const fs::path temporary = temporary_name(path);
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (fd < 0) return io_error_errno(path.string());
  auto fail = [&]() -> Error {
    auto error = io_error_errno(path.string());
    ::close(fd);
    ::unlink(temporary.c_str());
    return error;
  };
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0) {
      if (errno == EINTR) continue;
      return fail();
    }
    text.remove_prefix(static_cast<size_t>(count));
  }
  if (::close(fd) != 0 || ::rename(temporary.c_str(), path.c_str()) != 0) {
    auto error = io_error_errno(path.string());
    ::unlink(temporary.c_str());
    return error;
  }
  return {};
}

Result<void> make_writable_folder(const fs::path& path) {
  std::error_code code;
  fs::create_directories(path, code);
  if (code) return io_error(path.string() + ": cannot make this folder: " + code.message());
  const fs::path probe = temporary_name(path / "write-test");
  const int fd = ::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (fd < 0) return io_error(path.string() + ": cannot write into this folder: " + std::strerror(errno));
  ::close(fd);
  ::unlink(probe.c_str());
  return {};
}

OutputFolder::OutputFolder(std::vector<fs::path> made) : made_(std::move(made)), pid_(::getpid()) {}

Result<OutputFolder> OutputFolder::make(const fs::path& path) {
  std::vector<fs::path> missing;
  std::error_code ignored;
  fs::path one = fs::absolute(path, ignored);
  if (!one.has_filename()) one = one.parent_path();  // "out/"
  for (; one.has_relative_path() && !fs::exists(one, ignored); one = one.parent_path()) missing.push_back(one);
  OutputFolder folder(std::move(missing));
  STROBE_TRY(make_writable_folder(path));
  return folder;
}

OutputFolder::~OutputFolder() {
  if (::getpid() != pid_) return;
  for (const fs::path& one : made_)
    if (::rmdir(one.c_str()) != 0) return;
}

}  // namespace strobe
