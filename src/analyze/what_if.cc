#include "analyze/what_if.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <regex>
#include <set>

#include "analyze/layers.h"
#include "analyze/what_if_device.h"
#include "analyze/what_if_pipeline.h"
#include "analyze/what_if_tables.h"
#include "base/suggest.h"

namespace strobe::analyze {

using trace::kNone;
using trace::Timeline;

namespace {

constexpr std::pair<const char*, Selector::Kind> kKinds[] = {{"stage", Selector::Kind::kStage},
                                                             {"layer", Selector::Kind::kLayer},
                                                             {"kernel", Selector::Kind::kKernel},
                                                             {"range", Selector::Kind::kRange},
                                                             {"tenant", Selector::Kind::kTenant}};

// How much of a stage's time the ranges with a name have, by stage.
std::vector<double> range_shares(const Timeline& timeline, const PipelineRun& run, const std::string& name) {
  const trace::Ranges& ranges = timeline.ranges;
  const int64_t wanted = timeline.strings.find(name);
  std::vector<int32_t> stage_of(ranges.size(), kNone);  // of the pass that holds a range
  std::vector<uint8_t> counted(ranges.size(), 0);       // inside one with the name already
  std::map<trace::StringId, int32_t> stages;
  for (size_t i = 0; i < run.stages.size(); ++i)
    if (const int64_t id = timeline.strings.find(run.stages[i]); id != kNone)
      stages[static_cast<trace::StringId>(id)] = static_cast<int32_t>(i);
  std::vector<double> named(run.stages.size(), 0), whole(run.stages.size(), 0);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.start_ns[i] < run.start_ns || ranges.end_ns[i] > run.end_ns || ranges.is_async[i]) continue;
    const auto parent = static_cast<size_t>(std::max(0, ranges.parent[i]));
    const bool has_parent = ranges.parent[i] != kNone;
    const auto time = static_cast<double>(ranges.end_ns[i] - ranges.start_ns[i]);
    stage_of[i] = has_parent ? stage_of[parent] : kNone;
    counted[i] = has_parent ? counted[parent] : 0;
    if (const auto stage = stages.find(ranges.name[i]); stage_of[i] == kNone && stage != stages.end()) {
      stage_of[i] = stage->second;
      whole[static_cast<size_t>(stage->second)] += time;
    }
    if (stage_of[i] == kNone || counted[i] || ranges.name[i] != wanted) continue;
    counted[i] = 1;
    named[static_cast<size_t>(stage_of[i])] += time;
  }
  for (size_t i = 0; i < named.size(); ++i) named[i] = whole[i] > 0 ? std::min(1.0, named[i] / whole[i]) : 0;
  return named;
}

bool is_tenant(const Timeline& timeline, int32_t pid, const std::string& name) {
  if (std::to_string(pid) == name) return true;
  return std::any_of(timeline.processes.begin(), timeline.processes.end(), [&](const trace::Process& process) {
    return process.pid == pid && timeline.strings[process.name] == name;
  });
}

Result<std::regex> expression(const std::string& text) {
  try {
    return std::regex(text, std::regex::ECMAScript | std::regex::optimize);
  } catch (const std::regex_error& fault) {
    return usage_error("kernel:" + text + " is no regular expression: " + fault.what());
  }
}

// The share of the engine's time that the rows of a table of layers or kernels have.
Result<double> network_share(const Table& table, const char* column, const Selector& what) {
  std::vector<std::string> names;
  double share = 0;
  bool found = false;
  std::optional<std::regex> pattern;
  if (what.kind == Selector::Kind::kKernel) {
    STROBE_ASSIGN(pattern, expression(what.name));
  }
  for (size_t row = 0; row < table.row_count(); ++row) {
    names.push_back(table.text(row, column));
    if (pattern ? !std::regex_search(names.back(), *pattern) : names.back() != what.name) continue;
    found = true;
    share += table.number(row, "share").value_or(0);
  }
  if (names.empty()) return not_found("the trace has no times of layers, so " + what.text() + " selects nothing");
  if (!found) return not_found(what.text() + " selects nothing; " + suggest(what.name, names));
  return share;
}

class PipelineQuestion {
 public:
  PipelineQuestion(const Timeline& timeline, const PipelineRun& run, PipelineModel model)
      : timeline_(timeline), run_(run), model_(std::move(model)) {}

