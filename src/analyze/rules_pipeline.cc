// starved_stage and oversubscribed of rules.h: a pipeline's run as pipeline.h describes it.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "analyze/passes.h"
#include "analyze/rules_findings.h"

namespace strobe::analyze {

using trace::Timeline;

namespace {

constexpr double kStarved = 0.2;          // of the run
constexpr double kOversubscribed = 0.05;  // of the run's core time

double fact_number(const Timeline& timeline, const char* key) {
  const auto fact = timeline.facts.find(key);
  double number = 0;
  if (fact != timeline.facts.end())
    std::from_chars(fact->second.data(), fact->second.data() + fact->second.size(), number);
  return std::isfinite(number) ? number : 0;
}

void find_starved(const PipelineRun& run, Findings& findings) {
  const int64_t duration = run.end_ns - run.start_ns;
  const auto busiest = std::max_element(run.busy_ns.begin(), run.busy_ns.end());
  if (busiest == run.busy_ns.end() || duration <= 0) return;
  const auto slowest = static_cast<size_t>(busiest - run.busy_ns.begin());
  // The stages around inference may wait: it is what the pipeline is there for.
  for (size_t stage = 0; stage < run.stages.size(); ++stage) {
    if (stage == slowest || run.stages[stage] != "infer") continue;
    const int64_t idle = duration - run.busy_ns[stage];
    if (static_cast<double>(idle) < kStarved * static_cast<double>(duration)) continue;
    findings.push_back(
        {"starved_stage",
         fmt::format("{} idles {:.0f} % of the run; the busiest stage is {}", run.stages[stage],
                     100.0 * static_cast<double>(idle) / static_cast<double>(duration), run.stages[slowest]),
         1, idle, "inference waits for frames: a faster engine would change nothing",
         "give the busiest stage more threads or make it cheaper"});
  }
}

// Threads in a stage at the same time, beyond the cores. Frames of a batch share one range, so each lane counts once.
void find_oversubscribed(const Timeline& timeline, const PipelineRun& run, Findings& findings) {
  const double cores = fact_number(timeline, "cores");
  if (cores <= 0) return;
  const trace::Ranges& ranges = timeline.ranges;
  std::vector<uint8_t> is_stage(timeline.strings.size());
  for (const std::string& stage : run.stages)
    if (const int64_t id = timeline.strings.find(stage); id != trace::kNone) is_stage[static_cast<size_t>(id)] = 1;
  std::vector<std::pair<int64_t, int>> changes;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (is_stage[ranges.name[i]] == 0 || ranges.kind[i] != trace::RangeKind::kAnnotation || ranges.open[i]) continue;
    if (ranges.start_ns[i] < run.start_ns || ranges.end_ns[i] > run.end_ns) continue;
    const int32_t parent = ranges.parent[i];
    if (parent != trace::kNone && is_stage[ranges.name[static_cast<size_t>(parent)]] != 0) continue;
    changes.emplace_back(ranges.start_ns[i], 1);
    changes.emplace_back(ranges.end_ns[i], -1);
  }
  std::sort(changes.begin(), changes.end());
  double beyond_ns = 0;
  int threads = 0, most = 0;
  for (size_t i = 0; i + 1 < changes.size(); ++i) {
    threads += changes[i].second;
    most = std::max(most, threads);
    beyond_ns += std::max(0.0, threads - cores) * static_cast<double>(changes[i + 1].first - changes[i].first);
  }
  if (beyond_ns < kOversubscribed * cores * static_cast<double>(run.end_ns - run.start_ns)) return;
  findings.push_back({"oversubscribed", fmt::format("up to {} stage threads at work on {:.3g} cores", most, cores),
                      most, static_cast<int64_t>(beyond_ns),
                      "threads take turns on the cores: each frame takes longer and the caches are shared",
                      "use fewer threads or sessions, or more cores"});
}

}  // namespace

void find_pipeline(const Timeline& timeline, Findings& findings) {
  const PipelineRun run = pipeline_run(timeline);
  if (!run.has_run || run.stages.empty()) return;
  find_starved(run, findings);
  find_oversubscribed(timeline, run, findings);
}

}  // namespace strobe::analyze
