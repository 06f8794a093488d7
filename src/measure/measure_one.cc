#include "measure/measure_one.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <vector>

#include "collect/machine.h"
#include "engines/loader.h"
#include "gpu/device_watch.h"
#include "measure/gpu_device.h"
#include "measure/memory.h"
#include "measure/network_step.h"
#include "measure/timing.h"

namespace strobe::measure {

namespace {

using Json = nlohmann::json;

constexpr double kMib = 1 << 20;
constexpr int kMemorySteps = 3;            // after the first one, as the public logs were taken
constexpr double kShareOfAvailable = 0.9;  // the rest keeps the machine usable

void set_summary(MeasurementRow& row, const std::vector<double>& values) {
  const Summary summary = summarise(values);
  row.mean = summary.mean;
  row.median = summary.median;
  row.p5 = summary.p5;
  row.p95 = summary.p95;
  row.half_width = summary.half_width;
  row.repetitions = static_cast<int64_t>(values.size());
}

Result<void> measure_memory(NetworkStep& step, const ResidentMemory& before, int64_t allocated_before,
                            MeasurementRow& row) {
  STROBE_TRY(step.run());
  row.warmup = 1;
  STROBE_ASSIGN(ResidentMemory after, resident_memory());
  int64_t peak = after.peak_bytes;
  std::vector<double> grown_mib;
  for (int i = 0; i < kMemorySteps; ++i) {
    STROBE_TRY(reset_peak());
    STROBE_TRY(step.run());
    STROBE_ASSIGN(after, resident_memory());
    peak = std::max(peak, after.peak_bytes);
    grown_mib.push_back(static_cast<double>(after.peak_bytes - before.now_bytes) / kMib);
  }
  set_summary(row, grown_mib);
  row.before_mib = static_cast<double>(before.now_bytes) / kMib;
  row.peak_mib = static_cast<double>(peak) / kMib;
  row.allocated_mib = static_cast<double>(allocated_bytes() - allocated_before) / kMib;
  return {};
}

// The device that a measurement runs on, and how much of it the network may take.
struct Gpu {
  engines::Engine& engine;
  const std::string& device;
  std::unique_ptr<gpu::DeviceWatch> watch;
  double limit_mib = -1;  // below 0: none

