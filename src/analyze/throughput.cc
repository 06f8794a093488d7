// throughput and stage_limits of pipeline.h.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "analyze/cells.h"
#include "analyze/notes.h"
#include "analyze/passes.h"
#include "analyze/pipeline.h"
#include "analyze/run_notes.h"

namespace strobe::analyze {

namespace {

constexpr const char* kInferenceStage = "infer";

std::string fact(const trace::Timeline& timeline, const char* key) {
  const auto found = timeline.facts.find(key);
  return found == timeline.facts.end() ? std::string() : found->second;
}

// The cores that the run was allowed, which a container's quota may make a fraction.
std::optional<double> core_count(const trace::Timeline& timeline) {
  const std::string text = fact(timeline, "cores");
  double cores = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), cores);
  if (error != std::errc() || end != text.data() + text.size() || !(cores > 0) || !std::isfinite(cores)) return {};
  return cores;
}

Cell cores_cell(std::optional<double> cores) {
  if (!cores) return {};
  if (*cores == std::floor(*cores) && *cores < 1e6) return static_cast<int64_t>(*cores);
  return *cores;
}

double frames_per_second(double frames, int64_t duration_ns) {
  return frames * 1e9 / static_cast<double>(duration_ns);
}
double alone_fps(const AlonePass& pass) {
  return frames_per_second(static_cast<double>(pass.frames), pass.duration_ns);
}
double cpu_per_frame_ns(const AlonePass& pass) {
  return static_cast<double>(pass.cpu_ns) / static_cast<double>(pass.frames);
}

const AlonePass* alone_pass(const PipelineRun& run, const std::string& stage) {
  for (const AlonePass& pass : run.alone)
    if (pass.stage == stage) return &pass;
  return nullptr;
}

// Frames through a stage in the run itself, by the time in which it was busy: what it reached beside the others.
std::optional<double> busy_fps(const PipelineRun& run, const std::string& name) {
  const auto stage = std::find(run.stages.begin(), run.stages.end(), name) - run.stages.begin();
  if (static_cast<size_t>(stage) == run.stages.size() || run.busy_ns[static_cast<size_t>(stage)] <= 0) return {};
  const auto count =
      std::count_if(run.passes.begin(), run.passes.end(), [&](const Pass& p) { return p.stage == stage; });
  return frames_per_second(static_cast<double>(count), run.busy_ns[static_cast<size_t>(stage)]);
}

struct Limit {
  std::optional<double> fps;
  std::string slowest_stage;
  std::optional<double> slowest_fps;
  std::optional<double> cpu_ms_per_frame, alone_cpu_ms_per_frame;
};

Limit limit_of(const PipelineRun& run, std::optional<double> cores, Table& table) {
  Limit limit;
  double cpu_ns = 0;
  std::string without_cpu;
  for (const AlonePass& pass : run.alone) {
    if (const double fps = alone_fps(pass); !limit.slowest_fps || fps < *limit.slowest_fps) {
      limit.slowest_fps = fps;
      limit.slowest_stage = pass.stage;
    }
    if (pass.cpu_ns > 0)
      cpu_ns += cpu_per_frame_ns(pass);
    else
      without_cpu += (without_cpu.empty() ? "" : ", ") + pass.stage;
  }
  limit.fps = limit.slowest_fps;
  if (cpu_ns > 0) limit.alone_cpu_ms_per_frame = cpu_ns / 1e6;
  // What the frames cost in the run, where that is known: beside other stages, caches are smaller than alone.
  const bool known = run.cpu_ns > 0 && run.finished > 0;
  if (known) cpu_ns = static_cast<double>(run.cpu_ns) / static_cast<double>(run.finished);
  if (cpu_ns > 0) limit.cpu_ms_per_frame = cpu_ns / 1e6;
  if (limit.fps && cpu_ns > 0 && cores) limit.fps = std::min(*limit.fps, *cores * 1e9 / cpu_ns);

  std::string without_pass;
  for (const std::string& stage : run.stages)
    if (!alone_pass(run, stage)) without_pass += (without_pass.empty() ? "" : ", ") + stage;
  if (!run.alone.empty() && !without_pass.empty())
    table.notes.push_back("limit_fps leaves out stages that were not run alone: " + without_pass);
  if (!without_cpu.empty() && !known)
    table.notes.push_back("limit_fps leaves out CPU time that was not recorded: " + without_cpu);
  if (!run.alone.empty() && !cores)
    table.notes.push_back("limit_fps leaves out the cores: the fact \"cores\" is missing or no number");
  return limit;
}

// What others took of the cores in a stretch of the recording, in cores.
struct Taken {
  double by_programs = 0, by_machines = 0;
};
Taken taken_of(int64_t busy_ns, int64_t stolen_ns, int64_t cpu_ns, int64_t duration_ns) {
  if (busy_ns <= 0 || duration_ns <= 0) return {};
  const auto duration = static_cast<double>(duration_ns);
  return {static_cast<double>(busy_ns - cpu_ns) / duration, static_cast<double>(stolen_ns) / duration};
}

