#pragma once

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace strobe::record {

// Some programs close every file that they did not open, and then open their own: a number of ours would become one of
// theirs, and the recorder would write into it. New files get the lowest free number, so while one of these lives the
// recorder's files get numbers that programs hardly reach.
class HighFileNumbers {
 public:
  HighFileNumbers() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    const int wanted = static_cast<int>(std::min<rlim_t>(kWanted, limit.rlim_cur / 2));
    const int first = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (first < 0) return;
    taken_.push_back(first);
    while (taken_.back() < wanted - 1) {
      const int next = ::fcntl(first, F_DUPFD_CLOEXEC, 0);
      if (next < 0) break;
      taken_.push_back(next);
    }
  }
  HighFileNumbers(const HighFileNumbers&) = delete;
  HighFileNumbers& operator=(const HighFileNumbers&) = delete;
  ~HighFileNumbers() {
    for (const int file : taken_) ::close(file);
  }

 private:
  static constexpr rlim_t kWanted = 900;
  std::vector<int> taken_;
};

}  // namespace strobe::record
