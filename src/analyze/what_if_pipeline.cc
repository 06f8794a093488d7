#include "analyze/what_if_pipeline.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include "base/statistics.h"

namespace strobe::analyze {

using trace::Timeline;

namespace {

double fact(const Timeline& timeline, const char* name, double otherwise) {
  const auto found = timeline.facts.find(name);
  if (found == timeline.facts.end()) return otherwise;
  const double value = std::strtod(found->second.c_str(), nullptr);
  return value > 0 ? value : otherwise;
}

// A recorded piece of work and what it would have taken alone.
struct Piece {
  int64_t start_ns, end_ns;
  size_t stage;
  double* work_ns;
};

// One sweep over starts and ends: between two of them everything that is open goes at the same rate.
void remove_stretch(const PipelineModel& model, std::vector<Piece>& pieces) {
  struct Turn {
    int64_t time;
    size_t piece;
    bool start;
  };
  std::vector<Turn> turns;
  for (size_t i = 0; i < pieces.size(); ++i) {
    turns.push_back({pieces[i].start_ns, i, true});
    turns.push_back({pieces[i].end_ns, i, false});
  }
  std::sort(turns.begin(), turns.end(),
            [](const Turn& a, const Turn& b) { return a.time != b.time ? a.time < b.time : a.start < b.start; });
  // Work done by anything that is open since the beginning.
  double done = 0, demand = 0;
  int64_t at = turns.empty() ? 0 : turns.front().time;
  std::vector<double> done_at_start(pieces.size(), 0);
  for (const Turn& turn : turns) {
    done += static_cast<double>(turn.time - at) * work_rate(model, demand);
    at = turn.time;
    const double cores = model.stages[pieces[turn.piece].stage].cores;
    if (turn.start) {
      demand += cores;
      done_at_start[turn.piece] = done;
    } else {
      demand -= cores;
      *pieces[turn.piece].work_ns = done - done_at_start[turn.piece];
    }
  }
}

// Cores that a worker of each stage keeps busy, and how much slower everything is beside others than alone.
void use_passes_alone(const PipelineRun& run, PipelineModel& model) {
  double cpu_alone = 0;
  size_t known = 0;
  for (const AlonePass& alone : run.alone) {
    const auto stage = std::find_if(model.stages.begin(), model.stages.end(),
                                    [&](const StageModel& s) { return s.name == alone.stage; });
    if (stage == model.stages.end() || alone.cpu_ns <= 0) continue;
    const double busy = static_cast<double>(alone.cpu_ns) / static_cast<double>(alone.duration_ns);
    stage->cores = std::clamp(busy / static_cast<double>(stage->workers), 0.05, model.cores);
    cpu_alone += static_cast<double>(alone.cpu_ns) / static_cast<double>(alone.frames);
    ++known;
  }
  if (known < model.stages.size() || run.cpu_ns <= 0 || run.finished == 0 || model.cores < 2) return;
  const double cpu = static_cast<double>(run.cpu_ns) / static_cast<double>(run.finished);
  constexpr double kMost = 0.5;
  model.slowdown = std::clamp(cpu / cpu_alone - 1, 0.0, kMost);
}

// The median gap between two reads that nothing held up: what a thread needs from one piece of work to the next.
double turnaround(const Timeline& timeline, const PipelineRun& run) {
  const int64_t name = timeline.strings.find(run.stages.front());
  const int64_t back_pressure = timeline.strings.find("back-pressure");
  std::vector<double> gaps;
  int64_t end = -1;
  int32_t lane = trace::kNone;
  const trace::Ranges& ranges = timeline.ranges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.start_ns[i] < run.start_ns || ranges.end_ns[i] > run.end_ns) continue;
    if (ranges.name[i] == back_pressure && ranges.lane[i] == lane) end = -1;
    if (ranges.name[i] != name) continue;
    if (end >= 0 && lane == ranges.lane[i]) gaps.push_back(static_cast<double>(ranges.start_ns[i] - end));
    end = ranges.end_ns[i];
    lane = ranges.lane[i];
  }
  return gaps.empty() ? 0 : quantile(gaps, 0.5);
}

}  // namespace

