#include "measure/gpu_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "gpu/device_watch.h"
#include "measure/gpu_device.h"
#include "measure/network_step.h"
#include "measure/timing.h"
#include "models/cost.h"
#include "models/graph_builder.h"
#include "models/seed.h"

namespace strobe::measure {

namespace {

constexpr double kLong_s = 5e-4;  // of a layer: enough beside launches, and beyond the device's caches
constexpr double kLaunches = 20;  // so many launches long at least
constexpr int64_t kMostBatch = 1 << 16;
constexpr double kShareOfFree = 0.25;  // of the memory, for the tensors of a chain
constexpr int64_t kFewFeatures = 16;   // of the first and last values of a chain of linear layers

enum class Work : uint8_t { kConv1x1, kConv3x3, kDepthwise, kLinear, kMemory, kLaunch };

// Equal layers one behind the other, between two layers that bring few values to the device and away from it: copies
// would hide what the layers take.
struct Chain {
  const char* name;
  Work work;
  int64_t channels, side;
  int64_t batch;  // the smallest one
  int few, many;  // layers
};
constexpr Chain kRates[] = {
    {"conv1x1", Work::kConv1x1, 256, 28, 4, 1, 4},     {"conv3x3", Work::kConv3x3, 128, 28, 4, 1, 4},
    {"depthwise", Work::kDepthwise, 256, 28, 4, 1, 5}, {"linear", Work::kLinear, 1024, 1, 64, 1, 4},
    {"memory", Work::kMemory, 128, 28, 4, 1, 5},
};
constexpr Chain kLaunch = {"launch", Work::kLaunch, 8, 4, 1, 15, 81};
constexpr double kSlices = 2 * std::size(kRates) + 2 + 2;  // and the launch, and the copies

// number: of the layer. What a launch costs depends on what is launched: a network's usual three take turns, and memory
// is read and written by activations; but not where the engine makes one kernel of them.
models::Operation layer_of(const Chain& chain, bool fuses, int number = 0) {
  constexpr models::Activation kRelu{models::ActivationKind::kRelu};
  if (chain.work == Work::kLaunch && !fuses && number % 3 == 1) return models::BatchNorm{};
  if (chain.work == Work::kLaunch && !fuses && number % 3 == 2) return kRelu;
  if (chain.work == Work::kMemory) {
    if (!fuses) return kRelu;
    models::Pool pool{.kind = models::Pool::Kind::kAverage, .kernel_h = 3, .kernel_w = 3};
    pool.pad_top = pool.pad_left = pool.pad_bottom = pool.pad_right = 1;
    return pool;
  }
  if (chain.work == Work::kLinear) {
    models::Linear linear;
    linear.out_features = chain.channels;
    return linear;
  }
  models::Convolution conv;
  conv.out_channels = chain.channels;
  if (chain.work == Work::kConv3x3 || chain.work == Work::kDepthwise) {
    conv.kernel_h = conv.kernel_w = 3;
    conv.pad_h = conv.pad_w = 1;
  }
  if (chain.work == Work::kDepthwise) conv.groups = chain.channels;
  return conv;
}

Result<models::Graph> graph_of(const Chain& chain, bool fuses, int layers) {
  models::GraphBuilder build(chain.name);
  const bool linear = chain.work == Work::kLinear;
  STROBE_ASSIGN(models::LayerId last, build.input({linear ? kFewFeatures : chain.channels, 1, 1}));
  if (linear) {
    STROBE_ASSIGN(last, build.append("first", layer_of(chain, fuses), {last}));
  } else {
    STROBE_ASSIGN(last, build.append("first", models::Upsample{chain.side}, {last}));
  }
  for (int i = 0; i < layers; ++i) {
    STROBE_ASSIGN(last, build.append(fmt::format("layer{}", i), layer_of(chain, fuses, i), {last}));
  }
  if (linear) {
    models::Linear end;
    end.out_features = kFewFeatures;
    STROBE_ASSIGN(last, build.append("last", end, {last}));
  } else {
    STROBE_ASSIGN(last, build.append("last", models::GlobalAveragePool{}, {last}));
  }
  STROBE_ASSIGN(models::Graph graph, std::move(build).finish());
  STROBE_TRY(models::seed_weights(graph, 1));
  return graph;
}

class Calibrator {
 public:
  Calibrator(engines::Engine& engine, double slice_s, int64_t free_bytes, DeviceCalibration& found)
      : engine_(engine), slice_s_(slice_s), free_bytes_(free_bytes), found_(found) {}

  Result<void> run() {
    STROBE_ASSIGN(const double launch_s, layer_seconds(kLaunch, kLaunch.batch, slice_s_));
    found_.launch_us = launch_s * 1e6;
    double* const rates[] = {&found_.conv1x1_gflops, &found_.conv3x3_gflops, &found_.depthwise_gflops,
                             &found_.linear_gflops, &found_.memory_gbytes};
    for (size_t i = 0; i < std::size(kRates); ++i) {
      STROBE_ASSIGN(*rates[i], rate_of(kRates[i], launch_s));
    }
    return measure_copies();
  }

