#include "measure/profile_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "base/file.h"
#include "collect/machine.h"
#include "measure/gpu_device.h"
#include "measure/measure_one.h"
#include "measure/measurement_file.h"
#include "measure/network_step.h"

namespace strobe::measure {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

namespace {

// One network at one level.
struct Subject {
  const NetworkChoice* network;
  int level;
};

std::vector<Subject> subjects_of(const ProfileConfig& config) {
  std::vector<Subject> subjects;
  for (const NetworkChoice& network : config.networks) {
    if (network.level) subjects.push_back({&network, *network.level});
    if (network.level) continue;
    for (const int level : config.levels) subjects.push_back({&network, level});
  }
  return subjects;
}

// What is measured of one subject on one engine in one stage: batch sizes ascending, memory before latency of each.
using Ladder = std::vector<MeasurementKey>;

std::vector<Ladder> ladders_of(const Subject& subject, const ProfileConfig& config) {
  std::vector<Ladder> ladders;
  for (const std::string& engine : config.engines) {
    for (const Stage stage : config.stages) {
      if (stage == Stage::kTraining && !engine_trains(engine)) continue;
      Ladder ladder;
      for (const int64_t batch : config.batch_sizes) {
        for (const Quantity quantity : {Quantity::kMemory, Quantity::kLatency}) {
          if (std::find(config.quantities.begin(), config.quantities.end(), quantity) == config.quantities.end())
            continue;
          ladder.push_back({subject.network->name, subject.level, batch, quantity, stage, engine, config.device,
                            thread_count(config)});
        }
      }
      ladders.push_back(std::move(ladder));
    }
  }
  return ladders;
}

// Settings that change what a row says without being one of its columns.
Json settings_of(const ProfileConfig& config) {
  return {{"method", config.method},
          {"seed", config.seed},
          {"width", config.width},
          {"height", config.height},
          {"memory_limit", config.memory_limit_mib}};
}

// Facts that tell one machine, and one kind of GPU, from another.
constexpr const char* kIdentity[] = {"cpu.model", "cpu.cores_online", "memory.total_mib"};
constexpr const char* kGpuIdentity[] = {".name", ".memory_mib", ".processors"};

Result<void> check_same(const Json& there, const Json& now, const std::string& what, const fs::path& path) {
  for (const auto& [key, value] : now.items()) {
    const auto found = there.find(key);
    if (found == there.end() || *found == value) continue;
    const auto text = [](const Json& item) { return item.is_string() ? item.get<std::string>() : item.dump(); };
    return usage_error(fmt::format("{}: its measurements were made with {}{} {}, now it is {}; give another folder",
                                   path.parent_path().string(), what, key, text(*found), text(value)));
  }
  return {};
}

// What machine.json is to be; nothing where it is that already. One that is there is compared.
// gpu: facts of the device, where it is one; they are added to a file that has none of that device.
Result<std::optional<Json>> settled_machine(const ProfileConfig& config, const std::map<std::string, std::string>& gpu,
                                            const fs::path& path) {
  Json facts = Json::object(), identity = Json::object();
  for (const auto& [key, value] : collect::machine_facts()) facts[key] = value;
  for (const char* key : kIdentity)
    if (facts.contains(key)) identity[key] = facts[key];
  for (const auto& [key, value] : gpu) facts[key] = value;
  for (const char* key : kGpuIdentity)
    if (facts.contains(config.device + key)) identity[config.device + key] = facts[config.device + key];
  const Json settings = settings_of(config);
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return std::optional(Json{{"schema", 1}, {"facts", facts}, {"settings", settings}});
  STROBE_ASSIGN(const std::string text, read_file(path));
  Json there = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!there.is_object() || !there.contains("facts") || !there.contains("settings") || !there["facts"].is_object() ||
      !there["settings"].is_object())
    return bad_data("expected the JSON that strobe model profile writes").at(path.string());
  STROBE_TRY(check_same(there["facts"], identity, "", path));
  STROBE_TRY(check_same(there["settings"], settings, "", path));
  if (gpu.empty() || there["facts"].contains(gpu.begin()->first)) return std::optional<Json>();
  for (const auto& [key, value] : gpu) there["facts"][key] = value;
  return std::optional(std::move(there));
}

class Run {
 public:
  // machine: what is to be machine.json.
  Run(const ProfileConfig& config, fs::path folder, const ProfileHooks& hooks, std::optional<Json> machine,
      MeasurementFile file)
      : config_(config),
        folder_(std::move(folder)),
        hooks_(hooks),
        machine_(std::move(machine)),
        file_(std::move(file)) {}

