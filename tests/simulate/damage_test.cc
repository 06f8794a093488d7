// Damaged recordings: less is claimed, and what is claimed still adds up. Also the identity of every frame's path.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "analyze/blame.h"
#include "analyze/critical_path.h"
#include "analyze/tenant_replay.h"
#include "random_scenario.h"
#include "simulate/truth.h"
#include "simulate/write_trace.h"

namespace strobe {
namespace {

using analyze::BlameAnalysis;
using simulate::Scenario;
using test::random_scenario;
using test::Variety;

BlameAnalysis analysis_of(const trace::Timeline& timeline) {
  auto trace = analyze::tenant_trace(timeline);
  EXPECT_TRUE(trace) << (trace ? "" : trace.error().to_string());
  return analyze::blame(std::move(*trace));
}

std::vector<Variety> varieties() {
  std::vector<Variety> all;
  for (const char* policy : {"fifo", "priority", "priority-preemptive", "edf", "round-robin"})
    all.push_back({.policy = policy});
  all.push_back({.policy = "round-robin", .by_layer = true});
  all.push_back({.servers = 2});
  all.push_back({.policy = "round-robin", .quantum_us = 300, .switch_us = 15});
  all.push_back({.is_shared = true});
  all.push_back({.on_cores = true});
  all.push_back({.in_pipelines = true});
  all.push_back({.in_branches = true, .load = 0.5});
  for (Variety& variety : all) variety.seconds = 2, variety.sigma_us = 2;
  return all;
}

// What holds of every trace, whole or damaged: pieces tile the frame, cells and services add up to its latency.
void expect_sums(const BlameAnalysis& analysis) {
  for (size_t i = 0; i < analysis.trace.frames.size(); ++i) {
    const analyze::TenantFrame& frame = analysis.trace.frames[i];
    if (!frame.finished()) continue;
    int64_t at = frame.stamp_ns, waits = 0;
    for (const analyze::PathPiece& piece : frame_account(analysis.trace, static_cast<int32_t>(i))) {
      ASSERT_EQ(piece.start_ns, at);
      ASSERT_GT(piece.end_ns, piece.start_ns);
      at = piece.end_ns;
      waits += piece.kind == analyze::PathPiece::Kind::kWait || piece.kind == analyze::PathPiece::Kind::kQueue
                   ? piece.end_ns - piece.start_ns
                   : 0;
    }
    ASSERT_EQ(at, frame.done_ns);
    const analyze::FrameBlame& blame = analysis.frames[i];
    const auto sum = [](const std::vector<analyze::BlameCell>& cells) {
      return std::accumulate(cells.begin(), cells.end(), 0.0,
                             [](double total, const analyze::BlameCell& cell) { return total + cell.ns; });
    };
    const auto latency = static_cast<double>(frame.latency_ns());
    ASSERT_NEAR(sum(blame.direct) + blame.intrinsic_path_ns, latency, 1);
    ASSERT_NEAR(sum(blame.with_backlog), sum(blame.direct), 1);
    ASSERT_GE(blame.switching_ns(), 0);
    ASSERT_NEAR(blame.excess_ns(latency), sum(blame.direct) - blame.switching_ns(), 1);
    for (const analyze::BlameCell& cell : blame.direct) ASSERT_GE(cell.ns, 0);
  }
}

TEST(FramePath, TilesEveryFrameOfEveryScenario) {
  int scenarios = 0;
  for (const Variety& variety : varieties())
    for (uint64_t seed = 1; seed <= 10; ++seed, ++scenarios) {
      const Scenario scenario = random_scenario(seed, variety);
      const simulate::Log log = simulate::simulate(scenario);
      const trace::Timeline timeline = simulate::timeline_of(scenario, log);
      const BlameAnalysis analysis = analysis_of(timeline);
      expect_sums(analysis);
      // The chain that follows holders into other tenants' frames covers the frame as well.
      for (const int64_t frame : {3, 7}) {
        analyze::WindowChoice choice;
        choice.frame = frame;
        choice.tenant = "a";
        choice.strict = true;
        const auto path = analyze::critical_path(timeline, choice);
        if (!path) continue;
        int64_t total = 0;
        for (size_t i = 0; i < path->segments.size(); ++i) {
          total += path->segments[i].end_ns - path->segments[i].start_ns;
          if (i > 0) {
            ASSERT_EQ(path->segments[i].start_ns, path->segments[i - 1].end_ns);
          }
        }
        ASSERT_EQ(total, path->length_ns) << "seed " << seed;
      }
    }
  EXPECT_GE(scenarios, 100);
}

// Without noise the pieces' waits are the true ones: |sum over j - wait| <= 1 us a frame.
TEST(FramePath, SumOfBlameIsTheTrueDelayOfEachFrame) {
  for (Variety variety : varieties()) {
    variety.sigma_us = 0;
    const Scenario scenario = random_scenario(5, variety);
    const simulate::Log log = simulate::simulate(scenario);
    const BlameAnalysis analysis = analysis_of(simulate::timeline_of(scenario, log));
    const std::vector<simulate::FrameTruth> truths = simulate::frame_truths(scenario, log);
    ASSERT_EQ(truths.size(), analysis.frames.size());
    std::map<std::pair<int32_t, int64_t>, size_t> by_id;
    for (size_t i = 0; i < analysis.trace.frames.size(); ++i)
      by_id[{analysis.trace.frames[i].tenant, analysis.trace.frames[i].id}] = i;
    for (size_t i = 0; i < truths.size(); ++i) {
      if (log.frames[i].outcome != simulate::FrameLog::Outcome::kFinished) continue;
      const size_t found = by_id.at({log.frames[i].tenant, log.frames[i].id});
      EXPECT_NEAR(analysis.frames[found].intrinsic_path_ns, truths[i].intrinsic_path_ns, 1000);
      EXPECT_NEAR(analysis.frames[found].intrinsic_longest_ns, truths[i].intrinsic_longest_ns, 1000);
    }
  }
}

TEST(Damage, LostRecordsLowerCoverageAndWeakenTheWords) {
  for (const Variety& variety : varieties())
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      Scenario scenario = random_scenario(seed, variety);
      const simulate::Log log = simulate::simulate(scenario);
      const BlameAnalysis whole = analysis_of(simulate::timeline_of(scenario, log));
      scenario.damage.lost = 0.01;
      const BlameAnalysis damaged = analysis_of(simulate::timeline_of(scenario, log));
      EXPECT_TRUE(whole.gates.because());
      EXPECT_FALSE(damaged.gates.because());
      EXPECT_LT(damaged.gates.known_state, whole.gates.known_state) << "seed " << seed;
      expect_sums(damaged);
      for (const std::string& sentence : blame_sentences(damaged))
        EXPECT_EQ(sentence.find(" because "), std::string::npos) << sentence;
    }
}

TEST(Damage, MissingHandOversLowerCoverageAndWeakenTheWords) {
  int fell = 0;
  for (Variety variety : {Variety{.in_pipelines = true, .load = 0.8}, Variety{.in_branches = true, .load = 0.6}})
    for (uint64_t seed = 1; seed <= 10; ++seed) {
      variety.sigma_us = 2;
      Scenario scenario = random_scenario(seed, variety);
      const simulate::Log log = simulate::simulate(scenario);
      const BlameAnalysis whole = analysis_of(simulate::timeline_of(scenario, log));
      scenario.damage.missing_flows = 0.3;
      const BlameAnalysis damaged = analysis_of(simulate::timeline_of(scenario, log));
      EXPECT_TRUE(whole.gates.because());
      EXPECT_FALSE(damaged.gates.because());
      EXPECT_NEAR(damaged.gates.edges_known, 0.7, 0.12);
      // Where nothing waited between two threads, no time is in doubt.
      EXPECT_LE(damaged.gates.known_state, whole.gates.known_state) << "seed " << seed;
      fell += damaged.gates.known_state < whole.gates.known_state ? 1 : 0;
      expect_sums(damaged);
    }
  EXPECT_GE(fell, 16);
}

TEST(Damage, AWrongClockOnATenantsThreadsIsNoticed) {
  for (const Variety& variety : varieties()) {
    if (variety.is_shared || variety.on_cores) continue;  // everyone at once: nothing there can contradict
    for (uint64_t seed = 1; seed <= 4; ++seed) {
      Scenario scenario = random_scenario(seed, variety);
      const simulate::Log log = simulate::simulate(scenario);
      const BlameAnalysis whole = analysis_of(simulate::timeline_of(scenario, log));
      scenario.damage.wrong_tenant = 1;
      scenario.damage.offset_ns = 700e3;
      const BlameAnalysis damaged = analysis_of(simulate::timeline_of(scenario, log));
      EXPECT_TRUE(whole.gates.because());
      EXPECT_FALSE(damaged.gates.because()) << variety.policy << " seed " << seed;
      EXPECT_LT(damaged.gates.known_state, whole.gates.known_state) << variety.policy << " seed " << seed;
      expect_sums(damaged);
    }
  }
}

TEST(Damage, AHogThatIsNotRecordedIsUnknown) {
  Scenario scenario = random_scenario(3, {.on_cores = true});
  scenario.loads.push_back({false, 2, 2, 0, 0, 50e6, 25e6, true});
  const auto blamed_on = [&](analyze::Blamed who) {
    const BlameAnalysis analysis = analysis_of(simulate::timeline_of(scenario, simulate::simulate(scenario)));
    double ns = 0, all = 0;
    for (const auto& cells : sum_blame(analysis, analyze::BlameOf::kAll).direct)
      for (const analyze::BlameCell& cell : cells) {
        if (cell.resource != analysis.trace.find_resource("cpu:0-1")) continue;
        all += cell.ns;
        ns += cell.by == analyze::blamed(analysis.trace, who) ? cell.ns : 0;
      }
    return ns / all;
  };
  EXPECT_GT(blamed_on(analyze::Blamed::kSystem), 0.6);
  scenario.loads[0].is_recorded = false;
  EXPECT_GT(blamed_on(analyze::Blamed::kUnknown), 0.3);
  EXPECT_EQ(blamed_on(analyze::Blamed::kSystem), 0);
}

// Times, frames, lanes and arguments at random: no answer is right, but none crashes, and sums stay sums.
TEST(Damage, AnyTraceGivesAnAnswerThatAddsUp) {
  const std::vector<Variety> all = varieties();
  int answered = 0;
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    Variety variety = all[seed % all.size()];
    variety.seconds = 0.3;
    const Scenario scenario = random_scenario(seed, variety);
    trace::Timeline timeline = simulate::timeline_of(scenario, simulate::simulate(scenario));
    simulate::Random random(seed);
    const auto below = [&random](size_t limit) { return static_cast<size_t>(random() % std::max<size_t>(1, limit)); };
    trace::Ranges& ranges = timeline.ranges;
    for (size_t k = 0; k < 1 + ranges.size() / 20; ++k) {
      const size_t i = below(ranges.size());
      switch (below(7)) {
        case 0:
          ranges.start_ns[i] = static_cast<int64_t>(below(400'000'000));
          break;
        case 1:
          ranges.end_ns[i] = ranges.start_ns[i] + static_cast<int64_t>(below(50'000'000));
          break;
        case 2:
          ranges.frame[i] = static_cast<int64_t>(below(20)) - 1;
          break;
        case 3:
          ranges.lane[i] = static_cast<int32_t>(below(timeline.lanes.size()));
          break;
        case 4:
          ranges.open[i] = 1;
          break;
        case 5:
          ranges.domain[i] = ranges.domain[below(ranges.size())];
          break;
        default:
          if (timeline.arguments.size() > 0)
            timeline.arguments.value[below(timeline.arguments.size())] = static_cast<int64_t>(below(2'000'000'000));
      }
    }
    timeline.finish();
    auto trace = analyze::tenant_trace(timeline);
    if (!trace) continue;
    ++answered;
    const BlameAnalysis analysis = analyze::blame(std::move(*trace));
    expect_sums(analysis);
    const analyze::ReplayModel model = analyze::replay_model(analysis);
    const analyze::ReplayResult result = analyze::replay(model);
    for (size_t i = 0; i < model.frames.size(); ++i) ASSERT_FALSE(std::isnan(result.latency_ns[i]));
  }
  EXPECT_GT(answered, 100);
}

}  // namespace
}  // namespace strobe
