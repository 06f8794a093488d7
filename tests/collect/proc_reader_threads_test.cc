#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <string>
#include <thread>
#include <vector>

#include "collect/proc_reader.h"

namespace strobe::collect {
namespace {

// Each thread reads of itself; what another one reads at the same time is not in its text.
TEST(ProcFileTest, ThreadsReadAtTheSameTime) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([] {
      const auto own = static_cast<long>(::syscall(SYS_gettid));
      ProcFile stat("/proc/self/task/" + std::to_string(own) + "/stat");
      for (int i = 0; i < 3000; ++i) {
        const char* text = stat.read();
        ASSERT_NE(text, nullptr);
        ASSERT_EQ(std::stol(text), own);
      }
    });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace strobe::collect
