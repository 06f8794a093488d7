#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <vector>

#include "scale/traces.h"
#include "trace/store.h"

namespace strobe::scale {

namespace {

using trace::StringId;

constexpr int32_t kPid = 4242;
constexpr size_t kQueue = 8;  // frames that may wait between two stages

struct Stage {
  const char* name;
  int64_t mean_ns;
  int operations;  // nested in it
  size_t threads;
};
constexpr std::array<Stage, 6> kStages{{{"read", 900'000, 4, 1},
                                        {"prep", 1'400'000, 12, 1},
                                        {"infer", 4'000'000, 150, 2},
                                        {"post", 700'000, 12, 1},
                                        {"draw", 500'000, 8, 1},
                                        {"write", 1'600'000, 8, 1}}};

class Simulation {
 public:
  trace::Timeline run(uint64_t count) {
    uint64_t of_frame = 0;
    for (const Stage& stage : kStages) of_frame += 1 + static_cast<uint64_t>(stage.operations);
    frames_ = std::max<size_t>(kQueue + 1, count / of_frame);
    t_.processes.push_back({kPid, t_.strings.intern("strobe")});
    add_lane("main");
    for (const Stage& stage : kStages) {
      first_lane_.push_back(static_cast<int32_t>(t_.lanes.size()));
      for (size_t i = 0; i < stage.threads; ++i) add_lane(std::string(stage.name) + " " + std::to_string(i));
      queue_names_.push_back(t_.strings.intern(std::string("queue:") + stage.name));
      stage_names_.push_back(t_.strings.intern(stage.name));
    }
    for (int i = 0; i < 60; ++i) operation_names_.push_back(t_.strings.intern("layer_" + std::to_string(i)));
    run_pipeline();
    add_network();
    t_.facts = {{"pipeline.stages", "read,prep,infer,post,draw,write"},
                {"engine", "synthetic"},
                {"cores", "2"},
                {"cpu.cores_allowed", "2"},
                {"model.trained", "true"}};
    t_.utc_start_ns = 1'790'000'000'000'000'000;
    t_.duration_ns = last_ns_ + 2'000'000;
    t_.finish();
    return std::move(t_);
  }

 private:
  void add_lane(const std::string& name) {
    t_.lanes.push_back(
        {trace::Lane::Kind::kThread, kPid, static_cast<int32_t>(kPid + t_.lanes.size()), t_.strings.intern(name)});
  }

  int32_t add_range(StringId name, int32_t lane, int64_t start, int64_t end, int64_t frame) {
    auto& r = t_.ranges;
    r.start_ns.push_back(start);
    r.end_ns.push_back(end);
    r.name.push_back(name);
    r.lane.push_back(lane);
    r.frame.push_back(frame);
    r.is_async.push_back(0);
    r.open.push_back(0);
    return static_cast<int32_t>(r.size() - 1);
  }

  // Groups of six operations, each group under one more range.
  void add_operations(const Stage& stage, int32_t lane, int64_t start, int64_t end) {
    constexpr int kGroup = 6;
    const int64_t step = (end - start) / (stage.operations + 1);
    for (int i = 0; i < stage.operations; ++i) {
      const int64_t from = start + i * step + step / 8;
      const StringId name = operation_names_[static_cast<size_t>(i) % operation_names_.size()];
      const bool heads_group = i % kGroup == 0 && i + 1 < stage.operations;
      const int last_of_group = std::min(i + kGroup, stage.operations) - 1;
      const int64_t to = heads_group ? start + (last_of_group + 1) * step : start + (i + 1) * step - step / 16;
      add_range(name, lane, from, to, trace::kNoFrame);
    }
  }

  void run_pipeline() {
    constexpr size_t kCount = kStages.size();
    std::vector<std::vector<int64_t>> begin(kCount, std::vector<int64_t>(frames_)), handed = begin;
    std::array<std::vector<int64_t>, kCount> free_at;
    for (size_t s = 0; s < kCount; ++s) free_at[s].assign(kStages[s].threads, kStart);
    std::lognormal_distribution<double> spread(0, 0.09);
    for (size_t f = 0; f < frames_; ++f) {
      int32_t before = trace::kNone, lane_before = trace::kNone;
      for (size_t s = 0; s < kCount; ++s) {
        const size_t thread = f % kStages[s].threads;
        const int32_t lane = first_lane_[s] + static_cast<int32_t>(thread);
        const int64_t ready = s == 0 ? kStart : handed[s - 1][f] + 4000;
        const int64_t start = begin[s][f] = std::max(ready, free_at[s][thread]);
        const int64_t end = start + static_cast<int64_t>(static_cast<double>(kStages[s].mean_ns) * spread(random_));
        handed[s][f] = end;
        // Waits for room: the next stage must have begun the frame that stands a queue's length ahead.
        if (s + 1 < kCount && f >= kQueue) handed[s][f] = std::max(end, begin[s + 1][f - kQueue]);
        free_at[s][thread] = handed[s][f];
        const int32_t range = add_range(stage_names_[s], lane, start, end, static_cast<int64_t>(f));
        add_operations(kStages[s], lane, start, end);
        if (before != trace::kNone) add_flow(s, before, lane_before, range, lane, start);
        before = range;
        lane_before = lane;
        last_ns_ = std::max(last_ns_, end);
      }
    }
    const int32_t run = add_range(t_.strings.intern("run"), 0, kStart, last_ns_, trace::kNoFrame);
    t_.arguments.range.push_back(run);
    t_.arguments.key.push_back(t_.strings.intern("cpu_ns"));
    t_.arguments.value.emplace_back(2 * (last_ns_ - kStart) * 9 / 10);
    for (size_t s = 1; s < kCount; ++s) add_depths(s, begin[s], handed[s - 1]);
  }

  void add_flow(size_t stage, int32_t from, int32_t from_lane, int32_t to, int32_t to_lane, int64_t at) {
    auto& f = t_.flows;
    f.name.push_back(queue_names_[stage]);
    f.from_ns.push_back(t_.ranges.end_ns[static_cast<size_t>(from)]);
    f.to_ns.push_back(at);
    f.from_range.push_back(from);
    f.to_range.push_back(to);
    f.from_lane.push_back(from_lane);
    f.to_lane.push_back(to_lane);
  }

  void add_depths(size_t stage, std::vector<int64_t> taken, std::vector<int64_t> given) {
    std::sort(taken.begin(), taken.end());
    std::sort(given.begin(), given.end());
    int depth = 0;
    for (size_t g = 0, t = 0; t < taken.size();) {
      const bool gives = g < given.size() && given[g] <= taken[t];
      depth += gives ? 1 : -1;
      t_.counters.time_ns.push_back(gives ? given[g++] : taken[t++]);
      t_.counters.name.push_back(queue_names_[stage]);
      t_.counters.pid.push_back(kPid);
      t_.counters.value.push_back(std::max(0, depth));
    }
  }

  void add_network() {
    for (int i = 0; i < 60; ++i) {
      const StringId name = t_.strings.intern("layer_" + std::to_string(i));
      t_.layers.push_back(
          {name, t_.strings.intern("Convolution"), t_.strings.intern("64x52x52"), 36'864, 199'360'512, 1'000'000});
      t_.kernels.push_back({name, t_.strings.intern("Convolution"), 0, {i}, {}});
      for (int k = 0; k < 10; ++k)
        t_.kernels.back().duration_ns.push_back(60'000 + static_cast<int64_t>(random_() % 900));
    }
  }

  static constexpr int64_t kStart = 3'000'000;
  trace::Timeline t_;
  size_t frames_ = 0;
  std::vector<int32_t> first_lane_;
  std::vector<StringId> queue_names_, stage_names_, operation_names_;
  std::mt19937 random_{1};
  int64_t last_ns_ = kStart;
};

}  // namespace

Result<void> write_pipeline(const std::filesystem::path& path, uint64_t count) {
  return trace::write_store(Simulation().run(count), path);
}

}  // namespace strobe::scale
