#include "analyze/passes.h"

#include <algorithm>
#include <tuple>

namespace strobe::analyze {

using trace::kNoFrame;
using trace::kNone;
using trace::Ranges;
using trace::StringId;
using trace::Timeline;

namespace {

std::vector<std::string> stage_names(const Timeline& timeline) {
  std::vector<std::string> names;
  const auto fact = timeline.facts.find("pipeline.stages");
  if (fact == timeline.facts.end()) return names;
  std::string name;
  for (const char c : fact->second + ",") {
    if (c != ',') {
      name += c;
      continue;
    }
    if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    name.clear();
  }
  return names;
}

// The arguments of one range: they stand together and in the order of ranges, so a walk over ranges needs one cursor.
class ArgumentCursor {
 public:
  explicit ArgumentCursor(const trace::Arguments& arguments) : arguments_(arguments) {}

  template <typename Visit>
  void visit(size_t range, Visit visit_one) {
    while (at_ < arguments_.size() && static_cast<size_t>(arguments_.range[at_]) < range) ++at_;
    for (size_t i = at_; i < arguments_.size() && static_cast<size_t>(arguments_.range[i]) == range; ++i)
      visit_one(arguments_.key[i], arguments_.value[i]);
  }

 private:
  const trace::Arguments& arguments_;
  size_t at_ = 0;
};

void find_run(const Timeline& timeline, PipelineRun& run) {
  const Ranges& ranges = timeline.ranges;
  const int64_t name = timeline.strings.find("run");
  const std::pair<int64_t, int64_t*> numbers[] = {{timeline.strings.find("cpu_ns"), &run.cpu_ns},
                                                  {timeline.strings.find("machine_busy_ns"), &run.machine_busy_ns},
                                                  {timeline.strings.find("machine_stolen_ns"), &run.machine_stolen_ns}};
  ArgumentCursor arguments(timeline.arguments);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.name[i] != name) continue;
    if (run.has_run) {
      ++run.further_runs;
      continue;
    }
    run.has_run = true;
    run.open = ranges.open[i] != 0;
    run.start_ns = ranges.start_ns[i];
    run.end_ns = ranges.end_ns[i];
    arguments.visit(i, [&](StringId key, const auto& value) {
      const auto* number = std::get_if<int64_t>(&value);
      for (const auto& [wanted, target] : numbers)
        if (number && key == wanted) *target = *number;
    });
  }
}

void find_passes(const Timeline& timeline, PipelineRun& run) {
  const Ranges& ranges = timeline.ranges;
  std::vector<int32_t> stage_of_name(timeline.strings.size(), kNone);
  for (size_t i = 0; i < run.stages.size(); ++i)
    if (const int64_t id = timeline.strings.find(run.stages[i]); id != kNone)
      stage_of_name[static_cast<size_t>(id)] = static_cast<int32_t>(i);
  const int64_t also_frame = timeline.strings.find("also_frame"), no_frame = timeline.strings.find("no_frame");
  ArgumentCursor arguments(timeline.arguments);
  std::vector<int64_t> busy_until(run.stages.size(), run.start_ns);
  // Inside a stage's range, a range of the same name (an engine may have its own "infer") is not another pass.
  std::vector<int32_t> inside(ranges.size(), kNone);
  for (size_t i = 0; i < ranges.size(); ++i) {
    const int32_t outer = ranges.parent[i] == kNone ? kNone : inside[static_cast<size_t>(ranges.parent[i])];
    const int32_t stage = outer != kNone ? outer : stage_of_name[ranges.name[i]];
    inside[i] = stage;
    if (stage == kNone || outer != kNone || ranges.open[i] || ranges.frame[i] == kNoFrame) continue;
    const int64_t start = ranges.start_ns[i], end = ranges.end_ns[i];
    if (start < run.start_ns || end > run.end_ns) continue;
    const size_t first_of_range = run.passes.size();
    run.passes.push_back({ranges.frame[i], stage, start, end});
    bool brought_frame = true;
    arguments.visit(i, [&](StringId key, const auto& value) {
      if (key == no_frame) brought_frame = false;
      if (key != also_frame) return;
      if (const auto* frame = std::get_if<int64_t>(&value)) run.passes.push_back({*frame, stage, start, end});
    });
    if (!brought_frame) {
      run.passes.resize(first_of_range);
      continue;
    }
    int64_t& until = busy_until[static_cast<size_t>(stage)];
    if (end > until) {
      run.busy_ns[static_cast<size_t>(stage)] += end - std::max(start, until);
      until = end;
    }
  }
  std::sort(run.passes.begin(), run.passes.end(), [](const Pass& a, const Pass& b) {
    return std::tie(a.frame, a.stage, a.start_ns) < std::tie(b.frame, b.stage, b.start_ns);
  });
}

