#include "collect/proc_reader.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace strobe::collect {
namespace {

// Files that may stay open: half of what this process may have.
int open_allowed() {
  static const int allowed = [] {
    rlimit limit{};
    return ::getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY
               ? static_cast<int>(limit.rlim_cur / 2)
               : 512;
  }();
  return allowed;
}
std::atomic<int> open_now{0};

thread_local char buffer[8192];

}  // namespace

ProcFile::ProcFile(ProcFile&& other) noexcept : path_(std::move(other.path_)), file_(std::exchange(other.file_, -1)) {}

ProcFile& ProcFile::operator=(ProcFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(file_, other.file_);
  return *this;
}

ProcFile::~ProcFile() {
  if (file_ < 0) return;
  ::close(file_);
  --open_now;
}

const char* ProcFile::read() {
  int file = file_;
  if (file < 0) file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return nullptr;
  const ssize_t bytes = ::pread(file, buffer, sizeof buffer - 1, 0);
  if (file_ < 0) {
    if (bytes > 0 && open_now < open_allowed()) {
      file_ = file;
      ++open_now;
    } else {
      ::close(file);
    }
  }
  if (bytes <= 0) return nullptr;
  buffer[bytes] = 0;
  return buffer;
}

bool parse_stat(const char* text, ProcessStat& stat) {
  // The name stands in brackets and may hold any character, brackets too.
  const char* open = std::strchr(text, '(');
  const char* close = std::strrchr(text, ')');
  if (open == nullptr || close == nullptr || close < open || close[1] != ' ') return false;
  stat.name.assign(open + 1, close);
  stat.state = close[2];
  if (stat.state == 0 || close[3] == 0) return false;
  constexpr int kFields = 24;
  int64_t field[kFields + 1] = {};
  char* at = const_cast<char*>(close) + 3;
  for (int number = 4; number <= kFields; ++number) {
    char* next = nullptr;
    field[number] = static_cast<int64_t>(std::strtoll(at, &next, 10));
    if (next == at) return false;
    at = next;
  }
  stat.parent = static_cast<int32_t>(field[4]);
  stat.minor_faults = field[10];
  stat.major_faults = field[12];
  stat.cpu_ticks = field[14] + field[15];
  stat.start_ticks = field[22];
  stat.rss_pages = field[24];
  return true;
}

bool parse_schedstat(const char* text, SchedStat& stat) {
  char* next = nullptr;
  stat.cpu_ns = std::strtoll(text, &next, 10);
  if (next == text) return false;
  stat.wait_ns = std::strtoll(next, nullptr, 10);
  return true;
}

int64_t status_number(const char* text, const char* key) {
  const size_t length = std::strlen(key);
  for (const char* line = text; line != nullptr; line = std::strchr(line, '\n')) {
    if (*line == '\n') ++line;
    if (std::strncmp(line, key, length) == 0 && line[length] == ':')
      return std::strtoll(line + length + 1, nullptr, 10);
  }
  return -1;
}

void numbers_in(const char* folder, std::vector<int32_t>& numbers) {
  numbers.clear();
  DIR* dir = ::opendir(folder);
  if (dir == nullptr) return;
  while (const dirent* entry = ::readdir(dir)) {
    if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
      numbers.push_back(static_cast<int32_t>(std::strtol(entry->d_name, nullptr, 10)));
  }
  ::closedir(dir);
}

}  // namespace strobe::collect
