#include "simulate/scenario.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/statistics.h"
#include "simulate/laws.h"
#include "simulate/truth.h"
#include "simulate/write_trace.h"

namespace strobe::simulate {
namespace {

constexpr const char* kScenario = R"(
seed: 7
duration_s: 1
policy: priority
resources:
  device: {exclusive: 1}
  cpu:0: {cores: 1}
tenants:
  - name: a
    cpu: cpu:0
    priority: 2
    arrivals: {rate_hz: 10}
    deadline_ms: 15
    stages:
      - {name: prep, service: 2}
      - name: infer
        operations: [{name: conv, resource: device, count: 2, service: 4}]
  - name: b
    arrivals: {rate_hz: 10, phase_ms: 1}
    stages:
      - {name: infer, resource: device, service: 20}
)";

// By hand: a computes on the core from 0 to 2; b takes the device from 1 to 21; a's two layers run from 21 to 29.
TEST(Simulate, ASmallScenarioByHand) {
  const auto scenario = parse_scenario(kScenario);
  ASSERT_TRUE(scenario) << scenario.error().to_string();
  const Log log = simulate(*scenario);
  ASSERT_EQ(log.frames.size(), 20U);
  EXPECT_NEAR(log.frames[0].done_ns, 29e6, 1);
  EXPECT_NEAR(log.frames[1].done_ns, 21e6, 1);
  const std::vector<FrameTruth> truths = frame_truths(*scenario, log);
  ASSERT_EQ(truths[0].direct.size(), 1U);
  EXPECT_EQ(truths[0].direct[0].by, 1);
  EXPECT_NEAR(truths[0].direct[0].ns, 19e6, 1);
  EXPECT_NEAR(truths[0].intrinsic_path_ns, 10e6, 1);
  const std::string json = truth_json(*scenario, log);
  EXPECT_NE(json.find("\"miss_rate\":1.0"), std::string::npos);
}

TEST(Simulate, TheSameSeedIsTheSameTraceAndAChangeLeavesOtherDrawsAlone) {
  auto scenario = parse_scenario(kScenario).value();
  scenario.tenants[0].arrivals.jitter_ns = 1e6;
  for (OperationLaw& operation : scenario.tenants[0].stages[1].operations)
    operation.service = {Law::Kind::kGamma, 4e6, 0.5, 0, {}};
  const Log one = simulate(scenario), two = simulate(scenario);
  const Log without = simulate(only(scenario, {true, false}));
  ASSERT_EQ(one.operations.size(), two.operations.size());
  for (size_t i = 0; i < one.operations.size(); ++i) EXPECT_EQ(one.operations[i].end_ns, two.operations[i].end_ns);
  const auto services = [](const Log& log) {
    std::vector<double> all;
    for (const FrameLog& frame : log.frames)
      if (frame.tenant == 0) all.push_back(log.stages[static_cast<size_t>(frame.stages[1])].intrinsic_ns);
    return all;
  };
  const std::vector<double> with = services(one), alone = services(without);
  ASSERT_EQ(with.size(), alone.size());
  for (size_t i = 0; i < with.size(); ++i) EXPECT_NEAR(with[i], alone[i], 0.01);
}

TEST(Simulate, LawsHaveTheirMoments) {
  const auto sample = [](const Law& law, double units = 0) {
    std::vector<double> values;
    for (int64_t i = 0; i < 20'000; ++i)
      values.push_back(draw(law, Random(mixed(5, static_cast<uint64_t>(i))), i, units));
    return values;
  };
  const std::vector<double> gamma = sample({Law::Kind::kGamma, 1e6, 0.5, 0, {}});
  EXPECT_NEAR(mean(gamma), 1e6, 0.02e6);
  EXPECT_NEAR(standard_deviation(gamma) / mean(gamma), 0.5, 0.02);
  const std::vector<double> lognormal = sample({Law::Kind::kLognormal, 1e6, 0.3, 0, {}});
  EXPECT_NEAR(quantile(lognormal, 0.5), 1e6, 0.02e6);
  EXPECT_NEAR(quantile(lognormal, 0.8413), 1e6 * std::exp(0.3), 0.03e6);
  EXPECT_EQ(draw({Law::Kind::kInput, 10, 0, 3, {}}, Random(1), 0, 4), 22);
  EXPECT_EQ(draw({Law::Kind::kTrace, 0, 0, 0, {5, 6}}, Random(1), 3, 0), 6);
  Arrivals poisson;
  poisson.kind = Arrivals::Kind::kPoisson;
  poisson.period_ns = 1e6;
  EXPECT_NEAR(static_cast<double>(stamps(poisson, 1e10, Random(3)).size()), 10'000, 400);
  Arrivals burst;
  burst.kind = Arrivals::Kind::kBurst;
  burst.period_ns = 100, burst.burst = 3, burst.gap_ns = 2;
  EXPECT_EQ(stamps(burst, 200, Random(1)), (std::vector<double>{0, 2, 4, 100, 102, 104}));
}

TEST(Simulate, DropsGapsAndSlowClocks) {
  auto scenario = parse_scenario(kScenario).value();
  scenario.tenants.pop_back();
  scenario.tenants[0].arrivals.period_ns = 5e6;  // twice what it can do
  scenario.tenants[0].queue_depth = 1;
  for (const Drop drop : {Drop::kOldest, Drop::kNewest}) {
    scenario.tenants[0].drop = drop;
    const Log log = simulate(scenario);
    double worst = 0;
    size_t dropped = 0;
    for (const FrameLog& frame : log.frames)
      if (frame.outcome == FrameLog::Outcome::kFinished)
        worst = std::max(worst, frame.done_ns - frame.stamp_ns);
      else
        ++dropped;
    EXPECT_NEAR(static_cast<double>(dropped), 100, 3);
    EXPECT_LE(worst, 20.01e6);
  }
  scenario.tenants[0].arrivals.period_ns = 100e6;
  scenario.gaps.push_back({0, 0.25e9, 0.55e9});
  scenario.slowdowns.push_back({0, 0.6e9, 0.8e9, 2});
  const Log log = simulate(scenario);
  EXPECT_EQ(log.not_sent.size(), 3U);
  for (const FrameLog& frame : log.frames)
    EXPECT_NEAR(frame.done_ns - frame.stamp_ns, frame.stamp_ns >= 0.6e9 && frame.stamp_ns < 0.8e9 ? 18e6 : 10e6, 1);
}

TEST(Scenario, SaysWhatIsWrongWithAFile) {
  const auto fault = [](const std::string& from, const std::string& to) {
    std::string text = kScenario;
    text.replace(text.find(from), from.size(), to);
    const auto scenario = parse_scenario(text);
    return scenario ? "" : scenario.error().to_string();
  };
  EXPECT_NE(fault("rate_hz: 10}", "rate: 10}").find("no key 'rate'"), std::string::npos);
  EXPECT_NE(fault("resource: device, count", "resource: devise, count").find("did you mean device"), std::string::npos);
  EXPECT_NE(fault("name: b", "name: a").find("is there already"), std::string::npos);
  EXPECT_NE(fault("service: 20", "service: fast").find("expected a number"), std::string::npos);
  EXPECT_NE(fault("policy: priority", "policy: fastest").find("no policy 'fastest'"), std::string::npos);
  EXPECT_NE(fault("{exclusive: 1}", "{}").find("expected one of"), std::string::npos);
  for (const char* text : {"", "[]", "a: [", "seed: 1", "resources: {}\ntenants: []"})
    EXPECT_FALSE(parse_scenario(text)) << text;
}

}  // namespace
}  // namespace strobe::simulate
