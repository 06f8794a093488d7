#include "tenants/calibration.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <thread>

#include "tenants/spin_task.h"

namespace strobe::tenants {
namespace {

using testing::HasSubstr;

TEST(CalibrationTest, NeedsTwoCores) {
  CalibrationOptions options;
  options.cores = {0};
  const auto made = calibrate(options);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(made.error().message(), HasSubstr("two cores"));
}

TEST(CalibrationTest, MeasuresEveryPair) {
  if (std::thread::hardware_concurrency() < 2) GTEST_SKIP() << "one core";
  CalibrationOptions options;
  options.cores = {0, 1};
  options.seconds_each = 0.02;
  options.rounds = 1;
  options.run_queues = {.cores = {}, .wake_ups = 20, .balances = 3, .turns = 10, .tenants_s = 1.5};
  const auto made = calibrate(options);
  if (!made) GTEST_SKIP() << made.error().to_string();
  ASSERT_EQ(made->a.size(), 2u);
  for (const auto& row : made->a)
    for (const double value : row) EXPECT_GE(value, 0);
  EXPECT_GT(made->seconds, 0);
  const RunQueueProbe& queues = made->run_queues;
  for (const auto& times : {queues.wake_up_ms, queues.balance_ms, queues.turn_ms}) {
    ASSERT_EQ(times.size(), 21u);
    EXPECT_GE(times.front(), 0);
    EXPECT_TRUE(std::is_sorted(times.begin(), times.end()));
  }
  const auto json = nlohmann::json::parse(calibration_json(*made));
  ASSERT_TRUE(queues.hand_over_stays);
  for (const auto& [key, share] :
       {std::pair("hand_over_stays", queues.hand_over_stays), std::pair("wake_up_stays", queues.wake_up_stays)}) {
    EXPECT_EQ(json.contains(key), share.has_value());
    if (!share) continue;
    EXPECT_GE(*share, 0);
    EXPECT_LE(*share, 1);
    EXPECT_EQ(json[key], *share);
  }
  EXPECT_EQ(json["wake_up_ms"].size(), 21u);
  EXPECT_EQ(json["turn_ms"].size(), 21u);
  EXPECT_EQ(json["balance_ms"].size(), 21u);
}

TEST(CalibrationTest, AnUnknownCoreIsAnError) {
  CalibrationOptions options;
  options.cores = {0, 4000};
  options.seconds_each = 0.01;
  const auto made = calibrate(options);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message(), HasSubstr("4000"));
}

TEST(CalibrationTest, ClassesOfTracesTakeTheMeasuredOnes) {
  const PairCalibration calibration{.classes = {"compute", "bandwidth"}, .a = {{0.1, 0.2}, {0.3, 0.4}}, .seconds = 1};
  const auto json = nlohmann::json::parse(calibration_json(calibration));
  EXPECT_EQ(json["classes"][2], "small");
  EXPECT_EQ(json["a"][2][4], 0.2);  // small beside a copy: compute beside bandwidth
  EXPECT_EQ(json["a"][4][3], 0.3);  // a copy beside cpu
  for (const auto& row : json["a"]) EXPECT_EQ(row.size(), json["classes"].size());
}

TEST(SpinTest, WorkIsReadAndRefused) {
  const auto work = parse_spin("stream:12ms/6");
  ASSERT_TRUE(work);
  EXPECT_EQ(work->kind, SpinWork::Kind::kBandwidth);
  EXPECT_DOUBLE_EQ(work->seconds, 0.012);
  EXPECT_EQ(work->pieces, 6);
  for (const char* wrong : {"spin:", "spin:5", "spin:5ms/", "spin:5ms/0", "spin:5ms/x", "spin:2min", "spin:-1ms"})
    EXPECT_FALSE(parse_spin(wrong)) << wrong;
}

// More rounds are more work: the compiler has not taken it away.
TEST(SpinTest, WorkIsDone) {
  for (const auto kind : {SpinWork::Kind::kCompute, SpinWork::Kind::kBandwidth}) {
    EXPECT_LT(rounds_per_second(kind), 1e8);
    EXPECT_GT(rounds_per_second(kind), 1e3);
  }
}

}  // namespace
}  // namespace strobe::tenants
