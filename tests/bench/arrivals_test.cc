#include "strobe/bench/arrivals.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

namespace strobe::bench {
namespace {

TEST(Arrivals, ConstantOnesAreEvenlySpaced) {
  auto arrivals = Arrivals::parse("constant:20");
  ASSERT_TRUE(arrivals);
  EXPECT_DOUBLE_EQ(*arrivals->time_of(0), 0);
  EXPECT_DOUBLE_EQ(*arrivals->time_of(7), 0.35);
  EXPECT_EQ(arrivals->spec(), "constant:20");
}

TEST(Arrivals, PoissonGapsAreExponential) {
  Arrivals arrivals = Arrivals::poisson(50, 3);
  constexpr int64_t kCount = 20'000;
  double sum = *arrivals.time_of(0), squares = sum * sum;
  for (int64_t i = 1; i < kCount; ++i) {
    const double gap = *arrivals.time_of(i) - *arrivals.time_of(i - 1);
    EXPECT_GE(gap, 0);
    sum += gap;
    squares += gap * gap;
  }
  const double mean = sum / kCount;
  const double deviation = std::sqrt(squares / kCount - mean * mean);
  // Both are 1 / rate; their standard errors here are 0.7 % and 1 %.
  EXPECT_NEAR(mean, 0.02, 0.0006);
  EXPECT_NEAR(deviation, 0.02, 0.0008);
}

TEST(Arrivals, TheSeedDecides) {
  EXPECT_EQ(*Arrivals::parse("poisson:30:7")->time_of(99), *Arrivals::poisson(30, 7).time_of(99));
  EXPECT_NE(*Arrivals::poisson(30, 7).time_of(99), *Arrivals::poisson(30, 8).time_of(99));
  EXPECT_EQ(*Arrivals::parse("poisson:30")->time_of(99), *Arrivals::poisson(30, 1).time_of(99));
}

class TraceOfArrivals : public testing::Test {
 protected:
  ~TraceOfArrivals() override { std::filesystem::remove(path_); }
  Result<Arrivals> read(const std::string& text) {
    std::ofstream(path_) << text;
    return Arrivals::parse("trace:" + path_.string());
  }
  std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("strobe-arrivals-" + std::to_string(::getpid()) + ".csv");
};

TEST_F(TraceOfArrivals, TheFirstColumnIsTheTime) {
  auto arrivals = read("time_s,camera\r\n0.5,left\r\n0.5,right\r\n\r\n1.25,left\r\n");
  ASSERT_TRUE(arrivals) << arrivals.error().to_string();
  EXPECT_DOUBLE_EQ(*arrivals->time_of(2), 1.25);
  EXPECT_FALSE(arrivals->time_of(3));
}

TEST_F(TraceOfArrivals, WrongRowsAreNamed) {
  const auto says = [this](const std::string& text, const std::string& words) {
    const auto result = read(text);
    ASSERT_FALSE(result) << text;
    EXPECT_NE(result.error().to_string().find(words), std::string::npos) << result.error().to_string();
  };
  says("", "no arrival times");
  says("time\n", "no arrival times");
  says("1\n0.5\n", "line 2");
  says("0\n-1\n", "line 2");
  says("0\nsoon\n", "line 2");
  says("0\nnan\n", "line 2");
}

TEST(Arrivals, WrongWordsAreRefused) {
  for (const char* spec : {"", "poisson", "poisson:", "poisson:0", "poisson:-3", "poisson:3:x", "constant:3:1",
                           "constant:inf", "often:3", "trace:", "trace:/does/not/exist.csv"})
    EXPECT_FALSE(Arrivals::parse(spec)) << spec;
}

TEST(Arrivals, NextWaitsForWhatIsDueAndNotForWhatIsOverdue) {
  Arrivals arrivals = Arrivals::times({0, 0.02, 0.02});
  const auto first = arrivals.next(), second = arrivals.next(), third = arrivals.next();
  EXPECT_FALSE(arrivals.next());
  EXPECT_EQ(second->intended_ns - first->intended_ns, 20'000'000);
  EXPECT_GE(second->started_ns, second->intended_ns);
  EXPECT_EQ(third->intended_ns, second->intended_ns);
  EXPECT_EQ(third->index, 2);
}

}  // namespace
}  // namespace strobe::bench
