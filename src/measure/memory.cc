#include "measure/memory.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <string>

#include "collect/cgroup.h"
#include "collect/proc_reader.h"

namespace strobe::measure {

namespace {

constexpr int64_t kKib = 1024;

Result<int64_t> status_bytes(const char* text, const char* key) {
  const int64_t kib = text == nullptr ? -1 : collect::status_number(text, key);
  if (kib < 0) return unsupported(std::string("this kernel does not tell ") + key + " in /proc/self/status");
  return kib * kKib;
}

}  // namespace

Result<ResidentMemory> resident_memory() {
  collect::ProcFile file("/proc/self/status");
  const char* text = file.read();
  ResidentMemory memory;
  STROBE_ASSIGN(memory.now_bytes, status_bytes(text, "VmRSS"));
  STROBE_ASSIGN(memory.peak_bytes, status_bytes(text, "VmHWM"));
  return memory;
}

Result<void> reset_peak() {
  const int file = ::open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC);
  const bool written = file >= 0 && ::write(file, "5", 1) == 1;
  if (file >= 0) ::close(file);
  if (!written)
    return unsupported("the peak of memory cannot be reset here (/proc/self/clear_refs); latency can be measured");
  return {};
}

int64_t allocated_bytes() {
  const struct mallinfo2 info = ::mallinfo2();
  return static_cast<int64_t>(info.uordblks + info.hblkhd);
}

void release_free_memory() {
  ::malloc_trim(0);
}

Result<void> limit_growth(int64_t bytes) {
  collect::ProcFile file("/proc/self/status");
  STROBE_ASSIGN(const int64_t now, status_bytes(file.read(), "VmData"));
  rlimit limit{};
  if (::getrlimit(RLIMIT_DATA, &limit) != 0) return unsupported("this process cannot be limited in memory");
  const rlim_t wanted = static_cast<rlim_t>(now) + static_cast<rlim_t>(bytes);
  limit.rlim_cur = limit.rlim_max == RLIM_INFINITY ? wanted : std::min(wanted, limit.rlim_max);
  if (::setrlimit(RLIMIT_DATA, &limit) != 0) return unsupported("this process cannot be limited in memory");
  return {};
}

Result<int64_t> available_memory() {
  collect::ProcFile file("/proc/meminfo");
  const char* text = file.read();
  const int64_t kib = text == nullptr ? -1 : collect::status_number(text, "MemAvailable");
  if (kib < 0) return unsupported("this kernel does not tell MemAvailable in /proc/meminfo");
  int64_t bytes = kib * kKib;
  if (const auto limit = collect::cgroup_memory_limit("/")) bytes = std::min(bytes, *limit);
  return bytes;
}

bool tells_of_memory(std::string_view message) {
  std::string lower(message);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  static constexpr std::array kSigns = {"bad_alloc",          "allocate memory",     "out of memory",
                                        "not enough memory",  "insufficient memory", "failed to allocate",
                                        "could not allocate", "cannot allocate",     "can't allocate",
                                        "out_of_memory",      "alloc_failed",        "allocation_failed"};
  return std::any_of(kSigns.begin(), kSigns.end(),
                     [&](const char* sign) { return lower.find(sign) != std::string::npos; });
}

}  // namespace strobe::measure
