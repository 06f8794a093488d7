#include "engines/loader.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include "base/plugin.h"
#include "base/suggest.h"
#include "engines/request.h"

namespace strobe::engines {
namespace {

constexpr std::string_view kPrefix = "libstrobe_engine_";
constexpr std::string_view kSuffix = ".so";

struct Recipe {
  std::string_view name;
  std::string_view how_to_get;
};
constexpr std::array kRecipes = {
    Recipe{"torch", "pip install torch==2.13.0 into the build environment and run `make` again"},
    Recipe{"openvino", "pip install openvino==2026.2.1 into the build environment and run `make` again"},
    Recipe{"opencv", "apt install libopencv-dev and run `make` again"},
    Recipe{"tensorrt",
           "install the headers of TensorRT 10 or later and of CUDA's runtime, or name the former's folder in "
           "TensorRT_ROOT, and run `make` again"},
};

Error not_built(const EngineStatus& wanted, const std::vector<EngineStatus>& engines) {
  std::vector<std::string> built;
  for (const auto& engine : engines) {
    if (engine.built) built.push_back(engine.name);
  }
  return unsupported("engine " + wanted.name + " is not built: " + wanted.how_to_get +
                     (built.empty() ? " (no engine is built)" : " (built: " + joined(built) + ")"));
}

// LibTorch's threads (GNU OpenMP) wait for each other in a busy loop unless told otherwise before their library loads.
// Beside a pipeline's other threads the loop takes the core from the very thread that is waited for: with more threads
// than cores a network of 30 ms was seen to take 450 to 2,900 ms, and 60 to 80 ms with passive waiting. The user's own
// setting stands.
void prepare_environment() {
  if (std::getenv("GOMP_SPINCOUNT") == nullptr) ::setenv("OMP_WAIT_POLICY", "passive", /*replace=*/0);
}

// The dynamic linker maps what a file's headers promise and dies of SIGBUS where the file ends before. Linkers write
// the table of sections last, so a file that was cut anywhere lacks a part of it.
Result<void> check_whole(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  Elf64_Ehdr header{};
  const bool read = static_cast<bool>(file.read(reinterpret_cast<char*>(&header), sizeof(header)));
  if (!read || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
    return engine_error(path + ": not a shared object; build the plugin again");
  }
  std::error_code failed;
  const uintmax_t size = std::filesystem::file_size(path, failed);
  const uintmax_t table = uintmax_t{header.e_shnum} * header.e_shentsize;
  if (failed || header.e_shoff > size || table > size - header.e_shoff) {
    return engine_error(path + ": the file is cut short; build the plugin again");
  }
  return {};
}

Result<std::shared_ptr<Engine>> open_plugin(const std::string& name, const std::string& path) {
  STROBE_TRY(check_whole(path));
  STROBE_ASSIGN(void* const abi, load_plugin(path, "strobe_engine_abi"));
  const int theirs = reinterpret_cast<strobe_engine_abi_fn>(abi)();
  if (theirs != kEngineAbi) {
    return engine_error(path + ": built against version " + std::to_string(theirs) +
                        " of the engine interface, this program has " + std::to_string(kEngineAbi) +
                        "; build the plugin again");
  }
  STROBE_ASSIGN(void* const create, load_plugin(path, "strobe_engine_create"));
  try {
    std::shared_ptr<Engine> engine(reinterpret_cast<strobe_engine_create_fn>(create)());
    if (engine == nullptr) return engine_error(path + ": engine " + name + " could not be made");
    return engine;
  } catch (const std::exception& failure) {
    // A framework that misses files of its own throws when its engine is made, before any adapter can catch it.
    return engine_error(path + ": engine " + name + " could not be made: " + one_line(failure.what()));
  }
}

// The engine as "NAME:VARIANT" names it.
class WithVariant : public Engine {
 public:
  WithVariant(std::shared_ptr<Engine> engine, std::string variant)
      : engine_(std::move(engine)), variant_(std::move(variant)) {}
  std::string name() const override { return engine_->name(); }
  std::string version() const override { return engine_->version(); }
  std::vector<std::string> variants() const override {
    auto all = engine_->variants();
    std::stable_partition(all.begin(), all.end(), [this](const auto& one) { return one == variant_; });
    return all;
  }
  std::vector<Precision> precisions() const override { return engine_->precisions(); }
  Result<std::vector<Precision>> precisions_on(const std::string& device) const override {
    return engine_->precisions_on(device);
  }
  Result<DeviceMemory> device_memory(const std::string& device) const override {
    return engine_->device_memory(device);
  }
  Result<void> reset_device_peak(const std::string& device) override { return engine_->reset_device_peak(device); }
  Result<void> limit_device_memory(double share) override { return engine_->limit_device_memory(share); }
  std::vector<std::string> file_formats() const override { return engine_->file_formats(); }
  Result<std::unique_ptr<Network>> load(const ModelSource& source, const LoadOptions& options) override {
    LoadOptions chosen = options;
    if (chosen.variant.empty()) chosen.variant = variant_;
    return engine_->load(source, chosen);
  }
  Result<std::unique_ptr<Trainer>> train(std::shared_ptr<const models::Graph> graph,
                                         const TrainOptions& options) override {
    return engine_->train(std::move(graph), options);
  }

 private:
  std::shared_ptr<Engine> engine_;
  std::string variant_;
};

}  // namespace

std::vector<EngineStatus> list_engines() {
  std::vector<EngineStatus> engines;
  for (const auto& [name, how] : kRecipes) engines.push_back({std::string(name), false, "", std::string(how)});
  for (const auto& path : find_plugins(std::string(kPrefix))) {
    std::string name = path.filename().string();
    name = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size());
    auto known = std::find_if(engines.begin(), engines.end(), [&](const auto& engine) { return engine.name == name; });
    if (known == engines.end()) known = engines.insert(engines.end(), EngineStatus{name, false, "", ""});
    *known = {name, true, path.string(), ""};
  }
  return engines;
}

namespace {

Result<EngineStatus> find_engine(const std::string& name) {
  const auto engines = list_engines();
  const auto wanted =
      std::find_if(engines.begin(), engines.end(), [&](const auto& engine) { return engine.name == name; });
  if (wanted == engines.end()) {
    std::vector<std::string> names;
    for (const auto& engine : engines) names.push_back(engine.name);
    return usage_error("no engine is called '" + name + "'; " + suggest(name, names));
  }
  if (!wanted->built) return not_built(*wanted, engines);
  return *wanted;
}

}  // namespace

Result<void> check_engine(const std::string& spec) {
  STROBE_TRY(find_engine(spec.substr(0, spec.find(':'))));
  return {};
}

Result<std::shared_ptr<Engine>> open_engine(const std::string& spec) {
  const size_t colon = spec.find(':');
  const std::string name = spec.substr(0, colon);
  STROBE_ASSIGN(const EngineStatus wanted, find_engine(name));
  prepare_environment();
  STROBE_ASSIGN(std::shared_ptr<Engine> engine, open_plugin(name, wanted.path));
  if (colon == std::string::npos) return engine;

  const std::string variant = spec.substr(colon + 1);
  const auto variants = engine->variants();
  if (std::find(variants.begin(), variants.end(), variant) == variants.end()) {
    if (variants.empty()) return usage_error("engine " + name + " has no variants, but '" + spec + "' names one");
    return usage_error("engine " + name + " has no variant '" + variant + "'" + "; " + suggest(variant, variants));
  }
  return std::shared_ptr<Engine>(std::make_shared<WithVariant>(std::move(engine), variant));
}

}  // namespace strobe::engines