std::vector<int64_t> dropped_frames(const Timeline& timeline, PipelineRun& run) {
  std::vector<int64_t> frames;
  const int64_t drop = timeline.strings.find("drop");
  for (size_t i = 0; i < timeline.marks.size(); ++i) {
    const int64_t time = timeline.marks.time_ns[i];
    if (timeline.marks.name[i] != drop || time < run.start_ns || time > run.end_ns) continue;
    ++run.dropped;
    frames.push_back(timeline.marks.frame[i]);
  }
  std::sort(frames.begin(), frames.end());
  return frames;
}

void find_frames(const Timeline& timeline, PipelineRun& run) {
  const std::vector<int64_t> dropped = dropped_frames(timeline, run);
  const auto last_stage = static_cast<int32_t>(run.stages.size()) - 1;
  for (size_t i = 0; i < run.passes.size();) {
    Frame frame{run.passes[i].frame, i, 0, false, run.passes[i].start_ns, run.passes[i].end_ns};
    const bool has_first = run.passes[i].stage == 0;
    bool has_last = false;
    for (; i < run.passes.size() && run.passes[i].frame == frame.id; ++i, ++frame.pass_count) {
      if (run.passes[i].stage != last_stage) continue;
      frame.end_ns = has_last ? std::max(frame.end_ns, run.passes[i].end_ns) : run.passes[i].end_ns;
      has_last = true;
    }
    frame.finished = has_first && has_last && frame.end_ns >= frame.start_ns;
    if (frame.finished)
      ++run.finished;
    else if (!std::binary_search(dropped.begin(), dropped.end(), frame.id))
      ++run.unfinished;
    run.frames.push_back(frame);
  }
}

void find_alone(const Timeline& timeline, PipelineRun& run) {
  const Ranges& ranges = timeline.ranges;
  const int64_t alone = timeline.strings.find("alone");
  const int64_t stage_key = timeline.strings.find("stage"), frames_key = timeline.strings.find("frames"),
                cpu_key = timeline.strings.find("cpu_ns"), busy_key = timeline.strings.find("machine_busy_ns"),
                stolen_key = timeline.strings.find("machine_stolen_ns");
  ArgumentCursor arguments(timeline.arguments);
  for (size_t i = 0; i < ranges.size(); ++i) {
    if (ranges.name[i] != alone || ranges.open[i]) continue;
    AlonePass pass;
    pass.duration_ns = ranges.end_ns[i] - ranges.start_ns[i];
    arguments.visit(i, [&](StringId key, const auto& value) {
      if (const auto* text = std::get_if<StringId>(&value); text && key == stage_key)
        pass.stage = timeline.strings[*text];
      if (const auto* number = std::get_if<int64_t>(&value)) {
        if (key == frames_key) pass.frames = *number;
        if (key == cpu_key) pass.cpu_ns = *number;
        if (key == busy_key) pass.machine_busy_ns = *number;
        if (key == stolen_key) pass.machine_stolen_ns = *number;
      }
    });
    if (pass.stage.empty() || pass.frames <= 0 || pass.duration_ns <= 0) continue;
    const auto same = std::find_if(run.alone.begin(), run.alone.end(),
                                   [&](const AlonePass& other) { return other.stage == pass.stage; });
    if (same == run.alone.end()) {
      run.alone.push_back(pass);
      continue;
    }
    same->frames += pass.frames;
    same->duration_ns += pass.duration_ns;
    same->cpu_ns += pass.cpu_ns;
    same->machine_busy_ns += pass.machine_busy_ns;
    same->machine_stolen_ns += pass.machine_stolen_ns;
  }
  const auto place = [&run](const AlonePass& pass) {
    return std::find(run.stages.begin(), run.stages.end(), pass.stage) - run.stages.begin();
  };
  std::stable_sort(run.alone.begin(), run.alone.end(),
                   [&](const AlonePass& a, const AlonePass& b) { return place(a) < place(b); });
}

}  // namespace

PipelineRun pipeline_run(const Timeline& timeline) {
  PipelineRun run;
  run.stages = stage_names(timeline);
  run.busy_ns.assign(run.stages.size(), 0);
  find_run(timeline, run);
  if (run.has_run && !run.stages.empty()) {
    find_passes(timeline, run);
    find_frames(timeline, run);
  }
  find_alone(timeline, run);
  return run;
}

}  // namespace strobe::analyze
