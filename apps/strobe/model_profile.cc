#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "base/file.h"
#include "interrupt.h"
#include "measure/device_calibration.h"
#include "measure/profile_run.h"
#include "model_command.h"
#include "predict/layer_list.h"
#include "progress_line.h"

namespace strobe::app {
namespace {

namespace fs = std::filesystem;

// Options that stand for a key of the file: the same reader takes both.
struct KeyOption {
  const char *flag, *key, *help;
};
constexpr KeyOption kKeyOptions[] = {
    {"--networks", "networks", "Built-in networks or files, with commas"},
    {"--levels", "levels", "Percent pruned: 0,30,50 or 0,10,...,90"},
    {"--method", "method", "Of pruning: uniform, random or l1"},
    {"--seed", "seed", "Of weights and pruning"},
    {"--width", "width", "Of the input"},
    {"--height", "height", "Of the input"},
    {"--batch-sizes", "batch_sizes", "Items a step, with commas"},
    {"--stages", "stages", "training, inference or both"},
    {"--quantities", "quantities", "memory, latency or both"},
    {"--engines", "engines", "torch, openvino, opencv, with commas; training is measured on torch"},
    {"--device", "device", "cpu, or cuda:N: an NVIDIA GPU, through torch"},
    {"--threads", "threads", "Of the engine; 0: the allowed cores"},
    {"--till-first-fail", "till_first_fail", "true: no larger batch of a network after one that failed"},
    {"--repetitions", "repetitions", "Timed steps, at least"},
    {"--most-repetitions", "most_repetitions", "Timed steps, at most"},
    {"--half-width", "half_width", "Relative 95 % interval of the mean that is enough"},
    {"--measure-time", "measure_time", "Seconds of timed steps that are enough"},
    {"--warmup-time", "warmup_time", "Longest warm-up in seconds"},
    {"--attempts", "attempts", "Measurements of a latency that others disturb"},
    {"--timeout", "timeout", "Seconds that one measurement may take"},
    {"--memory-limit", "memory_limit", "MiB that a network may take, or auto"},
    {"--calibration", "calibration", "Seconds for the speed of the device, into calibration-ENGINE.json; 0: none"},
};

std::string time_text(double seconds) {
  const auto whole = static_cast<int64_t>(seconds);
  if (whole >= 3600) return fmt::format("{} h {:02d} min", whole / 3600, whole / 60 % 60);
  if (whole >= 60) return fmt::format("{} min {:02d} s", whole / 60, whole % 60);
  return fmt::format("{} s", whole);
}

// layers.csv of the folder: lists are added, and the file is replaced as a whole.
class LayerFile {
 public:
  static Result<LayerFile> open(const fs::path& path) {
    LayerFile file;
    file.path_ = path;
    std::error_code ignored;
    if (!fs::exists(path, ignored)) return file;
    STROBE_ASSIGN(file.lists_, predict::read_layer_lists(path));
    for (const auto& list : file.lists_) file.known_.emplace(list.net, list.level);
    return file;
  }
  bool has(const std::string& net, int level) const { return known_.contains({net, level}); }
  Result<void> add(const std::string& net, int level, const models::Graph& graph) {
    predict::LayerList list = predict::from_graph(graph, level);
    list.net = net;
    lists_.push_back(std::move(list));
    known_.emplace(net, level);
    return write_file(path_, predict::format_layer_lists(lists_));
  }

 private:
  fs::path path_;
  std::vector<predict::LayerList> lists_;
  std::set<std::pair<std::string, int64_t>> known_;
};

class ModelProfile : public Word {
 public:
  const char* name() const override { return "profile"; }
  const char* summary() const override { return "Measure memory and latency of networks on this machine"; }

  void declare(CLI::App& app) override {
    app.add_option("--config", file_, "YAML file (docs/profiling-models.md); options override it");
    app.add_option("-o,--output", folder_, "Folder of the results; what is there is not measured again")->required();
    for (const KeyOption& option : kKeyOptions) {
      app.add_option_function<std::string>(
          option.flag, [this, &option](const std::string& text) { given_.emplace_back(&option, text); }, option.help);
    }
    app.footer("strobe model profile --networks resnet18,squeezenet1_1 --levels 0,50 --batch-sizes 1,2,4 -o DIR");
  }

  Result<int> run() override {
    STROBE_ASSIGN(const measure::ProfileConfig config, read_config());
    STROBE_TRY(measure::check_profile_config(config));
    STROBE_ASSIGN(LayerFile layers, LayerFile::open(fs::path(folder_) / "layers.csv"));
    measure::ProfileHooks hooks;
    hooks.stop = &stop_on_interrupt();
    ProgressLine line(true);
    hooks.progress = [&](const measure::ProfileProgress& progress) {
      line.show([&] {
        return fmt::format("{} of {}  {}{}", progress.done, progress.total, progress.now,
                           progress.seconds_left > 0 ? "  " + time_text(progress.seconds_left) + " left" : "");
      });
    };
    hooks.wants_network = [&](const std::string& net, int level) { return !layers.has(net, level); };
    hooks.network = [&](const std::string& net, int level, const models::Graph& graph) {
      return layers.add(net, level, graph);
    };
    STROBE_ASSIGN(const measure::ProfileOutcome outcome, measure::profile(config, folder_, hooks));
    if (config.calibration_s > 0) STROBE_TRY(calibrate(config, *hooks.stop));
    fmt::print("{}: {} measured", (fs::path(folder_) / "measurements.csv").string(), outcome.measured);
    if (outcome.kept > 0) fmt::print(", {} were there", outcome.kept);
    if (outcome.failed > 0) fmt::print(", {} did not pass", outcome.failed);
    if (outcome.passed_over > 0) fmt::print(", {} passed over after a failure", outcome.passed_over);
    if (outcome.disturbed > 0) fmt::print(", {} disturbed by other programs", outcome.disturbed);
    fmt::print("\n");
    return 0;
  }

 private:
  Result<measure::ProfileConfig> read_config() const {
    measure::ProfileConfig config;
    if (!file_.empty()) {
      STROBE_ASSIGN(const std::string text, read_file(file_));
      auto read = measure::read_profile_config(text, fs::path(file_).parent_path());
      // The place in the file stands right behind its name.
      if (!read) return bad_data(file_ + ":" + read.error().message());
      config = std::move(*read);
    }
    for (const auto& [option, text] : given_) {
      const auto set = measure::set_in_profile(config, option->key, text);
      if (!set) return usage_error(fmt::format("{}: {}", option->flag, set.error().message()));
    }
    return config;
  }

  // Each engine's, where the folder does not have it yet.
  Result<void> calibrate(const measure::ProfileConfig& config, const std::atomic<bool>& stop) const {
    for (const std::string& engine : config.engines) {
      std::string name = engine;
      if (config.device != "cpu") name += "-" + config.device;
      std::replace(name.begin(), name.end(), ':', '-');
      const fs::path path = fs::path(folder_) / ("calibration-" + name + ".json");
      std::error_code ignored;
      if (fs::exists(path, ignored)) continue;
      STROBE_ASSIGN(const measure::DeviceCalibration made,
                    measure::calibrate_device(engine, config.device, config.threads, config.calibration_s, &stop));
      STROBE_TRY(write_file(path, measure::calibration_json(made)));
    }
    return {};
  }

  std::string file_, folder_;
  std::vector<std::pair<const KeyOption*, std::string>> given_;
};

}  // namespace

std::unique_ptr<Word> make_model_profile() {
  return std::make_unique<ModelProfile>();
}

}  // namespace strobe::app