  const PipelineModel& model() const { return model_; }

  // The share of each stage's work that is selected.
  Result<std::vector<double>> shares(const Selector& what) const {
    std::vector<double> shares(run_.stages.size(), 0);
    const auto infer = std::find(run_.stages.begin(), run_.stages.end(), "infer") - run_.stages.begin();
    switch (what.kind) {
      case Selector::Kind::kStage: {
        const auto found = std::find(run_.stages.begin(), run_.stages.end(), what.name);
        if (found == run_.stages.end())
          return not_found("no stage '" + what.name + "'; " + suggest(what.name, run_.stages));
        shares[static_cast<size_t>(found - run_.stages.begin())] = 1;
        return shares;
      }
      case Selector::Kind::kLayer:
      case Selector::Kind::kKernel: {
        const bool is_layer = what.kind == Selector::Kind::kLayer;
        STROBE_ASSIGN(const double share, network_share(is_layer ? layers(timeline_) : fusion(timeline_),
                                                        is_layer ? "layer" : "kernel", what));
        if (static_cast<size_t>(infer) < shares.size()) shares[static_cast<size_t>(infer)] = std::min(1.0, share);
        return shares;
      }
      case Selector::Kind::kRange: {
        shares = range_shares(timeline_, run_, what.name);
        if (std::all_of(shares.begin(), shares.end(), [](double share) { return share <= 0; }))
          return not_found("no range '" + what.name + "' inside a stage of the run");
        return shares;
      }
      case Selector::Kind::kTenant: {
        std::vector<std::string> names;
        for (const trace::Process& process : timeline_.processes)
          names.emplace_back(process.name == 0 ? std::to_string(process.pid) : timeline_.strings[process.name]);
        for (const trace::Process& process : timeline_.processes)
          if (is_tenant(timeline_, process.pid, what.name)) return std::vector<double>(run_.stages.size(), 1);
        return not_found("no tenant '" + what.name + "' in the trace" +
                         (names.empty() ? "" : "; " + suggest(what.name, names)));
      }
    }
    return shares;
  }

  Result<void> scale(PipelineModel& model, const Selector& what, double factor) const {
    STROBE_ASSIGN(const std::vector<double> selected, shares(what));
    for (size_t i = 0; i < selected.size(); ++i)
      for (double& work : model.stages[i].work_ns) work *= 1 - selected[i] + selected[i] * factor;
    return {};
  }

  Result<PipelineModel> changed(const WhatIfOptions& options, std::vector<std::string>& notes) const {
    PipelineModel model = model_;
    for (const Scale& scale : options.scales) STROBE_TRY(this->scale(model, scale.what, scale.factor));
    for (const Selector& what : options.removed) STROBE_TRY(scale(model, what, 0));
    if (options.queue) model.queue_capacity = *options.queue;
    if (options.cores) model.cores = static_cast<double>(*options.cores);
    if (options.sessions) use_sessions(model, *options.sessions, notes);
    // A stage without any work is gone together with its thread and its queue.
    for (const Selector& what : options.removed) {
      if (what.kind != Selector::Kind::kStage) continue;
      if (what.name == run_.stages.front())
        return usage_error("--remove stage:" + what.name + ": without its source nothing runs");
      std::erase_if(model.stages, [&](const StageModel& stage) { return stage.name == what.name; });
    }
    return model;
  }

 private:
  // The inference threads stay as many as they are.
  static void use_sessions(PipelineModel& model, int64_t sessions, std::vector<std::string>& notes) {
    for (StageModel& stage : model.stages) {
      if (stage.name != "infer") continue;
      const double threads = static_cast<double>(stage.workers) * std::max(1.0, std::round(stage.cores));
      const double each = std::max(1.0, std::floor(threads / static_cast<double>(sessions)));
      const double before = std::max(1.0, std::round(stage.cores));
      stage.workers = sessions;
      if (each == before) continue;
      stage.cores *= each / before;
      for (double& work : stage.work_ns) work *= before / each;
      notes.push_back("a session has " + std::to_string(static_cast<int64_t>(each)) + " threads then instead of " +
                      std::to_string(static_cast<int64_t>(before)) +
                      ": its work is taken to scale with them perfectly");
    }
  }

