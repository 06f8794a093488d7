#include "report/synthetic_timeline.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace strobe::report::test {

using trace::Timeline;

namespace {

class Simulation {
 public:
  explicit Simulation(const SyntheticOptions& options) : options_(options), random_(options.seed) {}

  Timeline run() {
    add_lanes();
    run_pipeline();
    if (options_.afterwards) {
      run_alone();
      add_network();
    }
    add_facts();
    t_.duration_ns = now_ + 2'000'000;
    t_.utc_start_ns = 1'790'000'000'000'000'000;
    t_.finish();
    return std::move(t_);
  }

 private:
  void add_lanes() {
    t_.processes.push_back({4242, t_.strings.intern("strobe")});
    add_lane("main");
    for (const auto& stage : options_.stages) add_lane("stage " + stage.name);
    for (const auto& stage : options_.stages) add_lane("alone " + stage.name);
  }
  void add_lane(const std::string& name) {
    t_.lanes.push_back(
        {trace::Lane::Kind::kThread, 4242, static_cast<int32_t>(4242 + t_.lanes.size()), t_.strings.intern(name)});
  }
  int32_t add_range(const std::string& name, size_t lane, int64_t start, int64_t end, int64_t frame = trace::kNoFrame) {
    auto& r = t_.ranges;
    r.start_ns.push_back(start);
    r.end_ns.push_back(end);
    r.name.push_back(t_.strings.intern(name));
    r.lane.push_back(static_cast<int32_t>(lane));
    r.frame.push_back(frame);
    r.parent.push_back(trace::kNone);
    r.is_async.push_back(0);
    r.open.push_back(0);
    return static_cast<int32_t>(r.size() - 1);
  }
  template <typename Value>
  void add_argument(int32_t range, const char* key, Value value) {
    t_.arguments.range.push_back(range);
    t_.arguments.key.push_back(t_.strings.intern(key));
    t_.arguments.value.emplace_back(value);
  }
  int64_t service_ns(const SyntheticStage& stage) {
    std::lognormal_distribution<double> spread(0, 0.09);
    std::uniform_real_distribution<double> chance(0, 1);
    const double hiccup = chance(random_) < 0.012 ? 1.9 : 1;
    return static_cast<int64_t>(stage.mean_ms * 1e6 * spread(random_) * hiccup);
  }

