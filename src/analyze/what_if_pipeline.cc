#include "analyze/what_if_pipeline.h"

#include <algorithm>
#include <cstdlib>
#include <map>

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

// How long each piece of work was ready before it started: its worker was free, and the stage before had handed its
// batch over. More than a scheduler explains is no delay of it, and left to show as an error of the replay.
void find_delays(const Timeline& timeline, const PipelineRun& run, PipelineModel& model) {
  constexpr double kLongest = 10e6;
  const trace::Ranges& ranges = timeline.ranges;
  const int64_t back_pressure = timeline.strings.find("back-pressure");
  std::map<int64_t, size_t> stage_of;
  for (size_t i = 0; i < model.stages.size(); ++i) {
    stage_of[timeline.strings.find(model.stages[i].name)] = i;
    model.stages[i].delay_ns.assign(model.stages[i].work_ns.size(), 0);
  }
  const auto batch_size = static_cast<size_t>(model.batch);
  const size_t batches = (model.frames.size() + batch_size - 1) / batch_size;
  // When a stage had handed a batch over.
  std::vector<std::vector<int64_t>> handed(model.stages.size(), std::vector<int64_t>(batches, run.start_ns));
  std::vector<int64_t> free_at(timeline.lanes.size(), run.start_ns);
  std::vector<size_t> stage_on(timeline.lanes.size(), model.stages.size());
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.start_ns[i] < run.start_ns || ranges.end_ns[i] > run.end_ns) continue;
    const auto frame = std::lower_bound(model.frames.begin(), model.frames.end(), ranges.frame[i]);
    const bool is_known = frame != model.frames.end() && *frame == ranges.frame[i];
    const auto index = static_cast<size_t>(frame - model.frames.begin());
    const auto lane = static_cast<size_t>(ranges.lane[i]);
    if (ranges.name[i] == back_pressure) {
      free_at[lane] = ranges.end_ns[i];
      if (is_known && stage_on[lane] < handed.size()) handed[stage_on[lane]][index / batch_size] = ranges.end_ns[i];
      continue;
    }
    const auto stage = stage_of.find(ranges.name[i]);
    if (stage == stage_of.end() || free_at[lane] > ranges.start_ns[i]) continue;
    const size_t at = stage->second;
    if (is_known) {
      const int64_t ready = std::max(free_at[lane], at == 0 ? run.start_ns : handed[at - 1][index / batch_size]);
      const auto delay = static_cast<double>(std::max<int64_t>(0, ranges.start_ns[i] - ready));
      const bool is_first = index == 0 && at == 0;  // what comes before it is not the pipeline's
      if (delay <= kLongest && !is_first)
        model.stages[at].delay_ns[model.stages[at].per_batch ? index / batch_size : index] = delay;
      handed[at][index / batch_size] = ranges.end_ns[i];
    }
    free_at[lane] = ranges.end_ns[i];
    stage_on[lane] = at;
  }
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
    StageModel stage;
    stage.name = name;
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
  find_delays(timeline, run, model);
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