  Result<ProfileOutcome> run() {
    const std::vector<Subject> subjects = subjects_of(config_);
    for (const Subject& subject : subjects)
      for (const Ladder& ladder : ladders_of(subject, config_)) total_ += ladder.size();
    for (const Subject& subject : subjects) {
      STROBE_TRY(show_network(subject));
      for (const Ladder& ladder : ladders_of(subject, config_)) STROBE_TRY(climb(subject, ladder));
    }
    return outcome_;
  }

 private:
  Result<void> show_network(const Subject& subject) {
    const std::string& name = subject.network->name;
    if (!hooks_.network || !hooks_.wants_network || !hooks_.wants_network(name, subject.level)) return {};
    auto graph = open_at_level(*subject.network, subject.level, config_);
    if (!graph) return std::move(graph).error().at(name);
    return hooks_.network(name, subject.level, *graph);
  }

  Result<void> climb(const Subject& subject, const Ladder& ladder) {
    int64_t failed_batch = INT64_MAX;
    for (const MeasurementKey& key : ladder) {
      if (const MeasurementRow* there = file_.find(key)) {
        ++outcome_.kept;
        if (!there->passed) failed_batch = std::min(failed_batch, key.batch);
      } else if (config_.till_first_fail && key.batch > failed_batch) {
        ++outcome_.passed_over;
      } else {
        STROBE_ASSIGN(const bool passed, measure(subject, key));
        if (!passed) failed_batch = std::min(failed_batch, key.batch);
      }
      ++done_;
    }
    return {};
  }

  Result<bool> measure(const Subject& subject, const MeasurementKey& key) {
    ChildOptions options;
    options.log = folder_ / "log.txt";
    options.stop = hooks_.stop;
    options.waiting = [&] { tell(key); };
    STROBE_ASSIGN(const MeasurementRow row, measure_one(*subject.network, key, config_, options));
    if (machine_)
      STROBE_TRY(
          write_file(folder_ / "machine.json", machine_->dump(2, ' ', false, Json::error_handler_t::replace) + "\n"));
    machine_.reset();
    STROBE_TRY(file_.append(row));
    seconds_ += row.seconds;
    ++outcome_.measured;
    outcome_.failed += row.passed ? 0 : 1;
    outcome_.disturbed += row.passed && row.disturbed ? 1 : 0;
    return row.passed;
  }

  void tell(const MeasurementKey& key) const {
    if (!hooks_.progress) return;
    ProfileProgress progress;
    progress.done = done_;
    progress.total = total_;
    if (outcome_.measured > 0)
      progress.seconds_left = seconds_ / static_cast<double>(outcome_.measured) * static_cast<double>(total_ - done_);
    progress.now = fmt::format("{} {} % batch {} {} {} on {}", key.net, key.level, key.batch, to_string(key.stage),
                               to_string(key.quantity), key.engine);
    hooks_.progress(progress);
  }

  const ProfileConfig& config_;
  fs::path folder_;
  const ProfileHooks& hooks_;
  std::optional<Json> machine_;
  MeasurementFile file_;
  ProfileOutcome outcome_;
  size_t done_ = 0, total_ = 0;
  double seconds_ = 0;
};

}  // namespace

Result<ProfileOutcome> profile(const ProfileConfig& config, const fs::path& folder, const ProfileHooks& hooks) {
  STROBE_ASSIGN(const OutputFolder made, OutputFolder::make(folder));
  STROBE_ASSIGN(const FolderLock lock, FolderLock::take(folder));
  std::map<std::string, std::string> gpu;
  if (config.device != "cpu") {
    STROBE_ASSIGN(const GpuLook look, look_at_gpu(config.engines, config.device, folder / "log.txt", hooks.stop));
    gpu = look.facts;
  }
  STROBE_ASSIGN(std::optional<Json> machine, settled_machine(config, gpu, folder / "machine.json"));
  STROBE_ASSIGN(MeasurementFile file, MeasurementFile::open(folder / "measurements.csv"));
  return Run(config, folder, hooks, std::move(machine), std::move(file)).run();
}

}  // namespace strobe::measure
