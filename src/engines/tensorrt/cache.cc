#include "cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <thread>

#include "base/crc32.h"
#include "base/sha256.h"

namespace strobe::engines::tensorrt_plugin {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSuffix = ".strobe-engine", kPart = ".part-";
constexpr int64_t kUsualLimitMb = 8192;
constexpr mode_t kOthersWrite = S_IWGRP | S_IWOTH;

// A descriptor that is closed with its scope.
struct File {
  explicit File(int opened) : fd(opened) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd >= 0) ::close(fd);
  }
  int fd;
};

const char* set_variable(const char* name) {
  const char* text = std::getenv(name);
  return text != nullptr && *text != 0 ? text : nullptr;
}

Result<fs::path> chosen_folder() {
  if (const char* named = set_variable("STROBE_TENSORRT_CACHE")) return fs::path(named);
  // By XDG's rules a relative path there is none.
  if (const char* caches = set_variable("XDG_CACHE_HOME"); caches != nullptr && fs::path(caches).is_absolute())
    return fs::path(caches) / "strobe/tensorrt";
  if (const char* home = set_variable("HOME"); home != nullptr && fs::path(home).is_absolute())
    return fs::path(home) / ".cache/strobe/tensorrt";
  return io_error("neither XDG_CACHE_HOME nor HOME names a folder; STROBE_TENSORRT_CACHE does");
}

Result<int64_t> chosen_limit() {
  const char* text = set_variable("STROBE_TENSORRT_CACHE_MB");
  if (text == nullptr) return kUsualLimitMb * 1'000'000;
  int64_t value = 0;
  const char* const end = text + std::strlen(text);
  const auto [stopped, failed] = std::from_chars(text, end, value);
  constexpr int64_t kMost = 1'000'000'000;
  if (failed != std::errc() || stopped != end || value < 1 || value > kMost)
    return usage_error(
        fmt::format("STROBE_TENSORRT_CACHE_MB={}: expected a number of megabytes, 1 to {}", text, kMost));
  return value * 1'000'000;
}

// What is missing of it is made for the user alone.
void make_folders(const fs::path& path) {
  fs::path so_far;
  for (const fs::path& part : path) {
    so_far /= part;
    ::mkdir(so_far.c_str(), S_IRWXU);  // whatever went wrong, opening the folder says
  }
}

Result<void> check_owner(const struct stat& facts, const std::string& path) {
  if (facts.st_uid != ::geteuid())
    return io_error(fmt::format("{}: belongs to another user ({}), and what lies there is run", path, facts.st_uid));
  if ((facts.st_mode & kOthersWrite) != 0)
    return io_error(
        fmt::format("{}: others may write to it (mode {:o}), and what lies there is run", path, facts.st_mode & 0777));
  return {};
}

Result<std::string> read_all(int fd, size_t size, const std::string& path) {
  std::string text(size, '\0');
  for (size_t got = 0; got < size;) {
    const ssize_t count = ::read(fd, text.data() + got, size - got);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error_errno(path);
    if (count == 0) return bad_data(path + ": ends early");
    got += static_cast<size_t>(count);
  }
  return text;
}

Result<void> write_all(int fd, std::string_view text, const std::string& path) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return io_error_errno(path);
    text.remove_prefix(static_cast<size_t>(count));
  }
  return {};
}

// A file is the engine, then fields "<word> <bytes>\n<value>\n", then one line of known length with the sizes of both
// and the CRC-32 of all before it: a file that was cut short or changed never reaches TensorRT, which trusts its input.
constexpr std::string_view kMagic = "strobe tensorrt engine 1";
std::string last_line(size_t engine, size_t fields, uint32_t crc) {
  return fmt::format("{} {:016x} {:016x} {:08x}\n", kMagic, engine, fields, crc);
}

void add_field(std::string& fields, std::string_view word, std::string_view value) {
  fields += fmt::format("{} {}\n{}\n", word, value.size(), value);
}

