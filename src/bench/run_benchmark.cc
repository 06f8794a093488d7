#include "bench/run_benchmark.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <unordered_map>
#include <utility>

#include "analyze/passes.h"
#include "base/file.h"
#include "bench/environment.h"
#include "bench/warmup.h"

namespace strobe::bench {
namespace {

constexpr double kNsPerMs = 1e6;

struct Span {
  int64_t start_ns = std::numeric_limits<int64_t>::max(), end_ns = std::numeric_limits<int64_t>::min();
  void add(int64_t start, int64_t end) {
    start_ns = std::min(start_ns, start);
    end_ns = std::max(end_ns, end);
  }
  double ms() const { return end_ns > start_ns ? static_cast<double>(end_ns - start_ns) / kNsPerMs : 0; }
};

struct BatchOfFrames {
  int64_t items = 0, end_ns = 0;
  std::vector<int64_t> stage_ns;
  std::vector<Span> stage_gpu;
  Span gpu;
};

// Frames whose pass through the stage of inference is the same range are one batch.
class Batches {
 public:
  Batches(const analyze::PipelineRun& run, const trace::Timeline& timeline) : run_(run) {
    const auto infer = std::find(run.stages.begin(), run.stages.end(), "infer");
    const int32_t infer_stage = infer == run.stages.end() ? -1 : static_cast<int32_t>(infer - run.stages.begin());
    std::map<std::pair<int64_t, int64_t>, size_t> by_inference;
    for (const auto& frame : run.frames) {
      if (!frame.finished) continue;
      const size_t batch = batch_of(frame, infer_stage, by_inference);
      of_frame_[frame.id] = batch;
      add(batches_[batch], frame);
    }
    add_device_work(timeline);
  }

  const std::vector<BatchOfFrames>& all() const { return batches_; }

 private:
  size_t batch_of(const analyze::Frame& frame, int32_t infer_stage,
                  std::map<std::pair<int64_t, int64_t>, size_t>& by_inference) {
    for (size_t i = frame.first_pass; i < frame.first_pass + frame.pass_count; ++i) {
      const auto& pass = run_.passes[i];
      if (pass.stage != infer_stage) continue;
      const auto [known, is_new] = by_inference.try_emplace({pass.start_ns, pass.end_ns}, batches_.size());
      if (!is_new) return known->second;
      break;
    }
    BatchOfFrames made;
    made.stage_ns.resize(run_.stages.size());
    made.stage_gpu.resize(run_.stages.size());
    batches_.push_back(std::move(made));
    counted_.emplace_back();
    return batches_.size() - 1;
  }

  void add(BatchOfFrames& batch, const analyze::Frame& frame) {
    auto& counted = counted_[static_cast<size_t>(&batch - batches_.data())];
    ++batch.items;
    batch.end_ns = std::max(batch.end_ns, frame.end_ns);
    for (size_t i = frame.first_pass; i < frame.first_pass + frame.pass_count; ++i) {
      const auto& pass = run_.passes[i];
      // A batched range is a pass of each of its frames.
      if (!counted.emplace(pass.stage, pass.start_ns, pass.end_ns).second) continue;
      batch.stage_ns[static_cast<size_t>(pass.stage)] += pass.end_ns - pass.start_ns;
    }
  }

  void add_device_work(const trace::Timeline& timeline) {
    const auto& ranges = timeline.ranges;
    for (const auto& op : timeline.device_ops) {
      if (op.range == trace::kNone || op.launch == trace::kNone) continue;
      const auto device = static_cast<size_t>(op.range);
      const auto batch = of_frame_.find(ranges.frame[static_cast<size_t>(op.launch)]);
      if (batch == of_frame_.end()) continue;
      BatchOfFrames& work = batches_[batch->second];
      work.gpu.add(ranges.start_ns[device], ranges.end_ns[device]);
      for (int32_t at = op.launch; at != trace::kNone; at = ranges.parent[static_cast<size_t>(at)]) {
        const auto stage =
            std::find(run_.stages.begin(), run_.stages.end(), timeline.strings[ranges.name[static_cast<size_t>(at)]]);
        if (stage == run_.stages.end()) continue;
        work.stage_gpu[static_cast<size_t>(stage - run_.stages.begin())].add(ranges.start_ns[device],
                                                                             ranges.end_ns[device]);
        break;
      }
    }
  }

  const analyze::PipelineRun& run_;
  std::vector<BatchOfFrames> batches_;
  std::vector<std::set<std::tuple<int32_t, int64_t, int64_t>>> counted_;
  std::unordered_map<int64_t, size_t> of_frame_;
};

}  // namespace

Result<RangeTimes> run_ranges(const trace::Timeline& timeline) {
  const analyze::PipelineRun run = analyze::pipeline_run(timeline);
  if (!run.has_run) return bad_data("the timeline holds no run of a pipeline");
  const Batches batches(run, timeline);
  if (batches.all().empty()) return bad_data("the run finished no frame");
  const std::string sample = std::string(kRunName) + "/run_sample", pipeline = sample + "/pipeline";
  RangeTimes out;
  Span gpu;
  int64_t before_ns = run.start_ns;
  for (size_t i = 0; i < batches.all().size(); ++i) {
    const BatchOfFrames& batch = batches.all()[i];
    const std::string path = pipeline + "/batch_" + std::to_string(i);
    for (size_t stage = 0; stage < run.stages.size(); ++stage) {
      if (batch.stage_ns[stage] == 0) continue;
      out.push_back({.path = path + "/" + run.stages[stage],
                     .cpu_ms = static_cast<double>(batch.stage_ns[stage]) / kNsPerMs,
                     .gpu_ms = batch.stage_gpu[stage].ms(),
                     .inside = true});
    }
    const int64_t end_ns = std::max(before_ns, batch.end_ns);
    out.push_back({.path = path,
                   .cpu_ms = static_cast<double>(end_ns - before_ns) / kNsPerMs,
                   .gpu_ms = batch.gpu.ms(),
                   .batch = BatchMark{static_cast<int64_t>(i), batch.items}});
    before_ns = end_ns;
    if (batch.gpu.ms() > 0) gpu.add(batch.gpu.start_ns, batch.gpu.end_ns);
  }
  out.push_back(
      {.path = pipeline, .cpu_ms = static_cast<double>(before_ns - run.start_ns) / kNsPerMs, .gpu_ms = gpu.ms()});
  out.push_back(
      {.path = sample, .cpu_ms = static_cast<double>(run.end_ns - run.start_ns) / kNsPerMs, .gpu_ms = gpu.ms()});
  return out;
}

Result<void> write_run_benchmark(const trace::Timeline& timeline, const Warmup& warmup,
                                 const std::filesystem::path& output_dir, Json meta) {
  STROBE_ASSIGN(const RangeTimes ranges, run_ranges(timeline));
  STROBE_ASSIGN(const Rules rules, rules_of_environment());
  const Json file = benchmark_of(kRunName, ranges, resolve(warmup, ranges), rules, std::move(meta));
  return write_file(output_dir / "benchmark.json", file.dump(4, ' ', false, Json::error_handler_t::replace) + "\n");
}

}  // namespace strobe::bench