Result<PipelineModel> pipeline_model(const Timeline& timeline, const PipelineRun& run) {
  if (!run.has_run || run.finished == 0)
    return not_found("the trace has no pipeline's run with finished frames; give --range to replay another trace");
  PipelineModel model;
  model.cores = fact(timeline, "cores", 1);
  model.queue_capacity = static_cast<int64_t>(fact(timeline, "pipeline.queue_capacity", 4));
  model.batch = static_cast<int64_t>(fact(timeline, "pipeline.batch", 1));
  const auto kind = timeline.facts.find("input.kind");
  const bool is_live = kind != timeline.facts.end() && (kind->second == "rtsp" || kind->second == "camera");
  bool after_parallel = false;
  for (const std::string& name : run.stages) {
    StageModel stage{.name = name, .work_ns = {}};
    if (name == "infer") {
      stage.workers = static_cast<int64_t>(fact(timeline, "pipeline.sessions", 1));
      stage.cores = std::min(model.cores, fact(timeline, "pipeline.threads_per_session", 1));
      stage.per_batch = true;
    }
    stage.ordered = after_parallel;
    after_parallel |= name == "infer";
    model.stages.push_back(std::move(stage));
  }
  use_passes_alone(run, model);

  for (const Frame& frame : run.frames)
    if (frame.finished) model.frames.push_back(frame.id);
  const size_t batches =
      (model.frames.size() + static_cast<size_t>(model.batch) - 1) / static_cast<size_t>(model.batch);
  for (StageModel& stage : model.stages) stage.work_ns.assign(stage.per_batch ? batches : model.frames.size(), 0);
  std::vector<Piece> pieces;
  std::map<std::pair<int64_t, size_t>, double*> seen;  // a batch's one piece of work, by its start
  std::vector<double> ignored(run.passes.size(), 0);   // work of frames that did not finish: it took cores all the same
  size_t index = 0;
  for (const Frame& frame : run.frames) {
    for (size_t i = frame.first_pass; i < frame.first_pass + frame.pass_count; ++i) {
      const Pass& pass = run.passes[i];
      const auto at = static_cast<size_t>(pass.stage);
      StageModel& stage = model.stages[at];
      double* work = frame.finished ? &stage.work_ns[stage.per_batch ? index / static_cast<size_t>(model.batch) : index]
                                    : &ignored[i];
      if (stage.per_batch && model.batch > 1 && !seen.try_emplace({pass.start_ns, at}, work).second) continue;
      pieces.push_back({pass.start_ns, pass.end_ns, at, work});
    }
    if (frame.finished) ++index;
  }
  remove_stretch(model, pieces);
  model.turnaround_ns = turnaround(timeline, run);
  int64_t first = run.end_ns, last = run.start_ns;
  for (const Frame& frame : run.frames) {
    first = std::min(first, frame.start_ns);
    last = std::max(last, frame.end_ns);
  }
  model.around_ns = static_cast<double>((first - run.start_ns) + (run.end_ns - last));
  if (is_live)
    for (const Pass& pass : run.passes) {
      const bool finished = std::binary_search(model.frames.begin(), model.frames.end(), pass.frame);
      if (pass.stage == 0 && finished) model.arrival_ns.push_back(static_cast<double>(pass.end_ns - first));
    }
  if (model.arrival_ns.size() != model.frames.size()) model.arrival_ns.clear();
  return model;
}

PipelineOutcome recorded_outcome(const PipelineRun& run) {
  PipelineOutcome outcome;
  for (const Frame& frame : run.frames) {
    if (!frame.finished) continue;
    outcome.latency_ns.push_back(static_cast<double>(frame.end_ns - frame.start_ns));
    outcome.finished_ns.push_back(static_cast<double>(frame.end_ns - run.start_ns));
  }
  outcome.duration_ns = static_cast<double>(run.end_ns - run.start_ns);
  return outcome;
}

}  // namespace strobe::analyze
