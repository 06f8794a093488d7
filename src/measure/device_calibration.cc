#include "measure/device_calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>
#include <thread>
#include <vector>

#include "base/statistics.h"
#include "collect/machine.h"
#include "engines/loader.h"
#include "engines/request.h"
#include "measure/child.h"
#include "measure/gpu_calibration.h"
#include "measure/gpu_device.h"
#include "measure/network_step.h"
#include "measure/timing.h"
#include "models/cost.h"
#include "models/graph_builder.h"
#include "models/seed.h"

namespace strobe::measure {

namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr int64_t kSchema = 1;
constexpr double kFastest = 0.1;  // quantile of the runs

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// A chain of equal layers, and what of it is compared.
struct Probe {
  const char* kind;
  double DeviceCalibration::*rate;  // null: the launch time
  models::Shape shape;
  int64_t batch;
  int short_chain, long_chain;
};
constexpr int kTinyChannels = 8, kTinySide = 4;
const Probe kProbes[] = {
    {"conv1x1", &DeviceCalibration::conv1x1_gflops, {256, 28, 28}, 4, 1, 4},
    {"conv3x3", &DeviceCalibration::conv3x3_gflops, {128, 28, 28}, 4, 1, 4},
    {"depthwise", &DeviceCalibration::depthwise_gflops, {256, 28, 28}, 4, 1, 5},
    {"linear", &DeviceCalibration::linear_gflops, {1024, 1, 1}, 64, 1, 4},
    {"launch", nullptr, {kTinyChannels, kTinySide, kTinySide}, 1, 16, 80},
};
constexpr double kSlices = 2 * std::size(kProbes) + 1;  // and the memory

models::Operation layer_of(const Probe& probe) {
  const std::string kind = probe.kind;
  if (kind == "linear") {
    models::Linear linear;
    linear.out_features = probe.shape.channels;
    return linear;
  }
  models::Convolution conv;
  conv.out_channels = probe.shape.channels;
  if (kind == "conv3x3" || kind == "depthwise") {
    conv.kernel_h = conv.kernel_w = 3;
    conv.pad_h = conv.pad_w = 1;
  }
  if (kind == "depthwise") conv.groups = probe.shape.channels;
  return conv;
}

Result<models::Graph> chain_of(const Probe& probe, int layers) {
  models::GraphBuilder build(probe.kind);
  STROBE_ASSIGN(models::LayerId last, build.input(probe.shape));
  for (int i = 0; i < layers; ++i) {
    STROBE_ASSIGN(last, build.append(fmt::format("layer{}", i), layer_of(probe), {last}));
  }
  STROBE_ASSIGN(models::Graph graph, std::move(build).finish());
  STROBE_TRY(models::seed_weights(graph, 1));
  return graph;
}

// Seconds of one run of the chain.
Result<double> time_chain(engines::Engine& engine, const Probe& probe, int layers, int threads, double seconds) {
  const auto until = seconds_from_now(seconds);
  STROBE_ASSIGN(models::Graph graph, chain_of(probe, layers));
  STROBE_ASSIGN(const auto step, load_step(engine, std::move(graph), Stage::kInference, probe.batch, threads));
  return fastest_seconds([&] { return step->run(); }, until);
}

Result<void> probe_engine(engines::Engine& engine, const Probe& probe, double slice_s, DeviceCalibration& found) {
  STROBE_ASSIGN(const double few, time_chain(engine, probe, probe.short_chain, found.threads, slice_s));
  STROBE_ASSIGN(const double many, time_chain(engine, probe, probe.long_chain, found.threads, slice_s));
  const double a_layer = (many - few) / (probe.long_chain - probe.short_chain);
  if (a_layer <= 0)
    return engine_error(
        fmt::format("calibration of {}: {} layers took {:.3g} s, {} took {:.3g} s: other programs "
                    "disturb it; give it more time or call it again",
                    probe.kind, probe.short_chain, few, probe.long_chain, many));
  if (probe.rate == nullptr) {
    found.launch_us = a_layer * 1e6;
    return {};
  }
  STROBE_ASSIGN(const models::Graph one, chain_of(probe, 1));
  const double flop = static_cast<double>(models::graph_cost(one).flop) * static_cast<double>(probe.batch);
  found.*probe.rate = flop / a_layer / 1e9;
  return {};
}

// a = b + s * c as in STREAM (McCalpin 1995): 3 x 4 bytes an element, written ones counted once.
double memory_gbytes(int threads, double seconds) {
  constexpr size_t kElements = size_t{8} << 20;  // of one thread and array: 32 MiB, beyond its share of any cache
  std::vector<std::vector<double>> rates(static_cast<size_t>(threads));
  std::vector<std::thread> workers;
  const auto begin = Clock::now();
  for (auto& mine : rates) {
    workers.emplace_back([&mine, begin, seconds] {
      std::vector<float> a(kElements), b(kElements, 1), c(kElements, 2);
      float scale = 1;
      while (mine.size() < 5 || seconds_since(begin) < seconds) {
        const auto start = Clock::now();
        for (size_t i = 0; i < kElements; ++i) a[i] = b[i] + scale * c[i];
        mine.push_back(3.0 * sizeof(float) * kElements / seconds_since(start) / 1e9);
        scale = a[mine.size()] > 0 ? scale + 1 : 1;  // depends on the result, which is thus not left out
      }
    });
  }
  for (std::thread& worker : workers) worker.join();
  double sum = 0;
  for (auto& mine : rates) sum += quantile(std::move(mine), 1 - kFastest);
  return sum;
}

Result<DeviceCalibration> calibrate_here(const std::string& spec, const std::string& device, int threads,
                                         double seconds) {
  const auto begin = Clock::now();
  STROBE_ASSIGN(const auto engine, engines::open_engine(spec));
  DeviceCalibration found;
  found.engine = spec;
  found.version = engine->version();
  found.device = device;
  found.threads = threads > 0 ? threads : engines::allowed_cores();
  if (device != "cpu") {
    STROBE_TRY(calibrate_gpu(*engine, seconds, found));
    found.seconds = seconds_since(begin);
    return found;
  }
  const double slice_s = seconds / kSlices;
  for (const Probe& probe : kProbes) STROBE_TRY(probe_engine(*engine, probe, slice_s, found));
  found.memory_gbytes = memory_gbytes(found.threads, slice_s);
  found.seconds = seconds_since(begin);
  return found;
}

Json to_json(const DeviceCalibration& found) {
  Json all{{"schema", kSchema},
           {"engine", found.engine},
           {"version", found.version},
           {"device", found.device},
           {"threads", found.threads},
           {"seconds", found.seconds},
           {"conv1x1_gflops", found.conv1x1_gflops},
           {"conv3x3_gflops", found.conv3x3_gflops},
           {"depthwise_gflops", found.depthwise_gflops},
           {"linear_gflops", found.linear_gflops},
           {"memory_gbytes", found.memory_gbytes},
           {"launch_us", found.launch_us}};
  if (found.device == "cpu") return all;
  if (!found.device_name.empty()) all["device_name"] = found.device_name;
  all["copy_gbytes"] = found.copy_gbytes;
  if (found.context_mib > 0) all["context_mib"] = found.context_mib;
  return all;
}

}  // namespace