  const Timeline& timeline_;
  const PipelineRun& run_;
  PipelineModel model_;
};

Result<WhatIf> pipeline_what_if(const Timeline& timeline, const PipelineRun& run, const WhatIfOptions& options) {
  STROBE_ASSIGN(PipelineModel model, pipeline_model(timeline, run));
  const PipelineQuestion question(timeline, run, std::move(model));
  std::vector<std::string> notes;
  STROBE_ASSIGN(const PipelineModel changed, question.changed(options, notes));
  const PipelineOutcome measured = recorded_outcome(run), replay = simulate(question.model()),
                        after = simulate(changed);
  WhatIf answer = compare({measured.latency_ns, measured.finished_ns, measured.duration_ns},
                          {replay.latency_ns, replay.finished_ns, replay.duration_ns},
                          {after.latency_ns, after.finished_ns, after.duration_ns}, options.seed);
  if (run.dropped > 0)
    answer.answer.notes.push_back("frames that were dropped are not replayed: their number is taken not to change");
  for (std::string& note : notes) answer.answer.notes.push_back(std::move(note));
  std::map<std::string, double> before_path, after_path;
  for (size_t i = 0; i < replay.path_ns.size(); ++i) before_path[question.model().stages[i].name] = replay.path_ns[i];
  for (size_t i = 0; i < after.path_ns.size(); ++i) after_path[changed.stages[i].name] = after.path_ns[i];
  answer.path = path_table(before_path, after_path);
  if (!options.sweep) return answer;

  std::vector<SweepItem> items;
  double whole = 0;
  for (const StageModel& stage : changed.stages)
    for (const double work : stage.work_ns) whole += work;
  for (const StageModel& stage : changed.stages) {
    SweepItem item{.name = "stage:" + stage.name, .p50_ns = {}, .throughput = {}};
    for (const double work : stage.work_ns) item.time_share += work / whole;
    for (const double factor : kSweepFactors) {
      PipelineModel faster = changed;
      for (StageModel& other : faster.stages)
        if (other.name == stage.name)
          for (double& work : other.work_ns) work *= factor;
      const PipelineOutcome outcome = simulate(faster);
      item.p50_ns.push_back(median(outcome.latency_ns));
      item.throughput.push_back(outcome.throughput());
    }
    items.push_back(std::move(item));
  }
  answer.sweep = sweep_table(items, median(after.latency_ns), after.throughput());
  return answer;
}

}  // namespace

std::string Selector::text() const {
  for (const auto& [word, known] : kKinds)
    if (known == kind) return std::string(word) + ":" + name;
  return name;
}

Result<Selector> parse_selector(const std::string& text) {
  const size_t colon = text.find(':');
  if (colon != std::string::npos && colon + 1 < text.size())
    for (const auto& [word, kind] : kKinds)
      if (text.compare(0, colon, word) == 0) return Selector{kind, text.substr(colon + 1)};
  return usage_error("'" + text +
                     "' selects nothing: expected stage:NAME, layer:NAME, kernel:REGEX, range:NAME or tenant:NAME");
}

Result<Scale> parse_scale(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == std::string::npos)
    return usage_error("'" + text + "': expected SELECTOR=FACTOR, for example stage:infer=0.5");
  const std::string number = text.substr(equals + 1);
  char* end = nullptr;
  const double factor = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !std::isfinite(factor) || factor < 0)
    return usage_error("'" + text + "': expected a factor of 0 or more after '='");
  STROBE_ASSIGN(Selector what, parse_selector(text.substr(0, equals)));
  return Scale{std::move(what), factor};
}

Result<WhatIf> what_if(const Timeline& timeline, const WhatIfOptions& options) {
  for (const auto& [value, flag] : {std::pair(options.cores, "--cores"), std::pair(options.sessions, "--sessions"),
                                    std::pair(options.queue, "--queue")})
    if (value && (*value < 1 || *value > 4096)) return usage_error(std::string(flag) + ": expected 1 to 4096");
  const PipelineRun run = pipeline_run(timeline);
  if (options.range.empty() && run.has_run && !run.stages.empty()) return pipeline_what_if(timeline, run, options);
  if (options.cores || options.sessions || options.queue)
    return usage_error("--cores, --sessions and --queue need the trace of a pipeline's run");
  return device_what_if(timeline, options);
}

}  // namespace strobe::analyze