 private:
  // Seconds of one run: the fastest tenth of those within that time.
  Result<double> time(models::Graph graph, int64_t batch, double seconds) {
    const auto until = seconds_from_now(seconds);
    STROBE_ASSIGN(const auto step,
                  load_step(engine_, std::move(graph), Stage::kInference, batch, found_.threads, found_.device));
    return fastest_seconds([&] { return step->run(); }, until);
  }

  // What one layer more costs.
  Result<double> layer_seconds(const Chain& chain, int64_t batch, double seconds) {
    STROBE_ASSIGN(models::Graph small, graph_of(chain, fuses_, chain.few));
    STROBE_ASSIGN(models::Graph large, graph_of(chain, fuses_, chain.many));
    STROBE_ASSIGN(const double few, time(std::move(small), batch, seconds));
    STROBE_ASSIGN(const double many, time(std::move(large), batch, seconds));
    if (many > few) return (many - few) / (chain.many - chain.few);
    return engine_error(
        fmt::format("calibration of {}: {} layers took {:.3g} s, {} took {:.3g} s: other programs "
                    "disturb it; give it more time or call it again",
                    chain.name, chain.few, few, chain.many, many));
  }

  // GFLOP/s, or GB/s of activations, at the first batch with which a layer takes long.
  Result<double> rate_of(const Chain& chain, double launch_s) {
    const double long_s = std::max(kLong_s, kLaunches * launch_s);
    constexpr double kTensors = 4;  // alive at once, with a workspace
    const double item_bytes = sizeof(float) * static_cast<double>(chain.channels * chain.side * chain.side);
    int64_t batch = chain.batch;
    for (;;) {
      // While the batch grows a look is enough, and a disturbed one only makes it grow once more.
      const auto look = layer_seconds(chain, batch, 0);
      if (look && *look >= long_s) break;
      if (!look && look.error().kind() != ErrorKind::kEngine) return look.error();
      const auto next = static_cast<double>(2 * batch);
      if (2 * batch > kMostBatch) break;
      if (free_bytes_ > 0 && kTensors * next * item_bytes > kShareOfFree * static_cast<double>(free_bytes_)) break;
      batch *= 2;
    }
    STROBE_ASSIGN(const double layer_s, layer_seconds(chain, batch, slice_s_));
    const auto items = static_cast<double>(batch);
    if (chain.work == Work::kMemory) return 2 * item_bytes * items / layer_s / 1e9;
    STROBE_ASSIGN(const models::Graph with, graph_of(chain, fuses_, 2));
    STROBE_ASSIGN(const models::Graph without, graph_of(chain, fuses_, 1));
    const auto flop = static_cast<double>(models::graph_cost(with).flop - models::graph_cost(without).flop);
    return flop * items / layer_s / 1e9;
  }

  // By what larger inputs cost more, each with one number as its result: reading them on the device is little beside
  // bringing them there.
  Result<void> measure_copies() {
    constexpr int64_t kChannels = 16, kSmall = 128, kLarge = 512;
    const auto timed = [&](int64_t side) -> Result<double> {
      models::GraphBuilder build("copy");
      STROBE_ASSIGN(const models::LayerId input, build.input({kChannels, side, side}));
      STROBE_TRY(build.append("last", models::GlobalAveragePool{}, {input}));
      STROBE_ASSIGN(models::Graph graph, std::move(build).finish());
      return time(std::move(graph), 1, slice_s_);
    };
    STROBE_ASSIGN(const double small, timed(kSmall));
    STROBE_ASSIGN(const double large, timed(kLarge));
    constexpr double kBytes = sizeof(float) * kChannels * (kLarge * kLarge - kSmall * kSmall);
    if (large <= small)
      return engine_error("calibration of copies: more bytes took less time: other programs disturb it; call it again");
    found_.copy_gbytes = kBytes / (large - small) / 1e9;
    return {};
  }

  engines::Engine& engine_;
  const double slice_s_;
  const int64_t free_bytes_;
  DeviceCalibration& found_;
  const bool fuses_ = engine_.name() != "torch";
};

}  // namespace

Result<void> calibrate_gpu(engines::Engine& engine, double seconds, DeviceCalibration& found) {
  STROBE_TRY(engine.precisions_on(found.device));
  STROBE_ASSIGN(const std::optional<int> number, gpu_number(found.device));
  // Without NVML batches grow to their bound, and the context is not known.
  auto watch = gpu::DeviceWatch::open(*number);
  int64_t free_bytes = -1;
  if (watch) {
    const auto facts = (*watch)->facts();
    if (const auto name = facts.find("name"); name != facts.end()) found.device_name = name->second;
    free_bytes = (*watch)->memory().free;
  }
  STROBE_TRY(Calibrator(engine, seconds / kSlices, free_bytes, found).run());
  if (!watch) return {};
  const auto held = engine.device_memory(found.device);
  const gpu::DeviceMoment now = (*watch)->memory();
  constexpr double kMib = 1 << 20;
  if (held && now.own > held->reserved) found.context_mib = static_cast<double>(now.own - held->reserved) / kMib;
  return {};
}

}  // namespace strobe::measure