// Figures of a run that had not the machine to itself are not those of the machine.
void note_others(const PipelineRun& run, std::optional<double> cores, Table& table) {
  constexpr double kWorthSaying = 0.05;  // of the cores
  if (!cores) return;
  const auto say = [&](const Taken& taken, const char* when, const char* consequence) {
    for (const auto& [amount, who] :
         {std::pair{taken.by_programs, "other programs"}, std::pair{taken.by_machines, "other virtual machines"}})
      if (amount >= kWorthSaying * *cores)
        table.notes.push_back(
            fmt::format("{} took {:.2g} of the {:.3g} cores {}: {}", who, amount, *cores, when, consequence));
  };
  say(taken_of(run.machine_busy_ns, run.machine_stolen_ns, run.cpu_ns, run.end_ns - run.start_ns), "during the run",
      "its FPS and latencies are not those of a quiet machine");
  AlonePass all;
  for (const AlonePass& pass : run.alone) {
    all.duration_ns += pass.duration_ns;
    all.cpu_ns += pass.cpu_ns;
    all.machine_busy_ns += pass.machine_busy_ns;
    all.machine_stolen_ns += pass.machine_stolen_ns;
  }
  say(taken_of(all.machine_busy_ns, all.machine_stolen_ns, all.cpu_ns, all.duration_ns),
      "while the stages ran by themselves", "inference_fps and limit_fps are lower than on a quiet machine");
}

}  // namespace

Table throughput(const trace::Timeline& timeline) {
  const PipelineRun run = pipeline_run(timeline);
  Table table("Throughput",
              {{"engine", "what ran the network"},
               {"frames", "frames that finished inside the run", 0},
               {"dropped", "frames that the pipeline dropped", 0},
               {"inference_fps", "frames per second of the inference stage alone", 2},
               {"end_to_end_fps", "finished frames / duration of the run", 2},
               {"limit_fps", "slowest stage alone, or cores / CPU time of all stages per frame if that is less", 2},
               {"limit_share", "end_to_end_fps / limit_fps"},
               {"slowest_stage", "the stage with the lowest rate alone"},
               {"slowest_stage_fps", "its rate", 2},
               {"cpu_ms_per_frame", "CPU time of all stages for a frame, in the run"},
               {"cpu_alone_ms_per_frame", "the same with each stage run by itself: less, as it has the caches alone"},
               {"cores", "cores that the run was allowed", 0}});
  const std::optional<double> cores = core_count(timeline);
  Limit limit = limit_of(run, cores, table);
  if (run.alone.empty()) {
    for (const std::string& stage : run.stages) {
      const auto fps = busy_fps(run, stage);
      if (!fps || (limit.slowest_fps && *fps >= *limit.slowest_fps)) continue;
      limit.slowest_fps = fps;
      limit.slowest_stage = stage;
    }
    if (limit.slowest_fps)
      table.notes.push_back(
          "no stage was run alone: no limit is known, and the slowest stage is that of the run itself");
  }
  std::optional<double> inference;
  if (const AlonePass* pass = alone_pass(run, kInferenceStage)) {
    inference = alone_fps(*pass);
  } else if (inference = busy_fps(run, kInferenceStage); inference) {
    table.notes.push_back(
        "inference_fps is taken from the run itself, beside the other stages: infer was not run alone");
  }
  std::optional<double> end_to_end;
  if (run.has_run && run.end_ns > run.start_ns)
    end_to_end = frames_per_second(static_cast<double>(run.finished), run.end_ns - run.start_ns);
  std::optional<double> share;
  if (end_to_end && limit.fps) share = *end_to_end / *limit.fps;

  const std::string engine = fact(timeline, "engine");
  table.add_row({cell(engine), static_cast<int64_t>(run.finished), static_cast<int64_t>(run.dropped), cell(inference),
                 cell(end_to_end), cell(limit.fps), cell(share), cell(limit.slowest_stage), cell(limit.slowest_fps),
                 cell(limit.cpu_ms_per_frame), cell(limit.alone_cpu_ms_per_frame), cores_cell(cores)});
  note_others(run, cores, table);
  note_run(run, table);
  note_losses(timeline, table);
  return table;
}

Table stage_limits(const trace::Timeline& timeline) {
  const PipelineRun run = pipeline_run(timeline);
  Table table("Stages alone", {{"stage", "stage of the pipeline, run by itself after the run"},
                               {"frames", "frames that it was given", 0},
                               {"alone_fps", "its rate alone", 2},
                               {"cpu_ms_per_frame", "CPU time of the process for a frame"}});
  for (const AlonePass& pass : run.alone)
    table.add_row({pass.stage, pass.frames, alone_fps(pass), cell_if(pass.cpu_ns > 0, cpu_per_frame_ns(pass) / 1e6)});
  if (run.alone.empty()) table.notes.push_back("no stage was run alone in this trace");
  note_losses(timeline, table);
  return table;
}

}  // namespace strobe::analyze
