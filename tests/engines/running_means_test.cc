#include "engines/running_means.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace strobe::engines {
namespace {

// A counter as OpenVINO keeps it.
struct Counter {
  int64_t sum_us = 0, runs = 0;
  int64_t mean_us() const { return sum_us / runs; }
  void add(int64_t us) {
    sum_us += us;
    ++runs;
  }
};

TEST(RunningMeans, GiveBackSingleRuns) {
  // The first run is cold, and the seventh was interrupted.
  const std::vector<int64_t> runs = {30000, 210, 190, 205, 200, 195, 9000, 201, 199, 203, 188, 207};
  RunningMeans means(1);
  Counter counter;
  double told = 0, warm = 0;
  for (size_t k = 0; k < runs.size(); ++k) {
    counter.add(runs[k]);
    means.next_run();
    const auto ns = static_cast<double>(means.last_run_ns(0, counter.mean_us()));
    EXPECT_NEAR(ns, 1e3 * static_cast<double>(runs[k]), 1e3 * static_cast<double>(k + 1)) << "run " << k + 1;
    told += ns;
    if (k >= 7) warm += ns;
  }
  const auto count = static_cast<double>(runs.size());
  EXPECT_NEAR(told / count, 1e3 * static_cast<double>(counter.sum_us) / count, 1e3);
  EXPECT_NEAR(warm / 5, (201 + 199 + 203 + 188 + 207) * 1e3 / 5, 2.5e3) << "untouched by what was before";
}

TEST(RunningMeans, AShortKernelIsNeverNegativeAndKeepsItsSum) {
  RunningMeans means(2);
  Counter counter;
  double told = 0;
  for (int k = 0; k < 100; ++k) {
    counter.add(k % 3);  // 0, 1, 2 us: below what the counter can show of a single run
    means.next_run();
    const int64_t ns = means.last_run_ns(1, counter.mean_us());
    EXPECT_GE(ns, 1);
    told += static_cast<double>(ns);
  }
  EXPECT_NEAR(told / 100, 1000, 1000);
}

}  // namespace
}  // namespace strobe::engines
