#include "collect/cpu_time.h"

#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "support/test_data.h"

namespace strobe::collect {
namespace {

constexpr int64_t kTick = 10'000'000;

void burn(std::chrono::milliseconds time) {
  const int64_t end = process_cpu_ns() + std::chrono::nanoseconds(time).count();
  while (process_cpu_ns() < end) {
  }
}

TEST(CpuTime, OfTheProcessCountsEveryThread) {
  const int64_t before = process_cpu_ns();
  std::thread other([] { burn(std::chrono::milliseconds(30)); });
  other.join();
  EXPECT_GE(process_cpu_ns() - before, 30'000'000);
  const int64_t idle = process_cpu_ns();
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  EXPECT_LT(process_cpu_ns() - idle, 40'000'000);
}

TEST(CpuTime, OfTheCpusIsReadFromTheirLines) {
  const test::ScratchFolder root;
  std::filesystem::create_directories(root / "proc");
  std::ofstream(root / "proc" / "stat") << "cpu  111 0 0 0 0 0 0 0 0 0\n"
                                           "cpu0 100 20 3 5000 60 7 8 9 10 11\n"
                                           "cpu1 1 1 1 1 1 1 1 1 1 1\n"
                                           "cpu10 1000 0 0 0 0 0 0 2 0 0\n"
                                           "intr 12345 1 2 3 4 5 6 7 8 9\n";
  const auto one = cpu_use_of_tree(root.path(), {0});
  ASSERT_TRUE(one);
  EXPECT_EQ(one->busy_ns, (100 + 20 + 3 + 7 + 8) * kTick);
  EXPECT_EQ(one->stolen_ns, 9 * kTick);
  const auto two = cpu_use_of_tree(root.path(), {0, 10});
  EXPECT_EQ(two->busy_ns, (138 + 1000) * kTick);
  EXPECT_EQ(two->stolen_ns, 11 * kTick);
  EXPECT_FALSE(cpu_use_of_tree(root.path(), {7}));
  EXPECT_FALSE(cpu_use_of_tree(root / "nowhere", {0}));
}

TEST(CpuTime, OfTheCpusGrowsAtLeastAsThisProcessWorks) {
  const auto before = cpu_use();
  if (!before) GTEST_SKIP() << "this machine does not tell its CPUs' time";
  burn(std::chrono::milliseconds(200));
  const auto after = cpu_use();
  ASSERT_TRUE(after);
  EXPECT_GE(after->busy_ns + after->stolen_ns - before->busy_ns - before->stolen_ns, 150'000'000);
}

}  // namespace
}  // namespace strobe::collect
