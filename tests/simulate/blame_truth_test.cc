// Blame read from a trace, against what the simulated device knows of itself.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>

#include "analyze/blame.h"
#include "random_scenario.h"
#include "simulate/truth.h"
#include "simulate/write_trace.h"

namespace strobe {
namespace {

using analyze::BlameAnalysis;
using test::random_scenario;
using test::Variety;

BlameAnalysis analysis_of(const simulate::Scenario& scenario, const simulate::Log& log) {
  const trace::Timeline timeline = simulate::timeline_of(scenario, log);
  auto trace = analyze::tenant_trace(timeline);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().to_string());
  return analyze::blame(std::move(*trace));
}

using Cells = std::map<std::string, double>;

Cells truth_cells(const simulate::Scenario& scenario, const simulate::Log& log, bool with_backlog) {
  const std::vector<std::string> names = simulate::resource_names(scenario);
  Cells cells;
  for (const auto& [key, ns] : simulate::sum_of(log, simulate::frame_truths(scenario, log), with_backlog)) {
    const auto& [tenant, by, resource] = key;
    const std::string who = by == tenant                            ? "self"
                            : by == simulate::system_of(scenario)   ? "system"
                            : by == simulate::recorder_of(scenario) ? "recorder"
                                                                    : scenario.tenants[static_cast<size_t>(by)].name;
    cells[scenario.tenants[static_cast<size_t>(tenant)].name + "|" + who + "|" +
          names[static_cast<size_t>(resource)]] += ns;
  }
  return cells;
}

Cells found_cells(const BlameAnalysis& analysis, bool with_backlog) {
  const analyze::BlameSum sum = sum_blame(analysis, analyze::BlameOf::kAll);
  Cells cells;
  for (size_t i = 0; i < analysis.trace.tenants.size(); ++i)
    for (const analyze::BlameCell& cell : with_backlog ? sum.with_backlog[i] : sum.direct[i])
      cells[analysis.trace.tenants[i].name + "|" + blamed_name(analysis.trace, cell.by, static_cast<int32_t>(i)) + "|" +
            blamed_resource_name(analysis.trace, cell.resource)] += cell.ns;
  return cells;
}

// Sum of the differences of all cells over the sum of the true ones.
double distance(const Cells& truth, const Cells& found) {
  double total = 0, off = 0;
  for (const auto& [key, ns] : truth) {
    total += ns;
    const auto it = found.find(key);
    off += std::abs(ns - (it == found.end() ? 0 : it->second));
  }
  for (const auto& [key, ns] : found)
    if (truth.count(key) == 0) off += std::abs(ns);
  return total > 0 ? off / total : off;
}

std::string listing(const Cells& truth, const Cells& found) {
  std::string text;
  for (const auto& [key, ns] : truth) {
    const auto it = found.find(key);
    text += key + ": true " + std::to_string(ns / 1e6) + " found " +
            std::to_string(it == found.end() ? 0 : it->second / 1e6) + "\n";
  }
  for (const auto& [key, ns] : found)
    if (truth.count(key) == 0) text += key + ": true 0 found " + std::to_string(ns / 1e6) + "\n";
  return text;
}

struct Case {
  const char* name;
  Variety variety;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const char* policy : {"fifo", "priority", "priority-preemptive", "edf", "round-robin"})
    all.push_back({policy, {.policy = policy}});
  all.push_back({"by layer", {.policy = "round-robin", .by_layer = true}});
  all.push_back({"two servers", {.servers = 2}});
  all.push_back({"quantum", {.policy = "round-robin", .quantum_us = 300, .switch_us = 15}});
  all.push_back({"shared", {.is_shared = true}});
  all.push_back({"cores", {.on_cores = true}});
  all.push_back({"pipelines", {.in_pipelines = true, .load = 0.85}});
  all.push_back({"branches", {.in_branches = true, .load = 0.5}});
  return all;
}

TEST(BlameTruth, ExactStampsGiveTheTrueMatrix) {
  int scenarios = 0;
  for (const Case& one : cases())
    for (uint64_t seed = 1; seed <= 10; ++seed, ++scenarios) {
      const simulate::Scenario scenario = random_scenario(seed, one.variety);
      const simulate::Log log = simulate::simulate(scenario);
      const BlameAnalysis analysis = analysis_of(scenario, log);
      for (const bool with_backlog : {false, true}) {
        const Cells truth = truth_cells(scenario, log, with_backlog), found = found_cells(analysis, with_backlog);
        // Of cores the split is an estimate; of a full queue the parts of the consumer's time are averages.
        const double limit = one.variety.on_cores ? 0.02 : one.variety.in_pipelines ? 0.02 : 0.002;
        EXPECT_LE(distance(truth, found), limit)
            << one.name << " seed " << seed << (with_backlog ? " with backlog\n" : "\n") << listing(truth, found);
      }
    }
  EXPECT_GE(scenarios, 100);
}

TEST(BlameTruth, ClockNoiseOfTwoMicrosecondsMovesLittle) {
  int scenarios = 0;
  double worst = 0, sum = 0;
  for (Case one : cases())
    for (uint64_t seed = 100; seed < 110; ++seed, ++scenarios) {
      one.variety.sigma_us = 2;
      const simulate::Scenario scenario = random_scenario(seed, one.variety);
      const simulate::Log log = simulate::simulate(scenario);
      const BlameAnalysis analysis = analysis_of(scenario, log);
      const Cells truth = truth_cells(scenario, log, false), found = found_cells(analysis, false);
      const double off = distance(truth, found);
      worst = std::max(worst, off);
      sum += off;
      EXPECT_LE(off, 0.02) << one.name << " seed " << seed << "\n" << listing(truth, found);
      EXPECT_TRUE(analysis.gates.because()) << one.name << " seed " << seed << ": " << analysis.gates.reasons().front();
    }
  EXPECT_GE(scenarios, 100);
  RecordProperty("mean", std::to_string(sum / scenarios));
  std::printf("L1 error at sigma 2 us: mean %.4f worst %.4f\n", sum / scenarios, worst);
}

}  // namespace
}  // namespace strobe
