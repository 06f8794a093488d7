// The words of a change; what a change does is checked against the simulated device (tests/simulate).
#include "analyze/what_if_tenants.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tenant_maker.h"

namespace strobe::analyze {
namespace {

using test::TenantMaker;

TEST(WhatIfTenants, ReadsBothFormsOfASelection) {
  const auto scale = parse_tenant_scale("tenant=a,stage=infer:0.5");
  ASSERT_TRUE(scale);
  EXPECT_EQ(scale->what.text(), "tenant=a,stage=infer");
  EXPECT_EQ(scale->factor, 0.5);
  const auto old = parse_tenant_scale("stage:infer=2");
  ASSERT_TRUE(old);
  EXPECT_EQ(old->what.text(), "stage=infer");
  EXPECT_EQ(old->factor, 2);
  EXPECT_EQ(parse_tenant_scale("resource=copy:h2d:0")->what.resource, "copy:h2d");
  EXPECT_EQ(parse_tenant_value("--priority", "tenant=a:-2")->second, -2);
  for (const char* bad :
       {"", "infer", "stage=infer", "stage=infer:-1", "stage=infer:x", "where=a:1", "tenant=:1", "stage:infer"})
    EXPECT_EQ(parse_tenant_scale(bad).error().kind(), ErrorKind::kUsage) << bad;
  for (const char* bad : {"a:2", "tenant=a", "tenant=:2", "tenant=a:much"})
    EXPECT_FALSE(parse_tenant_value("--rate", bad)) << bad;
}

// Two frames of 100 us on a device that b holds for 300 us first.
trace::Timeline two_tenants() {
  TenantMaker maker("a,b");
  maker.timeline.facts["tenants.resource.device"] = "exclusive=1";
  maker.timeline.facts["tenant.a.priority"] = "1";
  const int32_t a = maker.lane(1), b = maker.lane(2);
  for (int64_t i = 0; i < 12; ++i) {
    const int64_t at = 1000 * i;
    maker.frame("b", b, i, at, at + 300);
    maker.stage("b", b, i, "infer", at, at + 300);
    maker.operation("conv", b, "device", "compute", at, at, at + 300);
    maker.frame("a", a, i, at + 100, at + 400);
    maker.stage("a", a, i, "infer", at + 100, at + 400);
    maker.operation("conv", a, "device", "compute", at + 100, at + 300, at + 400);
  }
  return maker.finish();
}

TEST(WhatIfTenants, ChangesByHand) {
  const trace::Timeline timeline = two_tenants();
  const auto p50 = [&](const TenantWhatIfOptions& options) {
    const auto answer = what_if_tenants(timeline, options);
    EXPECT_TRUE(answer) << answer.error().to_string();
    EXPECT_TRUE(answer->is_reliable);
    EXPECT_NEAR(answer->tenants[0].before.p50_ms, 0.3, 1e-9);
    EXPECT_NEAR(answer->tenants[0].no_interference.p50_ms, 0.1, 1e-9);
    return answer->tenants[0].after.p50_ms;
  };
  TenantWhatIfOptions faster;
  faster.scales.push_back(parse_tenant_scale("tenant=b:0.5").value());
  EXPECT_NEAR(p50(faster), 0.15, 1e-9);
  // Split equally: b has 50 of its 150 left when a comes, so a has half the device for 100 and all of it for 50.
  EXPECT_NEAR(what_if_tenants(timeline, faster)->tenants[0].equal_share.p50_ms, 0.15, 1e-9);
  TenantWhatIfOptions alone;
  alone.removed.push_back(parse_tenant_selector("tenant=b").value());
  EXPECT_NEAR(p50(alone), 0.1, 1e-9);
  TenantWhatIfOptions both;
  both.policy = ServePolicy::kConcurrent;  // of which nothing was measured
  EXPECT_NEAR(p50(both), 0.1, 1e-9);
  TenantWhatIfOptions rate;
  rate.rates.emplace_back("b", 10);  // one in a hundred of a's frames meets it
  EXPECT_NEAR(p50(rate), 0.1, 1e-9);
}

// Frames of a (300 us) and b (200 us) that come at the same instant, a being served first in two of three: a replay
// without a change serves them as they were.
TEST(WhatIfTenants, OfFramesThatComeTogetherTheSameOneGoesFirst) {
  TenantMaker maker("a,b");
  maker.timeline.facts["tenants.resource.device"] = "exclusive=1";
  const int32_t a = maker.lane(1), b = maker.lane(2);
  for (int64_t i = 0; i < 30; ++i) {
    const int64_t at = 1000 * i, b_waits = i % 3 == 0 ? 0 : 300, a_waits = i % 3 == 0 ? 200 : 0;
    maker.frame("a", a, i, at, at + a_waits + 310);
    maker.stage("a", a, i, "decode", at, at + 10);
    maker.stage("a", a, i, "infer", at + 10, at + a_waits + 310);
    maker.operation("conv", a, "device", "compute", at + 10, at + a_waits + 10, at + a_waits + 310);
    maker.frame("b", b, i, at, at + b_waits + 210);
    maker.stage("b", b, i, "decode", at, at + 10);
    maker.stage("b", b, i, "infer", at + 10, at + b_waits + 210);
    maker.operation("conv", b, "device", "compute", at + 10, at + b_waits + 10, at + b_waits + 210);
  }
  const trace::Timeline timeline = maker.finish();
  TenantWhatIfOptions faster;
  faster.scales.push_back(parse_tenant_scale("tenant=a,stage=infer:0.5").value());
  const auto answer = what_if_tenants(timeline, faster);
  ASSERT_TRUE(answer) << answer.error().to_string();
  EXPECT_TRUE(answer->is_reliable);
  EXPECT_NEAR(answer->tenants[0].before.p50_ms, 0.31, 1e-9);
  EXPECT_NEAR(answer->tenants[0].before.max_ms, 0.51, 1e-9);
  EXPECT_NEAR(answer->tenants[1].before.p50_ms, 0.51, 1e-9);
  EXPECT_NEAR(answer->tenants[0].after.p50_ms, 0.16, 1e-9);
  EXPECT_NEAR(answer->tenants[0].after.max_ms, 0.36, 1e-9);
  EXPECT_NEAR(answer->tenants[1].after.p50_ms, 0.36, 1e-9);
}

TEST(WhatIfTenants, MoreFramesThanCanBeReplayedAreRefused) {
  const trace::Timeline timeline = two_tenants();
  for (const double rate : {1e9, std::numeric_limits<double>::infinity(), 0.0, std::nan("")}) {
    TenantWhatIfOptions options;
    options.rates.emplace_back("a", rate);
    const auto answer = what_if_tenants(timeline, options);
    ASSERT_FALSE(answer) << rate;
    EXPECT_EQ(answer.error().kind(), ErrorKind::kUsage);
    EXPECT_NE(answer.error().to_string().find("--rate a"), std::string::npos) << answer.error().to_string();
  }
}

// Batches of four pictures, one each millisecond: the first waits 3 ms for the last, and the work takes 1 ms.
TEST(WhatIfTenants, OfBatchesTheRateIsThatOfPictures) {
  TenantMaker maker("a");
  maker.timeline.facts["tenant.a.batch"] = "4";
  const int32_t lane = maker.lane(1);
  for (int64_t i = 0; i < 40; ++i) {
    const int64_t at = 4000 * i + 3000;
    maker.argument(maker.frame("a", lane, i, at, at + 1000), "comm_ns", int64_t{3'000'000});
    maker.stage("a", lane, i, "infer", at, at + 1000);
  }
  const trace::Timeline timeline = maker.finish();
  const auto after = [&](double rate) {
    TenantWhatIfOptions options;
    options.rates.emplace_back("a", rate);
    const auto answer = what_if_tenants(timeline, options);
    EXPECT_TRUE(answer) << answer.error().to_string();
    EXPECT_NEAR(answer->tenants[0].before.p50_ms, 4, 1e-6);
    return answer->tenants[0].after;
  };
  EXPECT_NEAR(after(1000).p50_ms, 4, 1e-6);
  EXPECT_EQ(after(1000).due, 40u);
  EXPECT_NEAR(after(2000).p50_ms, 2.5, 1e-6);
  EXPECT_EQ(after(2000).due, 80u);  // from the first stamp to half a period behind the last one
  EXPECT_NEAR(after(500).p50_ms, 7, 1e-6);
  EXPECT_EQ(after(500).due, 20u);
}

// Two tenants at once on two cores, 300 us each from the same time on: in turns the second one is done at 600.
TEST(WhatIfTenants, WhoRanAtOnceOnCoresTakesTurns) {
  TenantMaker maker("a,b");
  maker.timeline.facts["tenants.policy"] = "concurrent";
  maker.timeline.facts["tenants.resource.cpu:0-1"] = "cores=2";
  maker.timeline.facts["tenant.a.cpu"] = maker.timeline.facts["tenant.b.cpu"] = "cpu:0-1";
  maker.timeline.facts["tenant.b.priority"] = "1";
  const int32_t a = maker.lane(1), b = maker.lane(2);
  for (int64_t i = 0; i < 12; ++i) {
    const int64_t at = 1000 * i;
    for (const auto& [name, lane] : {std::pair("a", a), std::pair("b", b)}) {
      maker.frame(name, lane, i, at, at + 300);
      maker.stage(name, lane, i, "infer", at, at + 300);
      maker.operation("conv", lane, "cpu:0-1", "compute", at, at, at + 300);
    }
  }
  const trace::Timeline timeline = maker.finish();
  TenantWhatIfOptions options;
  options.policy = ServePolicy::kPriority;
  // The memory that cores share, as a calibration has it, is no device that they had taken turns on before.
  for (const char* calibration : {"", R"({"classes":["compute"],"a":[[0]],"of":"cores"})"}) {
    if (*calibration != '\0') {
      auto parsed = parse_calibration(calibration);
      ASSERT_TRUE(parsed) << parsed.error().to_string();
      options.calibration = std::move(*parsed);
    }
    const auto answer = what_if_tenants(timeline, options);
    ASSERT_TRUE(answer) << answer.error().to_string();
    EXPECT_NEAR(answer->tenants[0].before.p50_ms, 0.3, 1e-9);
    EXPECT_NEAR(answer->tenants[0].after.p50_ms, 0.6, 1e-9);
    EXPECT_NEAR(answer->tenants[1].after.p50_ms, 0.3, 1e-9);
  }
}

TEST(WhatIfTenants, SaysWhatCannotBeAsked) {
  const trace::Timeline timeline = two_tenants();
  const auto fault = [&](const TenantWhatIfOptions& options) {
    return what_if_tenants(timeline, options).error().to_string();
  };
  TenantWhatIfOptions options;
  options.scales.push_back(parse_tenant_scale("tenant=a,stage=infr:1").value());
  EXPECT_NE(fault(options).find("did you mean infer"), std::string::npos);
  options = {};
  options.cores = 2;
  EXPECT_NE(fault(options).find("does not say on which cores"), std::string::npos);
  options = {};
  options.add_copy = true;
  EXPECT_NE(fault(options).find("no copies"), std::string::npos);
  options = {};
  options.priorities.emplace_back("c", 1);
  EXPECT_NE(fault(options).find("no tenant 'c'"), std::string::npos);
}

}  // namespace
}  // namespace strobe::analyze
