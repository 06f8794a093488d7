// The few files of /proc that are read many times a second, without allocation.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace strobe::collect {

// A file that stays open while there is room for it: reading again is one system call.
class ProcFile {
 public:
  ProcFile() = default;
  explicit ProcFile(std::string path) : path_(std::move(path)) {}
  ProcFile(const ProcFile&) = delete;
  ProcFile& operator=(const ProcFile&) = delete;
  ProcFile(ProcFile&& other) noexcept;
  ProcFile& operator=(ProcFile&& other) noexcept;
  ~ProcFile();
  // The content, ended by 0; null when it is gone. Valid until the thread's next read of any file.
  const char* read();

 private:
  std::string path_;
  int file_ = -1;
};

struct ProcessStat {
  std::string name;
  char state = 0;  // 'Z': dead, not yet waited for
  int32_t parent = 0;
  int64_t minor_faults = 0, major_faults = 0, cpu_ticks = 0, start_ticks = 0, rss_pages = 0;
};
// Of /proc/PID/stat.
bool parse_stat(const char* text, ProcessStat& stat);

struct SchedStat {
  int64_t cpu_ns = 0, wait_ns = 0;
};
bool parse_schedstat(const char* text, SchedStat& stat);

// "Key: number" of /proc/PID/status; -1 when it is not there.
int64_t status_number(const char* text, const char* key);

// Names in a folder that are numbers.
void numbers_in(const char* folder, std::vector<int32_t>& numbers);

}  // namespace strobe::collect
