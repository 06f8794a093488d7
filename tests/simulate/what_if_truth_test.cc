// Replays of a trace with a change, against the device that is run again with that change.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "analyze/blame_shapley.h"
#include "analyze/what_if_tenants.h"
#include "base/statistics.h"
#include "random_scenario.h"
#include "simulate/truth.h"
#include "simulate/write_trace.h"

namespace strobe {
namespace {

using analyze::TenantWhatIfOptions;
using simulate::Scenario;
using test::random_scenario;
using test::Variety;

struct Errors {
  std::vector<double> p50, p99;
  void add(const std::vector<double>& truth_ns, const analyze::LatencyFigures& found) {
    if (truth_ns.size() < 20) return;
    p50.push_back(std::abs(found.p50_ms * 1e6 / quantile(truth_ns, 0.5) - 1));
    p99.push_back(std::abs(found.p99_ms * 1e6 / quantile(truth_ns, 0.99) - 1));
  }
  void show(const char* name) const {
    std::printf("%-22s %3zu cases: p50 median %.4f p90 %.4f max %.4f; p99 median %.4f p90 %.4f max %.4f\n", name,
                p50.size(), quantile(p50, 0.5), quantile(p50, 0.9), quantile(p50, 1), quantile(p99, 0.5),
                quantile(p99, 0.9), quantile(p99, 1));
  }
};

struct Case {
  const char* name;
  Variety variety;
};
std::vector<Case> cases(double sigma_us) {
  std::vector<Case> all;
  for (const char* policy : {"fifo", "priority", "priority-preemptive", "edf", "round-robin"})
    all.push_back({policy, {.policy = policy}});
  all.push_back({"by layer", {.policy = "round-robin", .by_layer = true}});
  all.push_back({"two servers", {.servers = 2}});
  all.push_back({"quantum", {.policy = "round-robin", .quantum_us = 300, .switch_us = 15}});
  all.push_back({"shared", {.is_shared = true}});
  all.push_back({"cores", {.on_cores = true}});
  all.push_back({"pipelines", {.in_pipelines = true, .load = 0.6}});
  all.push_back({"branches", {.in_branches = true, .load = 0.45}});
  for (Case& one : all) {
    one.variety.sigma_us = sigma_us;
    if (std::string(one.name) != "pipelines" && std::string(one.name) != "branches") one.variety.load = 0.6;
  }
  return all;
}

// What is asked of the trace, and the same done to the scenario.
struct Change {
  const char* name;
  TenantWhatIfOptions options;
  Scenario changed;
};

std::vector<Change> changes_of(const Scenario& scenario) {
  std::vector<Change> changes;
  changes.push_back({"nothing", {}, scenario});
  {
    Change change{"scale infer 0.7", {}, scenario};
    change.options.scales.push_back(analyze::parse_tenant_scale("tenant=a,stage=infer:0.7").value());
    for (simulate::OperationLaw& operation : change.changed.tenants[0].stages[1].operations)
      operation.service.base_ns *= 0.7;
    changes.push_back(std::move(change));
  }
  {
    Change change{"remove b", {}, scenario};
    change.options.removed.push_back(analyze::parse_tenant_selector("tenant=b").value());
    std::vector<bool> present(scenario.tenants.size(), true);
    present[1] = false;
    change.changed = simulate::only(scenario, present);
    changes.push_back(std::move(change));
  }
  if (scenario.resources[0].serve == simulate::Serve::kPriority) {
    Change change{"priority of b", {}, scenario};
    change.options.priorities.emplace_back("b", 9);
    change.changed.tenants[1].priority = 9;
    changes.push_back(std::move(change));
  }
  if (scenario.resources[0].kind == simulate::Resource::Kind::kExclusive && scenario.resources[0].quantum_ns == 0) {
    Change change{"policy", {}, scenario};
    const bool was_fifo = scenario.policy == "fifo";
    change.options.policy = was_fifo ? analyze::ServePolicy::kPriorityPreemptive : analyze::ServePolicy::kFifo;
    change.changed.resources[0].serve = was_fifo ? simulate::Serve::kPriority : simulate::Serve::kFifo;
    change.changed.resources[0].by_stage = true;
    change.changed.resources[0].gives_way = was_fifo;
    changes.push_back(std::move(change));
  }
  if (scenario.tenants[0].stages[0].operations[0].resource == 2) {  // decodes on cores
    Change change{"one core", {}, scenario};
    change.options.cores = 3;
    change.changed.resources[2].capacity = 3;
    changes.push_back(std::move(change));
  }
  return changes;
}

TEST(WhatIfTruth, EqualsTheDeviceThatIsRunAgain) {
  std::map<std::string, Errors> errors;
  int questions = 0;
  for (const Case& one : cases(2))
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      Variety variety = one.variety;
      variety.seconds = 8;
      const Scenario scenario = random_scenario(seed, variety);
      const trace::Timeline timeline = simulate::timeline_of(scenario, simulate::simulate(scenario));
      for (const Change& change : changes_of(scenario)) {
        const auto answer = analyze::what_if_tenants(timeline, change.options);
        ASSERT_TRUE(answer) << answer.error().to_string();
        const simulate::Log truth = simulate::simulate(change.changed);
        for (size_t i = 0; i < scenario.tenants.size(); ++i) {
          const std::vector<double> latencies = simulate::latencies(truth, static_cast<int32_t>(i));
          if (latencies.empty()) continue;
          errors[change.name].add(latencies, answer->tenants[i].after);
          const double off = std::abs(answer->tenants[i].after.p50_ms * 1e6 / quantile(latencies, 0.5) - 1);
          if (off > 0.03)
            std::printf("  %s, %s, seed %d, tenant %zu: p50 off by %.3f\n", one.name, change.name, int(seed), i, off);
        }
        ++questions;
      }
    }
  EXPECT_GE(questions, 100);
  for (const auto& [name, error] : errors) {
    error.show(name.c_str());
    EXPECT_LE(quantile(error.p50, 0.5), 0.01) << name;
    EXPECT_LE(quantile(error.p99, 0.5), 0.03) << name;
    EXPECT_LE(quantile(error.p50, 0.95), 0.03) << name;
    EXPECT_LE(quantile(error.p99, 0.95), 0.05) << name;
  }
}

TEST(WhatIfTruth, ShapleyEqualsTheDeviceRunWithEverySubset) {
  double off = 0, total = 0, worst = 0;
  int scenarios = 0;
  for (const Case& one : cases(0))
    for (uint64_t seed = 20; seed < 30; ++seed, ++scenarios) {
      Variety variety = one.variety;
      variety.seconds = 3;
      const Scenario scenario = random_scenario(seed, variety);
      const trace::Timeline timeline = simulate::timeline_of(scenario, simulate::simulate(scenario));
      auto trace = analyze::tenant_trace(timeline);
      ASSERT_TRUE(trace);
      const analyze::ReplayModel model = analyze::replay_model(analyze::blame(std::move(*trace)));
      const analyze::Shapley found = analyze::shapley(model, analyze::ShapleyOf::kMean);
      const auto truth = simulate::shapley_by_simulation(scenario);
      double here = 0, sum = 0;
      for (size_t i = 0; i < truth.size(); ++i) {
        double row = 0;
        for (size_t j = 0; j < truth.size(); ++j) {
          here += std::abs(truth[i][j] - found.values[i][j]);
          sum += std::abs(truth[i][j]);
          row += found.values[i][j];
        }
        EXPECT_NEAR(row, found.together[i] - found.alone[i], 1);
      }
      if (sum > 0) worst = std::max(worst, here / sum);
      off += here;
      total += sum;
      EXPECT_LE(here / sum, 0.03) << one.name << " seed " << seed;
    }
  EXPECT_GE(scenarios, 100);
  std::printf("Shapley against every subset: L1 error %.4f, worst scenario %.4f\n", off / total, worst);
}

}  // namespace
}  // namespace strobe