Result<DeviceCalibration> calibrate_device(const std::string& engine, const std::string& device, int threads,
                                           double seconds, const std::atomic<bool>* stop) {
  STROBE_TRY(gpu_number(device));
  ChildOptions options;
  options.stop = stop;
  options.timeout_s = 60 + 10 * seconds;
  const auto work = [&]() -> std::string {
    const auto found = calibrate_here(engine, device, threads, seconds);
    if (found) return to_json(*found).dump(-1, ' ', false, Json::error_handler_t::replace);
    return Json{{"kind", static_cast<int>(found.error().kind())}, {"error", found.error().to_string()}}.dump(
        -1, ' ', false, Json::error_handler_t::replace);
  };
  STROBE_ASSIGN(const ChildEnd end, run_in_child(work, options));
  if (end.how == ChildEnd::How::kStopped) return Error(ErrorKind::kInterrupted, "interrupted; call it again to go on");
  if (end.how != ChildEnd::How::kAnswered) return engine_error(engine + ": calibration: " + end.to_string());
  if (const Json answer = Json::parse(end.answer, nullptr, /*allow_exceptions=*/false); answer.contains("error"))
    return Error(static_cast<ErrorKind>(answer.at("kind").get<int>()), answer.at("error").get<std::string>())
        .at(engine);
  return parse_calibration(end.answer);
}

std::string calibration_json(const DeviceCalibration& calibration) {
  Json all = to_json(calibration);
  for (const auto& [key, value] : collect::machine_facts()) all["facts"][key] = value;
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<DeviceCalibration> parse_calibration(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return bad_data("expected the JSON of a device calibration");
  const auto schema = json.find("schema");
  if (schema == json.end() || !schema->is_number_integer() || *schema != kSchema)
    return bad_data(fmt::format("expected \"schema\": {}", kSchema));
  DeviceCalibration found;
  const auto word = [&](const char* key, std::string& into) -> Result<void> {
    const auto value = json.find(key);
    if (value == json.end() || !value->is_string()) return bad_data(fmt::format("\"{}\": expected a word", key));
    into = *value;
    return {};
  };
  const auto number = [&](const char* key, double& into) -> Result<void> {
    const auto value = json.find(key);
    if (value == json.end() || !value->is_number() || !(value->get<double>() > 0) ||
        !std::isfinite(value->get<double>()))
      return bad_data(fmt::format("\"{}\": expected a number above 0", key));
    into = *value;
    return {};
  };
  STROBE_TRY(word("engine", found.engine));
  STROBE_TRY(word("version", found.version));
  STROBE_TRY(word("device", found.device));
  double threads = 0;
  STROBE_TRY(number("threads", threads));
  if (threads != std::floor(threads) || threads > 4096) return bad_data("\"threads\": expected a whole number");
  found.threads = static_cast<int>(threads);
  STROBE_TRY(number("seconds", found.seconds));
  STROBE_TRY(number("conv1x1_gflops", found.conv1x1_gflops));
  STROBE_TRY(number("conv3x3_gflops", found.conv3x3_gflops));
  STROBE_TRY(number("depthwise_gflops", found.depthwise_gflops));
  STROBE_TRY(number("linear_gflops", found.linear_gflops));
  STROBE_TRY(number("memory_gbytes", found.memory_gbytes));
  STROBE_TRY(number("launch_us", found.launch_us));
  if (found.device == "cpu") return found;
  if (json.contains("device_name")) STROBE_TRY(word("device_name", found.device_name));
  STROBE_TRY(number("copy_gbytes", found.copy_gbytes));
  if (json.contains("context_mib")) STROBE_TRY(number("context_mib", found.context_mib));
  return found;
}

}  // namespace strobe::measure