std::string fields_of(const std::string& description, const CachedEngine& built) {
  std::string fields;
  add_field(fields, "description", description);
  for (const std::string& name : built.inputs) add_field(fields, "input", name);
  for (const std::string& name : built.outputs) add_field(fields, "output", name);
  for (const auto& [key, value] : built.facts) add_field(fields, "fact." + key, value);
  return fields;
}

// False: these are no such fields.
bool read_fields(std::string_view text, std::string& description, CachedEngine& into) {
  while (!text.empty()) {
    const size_t line = text.find('\n'), blank = text.find(' ');
    if (line == std::string_view::npos || blank >= line) return false;
    const std::string_view word = text.substr(0, blank);
    size_t size = 0;
    const auto [end, failed] = std::from_chars(text.data() + blank + 1, text.data() + line, size);
    if (failed != std::errc() || end != text.data() + line) return false;
    text.remove_prefix(line + 1);
    if (size >= text.size() || text[size] != '\n') return false;
    const std::string value(text.substr(0, size));
    text.remove_prefix(size + 1);
    constexpr std::string_view kFact = "fact.";
    if (word == "description") description = value;
    if (word == "input") into.inputs.push_back(value);
    if (word == "output") into.outputs.push_back(value);
    if (word.starts_with(kFact)) into.facts.emplace_back(word.substr(kFact.size()), value);
  }
  return true;
}

Result<CachedEngine> parse(std::string text, const std::string& expected) {
  const size_t last = last_line(0, 0, 0).size();
  const auto damaged = [] { return bad_data("is damaged or none of Strobe's"); };
  if (text.size() < last) return damaged();
  const std::string_view body = std::string_view(text).substr(0, text.size() - last);
  const std::string_view line = std::string_view(text).substr(body.size());
  size_t sizes[2] = {};
  for (size_t i = 0; i < 2; ++i) {
    const char* const begin = line.data() + kMagic.size() + 1 + 17 * i;
    std::from_chars(begin, begin + 16, sizes[i], 16);
  }
  if (sizes[0] > body.size() || sizes[1] != body.size() - sizes[0] ||
      line != last_line(sizes[0], sizes[1], crc32(body.data(), body.size())))
    return damaged();
  CachedEngine found;
  std::string description;
  if (!read_fields(body.substr(sizes[0]), description, found)) return damaged();
  if (description != expected) return bad_data("holds another engine than its name says");
  text.resize(sizes[0]);
  found.engine = std::move(text);
  return found;
}

}  // namespace

Result<std::unique_ptr<EngineCache>> EngineCache::open() {
  if (const char* named = set_variable("STROBE_TENSORRT_CACHE"); named != nullptr && std::string_view(named) == "off")
    return std::unique_ptr<EngineCache>();
  STROBE_ASSIGN(const int64_t limit, chosen_limit());
  STROBE_ASSIGN(const fs::path folder, chosen_folder());
  make_folders(folder);
  const int fd = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return io_error_errno(folder.string());
  std::unique_ptr<EngineCache> cache(new EngineCache(fd, folder, limit));
  struct stat facts {};
  if (::fstat(fd, &facts) != 0) return io_error_errno(folder.string());
  STROBE_TRY(check_owner(facts, folder.string()));
  return cache;
}

EngineCache::~EngineCache() {
  ::close(folder_);
}

fs::path EngineCache::path_of(const std::string& description) const {
  return path_ / (sha256(description) + std::string(kSuffix));
}