  void run_pipeline() {
    const size_t stages = options_.stages.size();
    const auto frames = static_cast<size_t>(options_.frames);
    const auto capacity = static_cast<size_t>(options_.queue_capacity);
    std::vector<std::vector<int64_t>> begin(stages, std::vector<int64_t>(frames));
    std::vector<std::vector<int64_t>> handed = begin;  // when the frame was in the next queue
    const int64_t run_start = 3'000'000;
    int64_t last = run_start;
    std::vector<int32_t> before(stages);
    for (size_t f = 0; f < frames; ++f) {
      for (size_t s = 0; s < stages; ++s) {
        const int64_t ready = s == 0 ? run_start : handed[s - 1][f] + 4'000;
        begin[s][f] = std::max(ready, f == 0 ? run_start : handed[s][f - 1]);
        const int64_t end = begin[s][f] + service_ns(options_.stages[s]);
        // Waits for room: the next stage must have begun the frame that stands a queue's length ahead.
        handed[s][f] = end;
        if (s + 1 < stages && f >= capacity) handed[s][f] = std::max(end, begin[s + 1][f - capacity]);
        const int32_t range = add_range(options_.stages[s].name, s + 1, begin[s][f], end, static_cast<int64_t>(f));
        if (options_.stages[s].name == "infer") add_nested(s + 1, begin[s][f], end);
        if (handed[s][f] > end + 50'000) add_range("back-pressure", s + 1, end, handed[s][f], static_cast<int64_t>(f));
        if (s > 0) add_flow(options_.stages[s].name, before[s - 1], s, handed[s - 1][f], range, begin[s][f]);
        before[s] = range;
        last = std::max(last, end);
      }
    }
    const int32_t run = add_range("run", 0, run_start, last);
    if (options_.cores_busy > 0)
      add_argument(run, "cpu_ns",
                   static_cast<int64_t>(options_.cores_busy * 2 * static_cast<double>(last - run_start)));
    add_depths(begin, handed);
    now_ = last;
  }
  void add_nested(size_t lane, int64_t start, int64_t end) {
    const int64_t step = (end - start) / std::max(1, options_.nested + 1);
    for (int i = 0; i < options_.nested; ++i)
      add_range("op " + std::to_string(i % 7), lane, start + i * step + step / 8, start + (i + 1) * step);
  }
  void add_flow(const std::string& to, int32_t from_range, size_t to_lane, int64_t from, int32_t to_range, int64_t at) {
    auto& f = t_.flows;
    f.name.push_back(t_.strings.intern("queue:" + to));
    f.from_ns.push_back(std::min(from, t_.ranges.end_ns[static_cast<size_t>(from_range)]));
    f.to_ns.push_back(at);
    f.from_range.push_back(from_range);
    f.to_range.push_back(to_range);
    f.from_lane.push_back(static_cast<int32_t>(to_lane));
    f.to_lane.push_back(static_cast<int32_t>(to_lane + 1));
  }
  void add_depths(const std::vector<std::vector<int64_t>>& begin, const std::vector<std::vector<int64_t>>& handed) {
    struct Step {
      int64_t time;
      size_t stage;
      int change;
    };
    std::vector<Step> steps;
    for (size_t s = 1; s < begin.size(); ++s) {
      for (const int64_t time : handed[s - 1]) steps.push_back({time, s, 1});
      for (const int64_t time : begin[s]) steps.push_back({time, s, -1});
    }
    std::stable_sort(steps.begin(), steps.end(), [](const Step& a, const Step& b) { return a.time < b.time; });
    std::vector<int> depth(begin.size());
    for (const Step& step : steps) {
      t_.counters.time_ns.push_back(step.time);
      t_.counters.name.push_back(t_.strings.intern("queue:" + options_.stages[step.stage].name));
      t_.counters.pid.push_back(4242);
      t_.counters.value.push_back(std::max(0, depth[step.stage] += step.change));
    }
  }

  void run_alone() {
    for (size_t s = 0; s < options_.stages.size(); ++s) {
      const auto& stage = options_.stages[s];
      const int64_t start = now_ + 5'000'000;
      const auto frames = std::max<int64_t>(8, static_cast<int64_t>(200 / stage.mean_ms));
      const auto length = static_cast<int64_t>(stage.mean_ms * 0.96e6 * static_cast<double>(frames));
      const int32_t range = add_range("alone", options_.stages.size() + 1 + s, start, start + length);
      add_argument(range, "stage", t_.strings.intern(stage.name));
      add_argument(range, "frames", frames);
      add_argument(range, "cpu_ns", length);
      now_ = start + length;
    }
  }

  // Blocks of convolution, batch norm and activation that halve the picture, as in a small detector.
  void add_network() {
    std::lognormal_distribution<double> spread(0, 0.05);
    int64_t channels = 16, size = 208;
    for (int block = 0; block < 18; ++block) {
      const std::string base = (block < 10 ? "00" : "0") + std::to_string(block) + "_convolutional";
      const int64_t flop = 2 * 9 * channels * channels * size * size / 4;
      const auto first = static_cast<int32_t>(t_.layers.size());
      const std::string shape = std::to_string(channels) + "x" + std::to_string(size) + "x" + std::to_string(size);
      add_layer(base, "Convolution", shape, flop, channels * channels * 9);
      add_layer(base + ".bn", "BatchNorm", shape, 2 * channels * size * size, 4 * channels);
      add_layer(base + ".leaky", "Activation", shape, channels * size * size, 0);
      const double conv_ns = static_cast<double>(flop) / (options_.fused ? 60 : 9);
      if (options_.fused) {
        add_kernel(base, "Convolution", "brgconv_avx512_f32", {first, first + 1, first + 2}, conv_ns, spread);
      } else {
        const double element_ns = static_cast<double>(channels * size * size) * 0.3;
        add_kernel("aten::mkldnn_convolution", "Convolution", "", {first}, conv_ns, spread);
        add_kernel("aten::batch_norm", "BatchNorm", "", {first + 1}, element_ns, spread);
        add_kernel("aten::leaky_relu_", "Activation", "", {first + 2}, element_ns / 2, spread);
      }
      if (block % 3 == 2 && size > 13) size /= 2, channels *= 2;
    }
  }
  void add_layer(const std::string& name, const char* type, const std::string& shape, int64_t flop,
                 int64_t parameters) {
    t_.layers.push_back({t_.strings.intern(name), t_.strings.intern(type), t_.strings.intern(shape), parameters, flop,
                         parameters * 4 + 1000});
  }
  void add_kernel(const std::string& name, const char* type, const char* implementation, std::vector<int32_t> layers,
                  double mean_ns, std::lognormal_distribution<double>& spread) {
    trace::NetworkKernel kernel{
        t_.strings.intern(name), t_.strings.intern(type), t_.strings.intern(implementation), std::move(layers), {}};
    for (int i = 0; i < 10; ++i) kernel.duration_ns.push_back(static_cast<int64_t>(mean_ns * spread(random_)));
    t_.kernels.push_back(std::move(kernel));
  }

  void add_facts() {
    std::string names;
    for (const auto& stage : options_.stages) names += (names.empty() ? "" : ",") + stage.name;
    t_.facts = {{"pipeline.stages", names},
                {"engine", options_.engine},
                {"cores", "2"},
                {"model.trained", "true"},
                {"cpu.model", "Example CPU @ 2.60 GHz"},
                {"cpu.cores_allowed", "2"},
                {"cpu.cores_online", "2"},
                {"cpu.l2_kib", "1024"},
                {"cpu.l3_kib", "32768"},
                {"cpu.features", "sse4_2 avx f16c fma avx2 avx512f avx512bw avx512vl avx512_vnni avx512_bf16"},
                {"memory.total_mib", "7864"},
                {"os.name", "Debian GNU/Linux 12 (bookworm)"},
                {"os.kernel", "6.1.0"},
                {"host.virtualised", "true"},
                {"time.utc", "2026-01-02T03:04:05Z"},
                {"input.size", "768x576"},
                {"input.codec", "mpeg4"}};
    for (const auto& [key, value] : options_.facts) t_.facts[key] = value;
  }

  const SyntheticOptions& options_;
  std::mt19937_64 random_;
  Timeline t_;
  int64_t now_ = 0;
};

}  // namespace

Timeline synthetic_timeline(const SyntheticOptions& options) {
  return Simulation(options).run();
}

}  // namespace strobe::report::test