  // What the process holds by now, MiB; below 0: not told.
  double own_mib() {
    const gpu::DeviceMoment now = watch->memory();
    return now.own < 0 ? -1 : static_cast<double>(now.own) / kMib;
  }
  // Frameworks that cannot be held to a limit are found out when they have passed it.
  Result<void> check_limit(double taken_mib) const {
    if (limit_mib < 0 || taken_mib <= limit_mib) return {};
    return engine_error(fmt::format("out of memory: {:.0f} MiB of {} were taken", taken_mib, device));
  }
};

// To be called before the engine has touched the device. Without NVML there is no watch, and no limit.
Result<Gpu> open_gpu(engines::Engine& engine, MeasurementRow& row) {
  const std::string& device = row.key.device;
  STROBE_TRY(engine.precisions_on(device));
  STROBE_ASSIGN(const std::optional<int> number, gpu_number(device));
  Gpu gpu{engine, device, nullptr};
  auto watch = gpu::DeviceWatch::open(*number);
  if (!watch) {
    row.limit_mib = -1;
    if (row.key.quantity == Quantity::kLatency) return gpu;
    return std::move(watch).error().at("memory of " + device + " cannot be measured");
  }
  gpu.watch = std::move(*watch);
  const gpu::DeviceMoment before = gpu.watch->memory();
  if (row.limit_mib <= 0 && before.free >= 0)
    row.limit_mib = std::floor(kShareOfAvailable * static_cast<double>(before.free) / kMib);
  if (row.limit_mib <= 0) row.limit_mib = -1;
  gpu.limit_mib = row.limit_mib;
  row.before_mib = before.used < 0 ? -1 : static_cast<double>(before.used) / kMib;
  // An engine without a limit is held to it by check_limit() alone.
  if (before.total > 0 && gpu.limit_mib > 0)
    (void)engine.limit_device_memory(std::min(1.0, gpu.limit_mib * kMib / static_cast<double>(before.total)));
  return gpu;
}

// The framework's allocator keeps what it once had, so the process holds the most that it needed; where the allocator
// gave something back in between, the difference to its peak is added.
Result<void> measure_gpu_memory(NetworkStep& step, Gpu& gpu, MeasurementRow& row) {
  STROBE_TRY(step.run());
  row.warmup = 1;
  STROBE_TRY(gpu.check_limit(gpu.own_mib()));
  double reserved = -1, allocated = -1;
  const auto with_peaks = [&](double own_mib) {
    const auto held = gpu.engine.device_memory(gpu.device);
    if (!held) return own_mib;
    reserved = std::max(reserved, static_cast<double>(held->peak_reserved) / kMib);
    allocated = std::max(allocated, static_cast<double>(held->peak_allocated) / kMib);
    return own_mib + static_cast<double>(held->peak_reserved - held->reserved) / kMib;
  };
  with_peaks(0);
  allocated = -1;  // of a step; loading and the first one are no part of it
  std::vector<double> taken_mib;
  for (int i = 0; i < kMemorySteps; ++i) {
    (void)gpu.engine.reset_device_peak(gpu.device);
    STROBE_TRY(step.run());
    const double own = gpu.own_mib();
    if (own < 0)
      return unsupported(
          fmt::format("memory of {} cannot be measured: NVML tells neither what this process holds nor "
                      "what is used",
                      gpu.device));
    taken_mib.push_back(with_peaks(own));
    STROBE_TRY(gpu.check_limit(taken_mib.back()));
  }
  set_summary(row, taken_mib);
  row.peak_mib = reserved;
  row.allocated_mib = allocated;
  return {};
}

Result<void> measure_latency(NetworkStep& step, const ProfileConfig& config, Gpu* gpu, MeasurementRow& row) {
  TimingOptions options;
  options.repetitions = config.repetitions;
  options.most_repetitions = config.most_repetitions;
  options.half_width = config.half_width;
  options.measure_s = config.measure_s;
  options.warmup_s = config.warmup_s;
  options.attempts = config.attempts;
  options.cpus = std::max(1, static_cast<int>(std::ceil(collect::allowed_cores())));
  options.threads = row.key.threads;
  if (gpu != nullptr) options.watch = gpu->watch.get();
  STROBE_ASSIGN(const Timing timing, time_steps([&] { return step.run(); }, options));
  set_summary(row, timing.ms);
  row.warmup = static_cast<int64_t>(timing.warmup_steps);
  row.stationary = timing.stationary;
  row.attempts = timing.attempts;
  row.disturbed = timing.interference.disturbed();
  row.others_share = timing.interference.others_share;
  row.stolen_share = timing.interference.stolen_share;
  row.wait_share = timing.interference.wait_share;
  row.involuntary_switches = timing.interference.involuntary_switches;
  if (options.watch == nullptr) return {};
  row.gpu_others_share = timing.interference.gpu.others_share;
  row.gpu_throttled_share = timing.interference.gpu.throttled_share;
  row.gpu_clock_mhz = timing.interference.gpu.clock_mhz;
  row.gpu_clock_spread = timing.interference.gpu.clock_spread;
  return gpu->check_limit(gpu->own_mib());
}

Result<void> measure_on_gpu(engines::Engine& engine, const NetworkChoice& network, const ProfileConfig& config,
                            MeasurementRow& row) {
  STROBE_ASSIGN(Gpu gpu, open_gpu(engine, row));
  STROBE_ASSIGN(models::Graph graph, open_at_level(network, row.key.level, config));
  STROBE_ASSIGN(const std::unique_ptr<NetworkStep> step,
                load_step(engine, std::move(graph), row.key.stage, row.key.batch, row.key.threads, row.key.device));
  return row.key.quantity == Quantity::kMemory ? measure_gpu_memory(*step, gpu, row)
                                               : measure_latency(*step, config, &gpu, row);
}

Result<void> measure_here(const NetworkChoice& network, const ProfileConfig& config, MeasurementRow& row) {
  STROBE_ASSIGN(const std::shared_ptr<engines::Engine> engine, engines::open_engine(row.key.engine));
  if (row.key.device != "cpu") return measure_on_gpu(*engine, network, config, row);
  const bool memory = row.key.quantity == Quantity::kMemory;
  // From here on everything is the network's: its weights, what the engine makes of them, inputs, and the steps.
  release_free_memory();
  ResidentMemory before;
  if (memory) {
    STROBE_ASSIGN(before, resident_memory());
  }
  const int64_t allocated_before = allocated_bytes();
  STROBE_TRY(limit_growth(static_cast<int64_t>(row.limit_mib * kMib)));
  STROBE_ASSIGN(models::Graph graph, open_at_level(network, row.key.level, config));
  if (memory) {
    // What making the graph took and gave back is not the network's.
    release_free_memory();
    STROBE_TRY(reset_peak());
  }
  STROBE_ASSIGN(const std::unique_ptr<NetworkStep> step,
                load_step(*engine, std::move(graph), row.key.stage, row.key.batch, row.key.threads));
  return memory ? measure_memory(*step, before, allocated_before, row) : measure_latency(*step, config, nullptr, row);
}

Json answer_of(const Result<void>& done, const MeasurementRow& row) {
  if (!done)
    return {
        {"kind", static_cast<int>(done.error().kind())}, {"error", done.error().to_string()}, {"limit", row.limit_mib}};
  return {{"mean", row.mean},
          {"median", row.median},
          {"p5", row.p5},
          {"p95", row.p95},
          {"half_width", row.half_width},
          {"repetitions", row.repetitions},
          {"warmup", row.warmup},
          {"stationary", row.stationary},
          {"disturbed", row.disturbed},
          {"attempts", row.attempts},
          {"others_share", row.others_share},
          {"stolen_share", row.stolen_share},
          {"wait_share", row.wait_share},
          {"involuntary_switches", row.involuntary_switches},
          {"gpu_others_share", row.gpu_others_share},
          {"gpu_throttled_share", row.gpu_throttled_share},
          {"gpu_clock_mhz", row.gpu_clock_mhz},
          {"gpu_clock_spread", row.gpu_clock_spread},
          {"limit", row.limit_mib},
          {"before", row.before_mib},
          {"peak", row.peak_mib},
          {"allocated", row.allocated_mib}};
}

void take_answer(const Json& answer, MeasurementRow& row) {
  row.passed = true;
  row.mean = answer.at("mean");
  row.median = answer.at("median");
  row.p5 = answer.at("p5");
  row.p95 = answer.at("p95");
  row.half_width = answer.at("half_width");
  row.repetitions = answer.at("repetitions");
  row.warmup = answer.at("warmup");
  row.stationary = answer.at("stationary");
  row.disturbed = answer.at("disturbed");
  row.attempts = answer.at("attempts");
  row.others_share = answer.at("others_share");
  row.stolen_share = answer.at("stolen_share");
  row.wait_share = answer.at("wait_share");
  row.involuntary_switches = answer.at("involuntary_switches");
  row.gpu_others_share = answer.at("gpu_others_share");
  row.gpu_throttled_share = answer.at("gpu_throttled_share");
  row.gpu_clock_mhz = answer.at("gpu_clock_mhz");
  row.gpu_clock_spread = answer.at("gpu_clock_spread");
  row.before_mib = answer.at("before");
  row.peak_mib = answer.at("peak");
  row.allocated_mib = answer.at("allocated");
}

std::string memory_error(double limit_mib, const std::string& how) {
  constexpr std::string_view kSaid = "out of memory: ";
  if (how.starts_with(kSaid)) return memory_error(limit_mib, how.substr(kSaid.size()));
  if (limit_mib < 0) return "out of memory: " + how;
  return fmt::format("out of memory: {:.0f} MiB were allowed: {}", limit_mib, how);
}

}  // namespace

Result<MeasurementRow> measure_one(const NetworkChoice& network, const MeasurementKey& key, const ProfileConfig& config,
                                   ChildOptions options) {
  MeasurementRow row;
  row.key = key;
  row.limit_mib = static_cast<double>(config.memory_limit_mib);
  if (config.memory_limit_mib == 0 && key.device == "cpu") {
    STROBE_ASSIGN(const int64_t available, available_memory());
    row.limit_mib = std::floor(kShareOfAvailable * static_cast<double>(available) / kMib);
  }
  if (config.memory_limit_mib == 0 && key.device != "cpu") row.limit_mib = -1;  // the child finds out
  options.timeout_s = config.timeout_s;
  const auto work = [&]() -> std::string {
    try {
      const auto done = measure_here(network, config, row);
      return answer_of(done, row).dump(-1, ' ', false, Json::error_handler_t::replace);
    } catch (const std::bad_alloc&) {
      return answer_of(engine_error("std::bad_alloc"), row).dump();
    }
  };
  STROBE_ASSIGN(const ChildEnd end, run_in_child(work, options));
  row.seconds = end.seconds;
  switch (end.how) {
    case ChildEnd::How::kAnswered:
      break;
    case ChildEnd::How::kStopped:
      return Error(ErrorKind::kInterrupted, "interrupted; call it again to go on");
    case ChildEnd::How::kTimeout:
      row.error = fmt::format("timeout: not done within {} s", config.timeout_s);
      return row;
    case ChildEnd::How::kKilled:
    case ChildEnd::How::kExited: {
      // SIGKILL that is not ours is the kernel's, which had no memory left.
      constexpr int kSigKill = 9;
      const bool killed = end.how == ChildEnd::How::kKilled && end.code == kSigKill;
      const std::string how = end.to_string() + (end.last_line.empty() ? "" : ": " + end.last_line);
      row.error = killed || tells_of_memory(end.last_line) ? memory_error(row.limit_mib, how) : how;
      return row;
    }
  }
  const Json answer = Json::parse(end.answer, nullptr, /*allow_exceptions=*/false);
  if (answer.is_discarded()) return internal_error("measurement: an answer that is no JSON");
  row.limit_mib = answer.at("limit");
  if (!answer.contains("error")) {
    take_answer(answer, row);
    return row;
  }
  const auto kind = static_cast<ErrorKind>(answer.at("kind").get<int>());
  const std::string text = answer.at("error");
  if (tells_of_memory(text)) {
    row.error = memory_error(row.limit_mib, text);
    return row;
  }
  if (kind != ErrorKind::kEngine)
    return Error(kind, text)
        .at(fmt::format("{} level {} {} on {}", key.net, key.level, to_string(key.stage), key.engine));
  row.error = text;
  return row;
}

}  // namespace strobe::measure