Result<std::optional<CachedEngine>> EngineCache::find(const std::string& description) const {
  const fs::path path = path_of(description);
  const File file(::openat(folder_, path.filename().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.fd < 0 && errno == ENOENT) return std::optional<CachedEngine>();
  struct stat facts {};
  if (file.fd < 0 || ::fstat(file.fd, &facts) != 0) return io_error_errno(path.string());
  if (!S_ISREG(facts.st_mode)) return io_error(path.string() + ": is no file");
  STROBE_TRY(check_owner(facts, path.string()));
  STROBE_ASSIGN(std::string text, read_all(file.fd, static_cast<size_t>(facts.st_size), path.string()));
  auto found = parse(std::move(text), description);
  if (!found) return std::move(found).error().at(path.string());
  ::futimens(file.fd, nullptr);  // used now
  return std::optional<CachedEngine>(std::move(*found));
}

Result<void> EngineCache::keep(const std::string& description, const CachedEngine& built) const {
  const fs::path path = path_of(description);
  const std::string name = path.filename();
  const std::string fields = fields_of(description, built);
  const std::string last =
      last_line(built.engine.size(), fields.size(),
                crc32(fields.data(), fields.size(), crc32(built.engine.data(), built.engine.size())));
  if (static_cast<int64_t>(built.engine.size() + fields.size() + last.size()) > limit_bytes_)
    return io_error(fmt::format("{}: the engine has {:.1f} MB, and the cache may take {} (STROBE_TENSORRT_CACHE_MB)",
                                path_.string(), static_cast<double>(built.engine.size()) / 1e6,
                                limit_bytes_ / 1'000'000));
  static std::atomic<int> counter{0};
  const std::string part = fmt::format("{}{}{}-{}", name, kPart, ::getpid(), counter.fetch_add(1));
  // A namesake is what a process that was killed left behind; processes in other containers may have the same number.
  const File file(::openat(folder_, part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.fd < 0) return io_error_errno(path.string());
  auto written = write_all(file.fd, built.engine, path.string());
  if (written) written = write_all(file.fd, fields, path.string());
  if (written) written = write_all(file.fd, last, path.string());
  if (written && ::renameat(folder_, part.c_str(), folder_, name.c_str()) != 0) written = io_error_errno(path.string());
  if (!written) {
    ::unlinkat(folder_, part.c_str(), 0);
    return written;
  }
  make_place(name);
  return {};
}

void EngineCache::make_place(const std::string& beside) const {
  struct Entry {
    std::string name;
    int64_t bytes;
    timespec used;
  };
  constexpr time_t kAbandoned = 24 * 3600;  // s
  std::vector<Entry> entries;
  int64_t total = 0;
  DIR* const folder = ::fdopendir(::openat(folder_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder == nullptr) return;
  while (const dirent* one = ::readdir(folder)) {
    const std::string name = one->d_name;
    struct stat facts {};
    if (name.find(kSuffix) == std::string::npos || ::fstatat(folder_, name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(facts.st_mode))
      continue;
    if (!name.ends_with(kSuffix)) {
      // Left behind by a process that was killed, or being written.
      if (name.find(kPart) != std::string::npos && facts.st_mtim.tv_sec + kAbandoned < std::time(nullptr))
        ::unlinkat(folder_, name.c_str(), 0);
      continue;
    }
    total += facts.st_size;
    if (name != beside) entries.push_back({name, facts.st_size, facts.st_mtim});
  }
  ::closedir(folder);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (size_t i = 0; i < entries.size() && total > limit_bytes_; ++i) {
    ::unlinkat(folder_, entries[i].name.c_str(), 0);
    total -= entries[i].bytes;
  }
}

EngineCache::Turn::Turn(const EngineCache& cache)
    : fd_(::openat(cache.folder_, "lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600)) {
  constexpr auto kLongest = std::chrono::minutes(10);
  constexpr auto kLook = std::chrono::milliseconds(20);
  const auto end = std::chrono::steady_clock::now() + kLongest;
  while (fd_ >= 0 && ::flock(fd_, LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    if (errno != EWOULDBLOCK || std::chrono::steady_clock::now() > end) return;  // a file system without locks
    std::this_thread::sleep_for(kLook);
  }
}

EngineCache::Turn::~Turn() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace strobe::engines::tensorrt_plugin
