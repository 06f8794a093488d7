// Forecasts from solo traces, against the device on which the tenants run together.
#include <gtest/gtest.h>

#include <cmath>

#include "analyze/forecast.h"
#include "base/statistics.h"
#include "random_scenario.h"
#include "simulate/truth.h"
#include "simulate/write_trace.h"

namespace strobe {
namespace {

using simulate::Scenario;
using test::random_scenario;
using test::Variety;

TEST(Forecast, OfSoloTracesIsTheCoRun) {
  std::vector<double> p50, p99, equal50, equal99, none50, none99, covered;
  int sets = 0;
  for (const char* policy : {"fifo", "priority", "round-robin", "concurrent"})
    for (uint64_t seed = 1; seed <= 10; ++seed, ++sets) {
      Variety variety{.policy = policy,
                      .is_shared = std::string(policy) == "concurrent",
                      .load = 0.5,
                      .sigma_us = 2,
                      .seconds = 20};
      if (variety.is_shared) variety.policy = "fifo";
      const Scenario scenario = random_scenario(seed, variety);
      std::vector<trace::Timeline> solo;
      for (size_t i = 0; i < scenario.tenants.size(); ++i) {
        Scenario alone = scenario;
        alone.tenants = {scenario.tenants[i]};
        solo.push_back(simulate::timeline_of(alone, simulate::simulate(alone)));
      }
      std::vector<const trace::Timeline*> traces;
      for (const trace::Timeline& timeline : solo) traces.push_back(&timeline);
      analyze::ForecastOptions options;
      options.policy = analyze::parse_serve_policy(policy).value();
      options.draws = 20;
      const auto forecast = analyze::forecast(traces, options);
      ASSERT_TRUE(forecast) << forecast.error().to_string();
      // The truth is a distribution, too: the phases of the co-run are but one draw.
      std::vector<std::vector<double>> true50(scenario.tenants.size()), true99 = true50;
      for (uint64_t other = 0; other < 6; ++other) {
        Scenario together = scenario;
        simulate::Random random(seed * 100 + other);
        together.seed = seed * 1000 + other;
        for (simulate::Tenant& tenant : together.tenants)
          tenant.arrivals.phase_ns = random.uniform() * tenant.arrivals.period_ns;
        const simulate::Log log = simulate::simulate(together);
        for (size_t i = 0; i < scenario.tenants.size(); ++i) {
          const std::vector<double> latencies = simulate::latencies(log, static_cast<int32_t>(i));
          true50[i].push_back(quantile(latencies, 0.5) / 1e6);
          true99[i].push_back(quantile(latencies, 0.99) / 1e6);
        }
      }
      ASSERT_EQ(forecast->rows.size(), scenario.tenants.size());
      for (const analyze::ForecastRow& row : forecast->rows) {
        const auto i = static_cast<size_t>(row.tenant);
        const double at50 = quantile(true50[i], 0.5), at99 = quantile(true99[i], 0.5);
        p50.push_back(std::abs(row.forecast.p50_ms / at50 - 1));
        p99.push_back(std::abs(row.forecast.p99_ms / at99 - 1));
        equal50.push_back(std::abs(row.equal_share.p50_ms / at50 - 1));
        equal99.push_back(std::abs(row.equal_share.p99_ms / at99 - 1));
        none50.push_back(std::abs(row.no_interference.p50_ms / at50 - 1));
        none99.push_back(std::abs(row.no_interference.p99_ms / at99 - 1));
      }
    }
  EXPECT_GE(sets, 40);
  const auto show = [](const char* name, const std::vector<double>& off) {
    std::printf("%-18s median %.4f p90 %.4f\n", name, quantile(off, 0.5), quantile(off, 0.9));
  };
  show("p50", p50), show("p99", p99), show("equal share p50", equal50), show("equal share p99", equal99);
  show("none p50", none50), show("none p99", none99);
  EXPECT_LE(quantile(p50, 0.5), 0.03);
  EXPECT_LE(quantile(p99, 0.5), 0.05);
  EXPECT_LE(quantile(p50, 0.5), quantile(equal50, 0.5) / 2);
  EXPECT_LE(quantile(p99, 0.5), quantile(equal99, 0.5) / 2);
  EXPECT_LE(quantile(p50, 0.5), quantile(none50, 0.5) / 3);
  EXPECT_LE(quantile(p99, 0.5), quantile(none99, 0.5) / 3);
}

TEST(Forecast, FindsTheLargestSetThatFits) {
  Scenario scenario = random_scenario(4, {.load = 0.5, .seconds = 3, .tenants = 4});
  std::vector<trace::Timeline> solo;
  for (size_t i = 0; i < 4; ++i) {
    Scenario alone = scenario;
    alone.tenants = {scenario.tenants[i]};
    alone.tenants[0].deadline_ns = 1e9;
    solo.push_back(simulate::timeline_of(alone, simulate::simulate(alone)));
    solo.back().facts["tenant." + alone.tenants[0].name + ".memory_bytes"] = std::to_string(100 * (i + 1));
  }
  const std::vector<const trace::Timeline*> traces{&solo[0], &solo[1], &solo[2], &solo[3]};
  analyze::ForecastOptions options;
  options.draws = 2;
  options.memory_bytes = 650;  // 100 + 200 + 300 fit, all four do not
  const auto forecast = analyze::forecast(traces, options);
  ASSERT_TRUE(forecast);
  ASSERT_TRUE(forecast->largest);
  EXPECT_EQ(forecast->largest->tenants.size(), 3U);
  EXPECT_LE(forecast->largest->memory_bytes, 650);
  options.memory_bytes = 50;
  EXPECT_FALSE(analyze::forecast(traces, options).value().largest);
}

TEST(Forecast, EqualNamesAreToldApartAndDrawsRepeat) {
  const Scenario scenario = random_scenario(2, {.seconds = 2, .tenants = 2});
  Scenario alone = scenario;
  alone.tenants.pop_back();
  const trace::Timeline timeline = simulate::timeline_of(alone, simulate::simulate(alone));
  analyze::ForecastOptions options;
  options.draws = 5;
  const auto first = analyze::forecast({&timeline, &timeline}, options),
             again = analyze::forecast({&timeline, &timeline}, options);
  ASSERT_TRUE(first);
  EXPECT_EQ(first->tenants, (std::vector<std::string>{"a", "a#2"}));
  EXPECT_EQ(first->rows[1].forecast.p99_ms, again->rows[1].forecast.p99_ms);
  EXPECT_GE(first->rows[0].forecast.p50_ms, first->rows[0].no_interference.p50_ms);
  EXPECT_FALSE(analyze::forecast({}, options));
}

}  // namespace
}  // namespace strobe
