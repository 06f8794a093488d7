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

Result<void> measure_latency(NetworkStep& step, const ProfileConfig& config, MeasurementRow& row) {
  TimingOptions options;
  options.repetitions = config.repetitions;
  options.most_repetitions = config.most_repetitions;
  options.half_width = config.half_width;
  options.measure_s = config.measure_s;
  options.warmup_s = config.warmup_s;
  options.attempts = config.attempts;
  options.cpus = std::max(1, static_cast<int>(std::ceil(collect::allowed_cores())));
  options.threads = row.key.threads;
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
  return {};
}

Result<void> measure_here(const NetworkChoice& network, const ProfileConfig& config, MeasurementRow& row) {
  STROBE_ASSIGN(const std::shared_ptr<engines::Engine> engine, engines::open_engine(row.key.engine));
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
  return memory ? measure_memory(*step, before, allocated_before, row) : measure_latency(*step, config, row);
}

Json answer_of(const Result<void>& done, const MeasurementRow& row) {
  if (!done) return {{"kind", static_cast<int>(done.error().kind())}, {"error", done.error().to_string()}};
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
  row.before_mib = answer.at("before");
  row.peak_mib = answer.at("peak");
  row.allocated_mib = answer.at("allocated");
}

std::string memory_error(double limit_mib, const std::string& how) {
  return fmt::format("out of memory: {:.0f} MiB were allowed: {}", limit_mib, how);
}

}  // namespace

Result<MeasurementRow> measure_one(const NetworkChoice& network, const MeasurementKey& key, const ProfileConfig& config,
                                   ChildOptions options) {
  MeasurementRow row;
  row.key = key;
  row.limit_mib = static_cast<double>(config.memory_limit_mib);
  if (config.memory_limit_mib == 0) {
    STROBE_ASSIGN(const int64_t available, available_memory());
    row.limit_mib = std::floor(kShareOfAvailable * static_cast<double>(available) / kMib);
  }
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
