#include "package.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <dlfcn.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <string>
#include <vector>

#include "device.h"
#include "engines/request.h"
#include "error.h"
#include "preprocess.h"
#include "threads.h"

namespace strobe::engines::torch_plugin {
namespace {

using torch::inductor::AOTIModelPackageLoader;

// What the sessions of a network share.
struct Plan {
  std::unique_ptr<AOTIModelPackageLoader> loader;  // has as many runners as there are sessions; thread-safe
  Ends ends;
  c10::Device device{c10::DeviceType::CPU};
  int priority = 0;
  int threads = 1;
};

// The kind of device that a package was compiled for, "cpu" or "cuda"; empty where this torch or package does not tell.
template <typename Loader>
std::string compiled_for(const std::string& file) {
  if constexpr (requires { Loader::load_metadata_from_package(file, "model"); }) {
    const auto facts = Loader::load_metadata_from_package(file, "model");
    const auto device = facts.find("AOTI_DEVICE_KEY");
    if (device != facts.end()) return device->second;
  }
  return "";
}

class PackageSession : public Session {
 public:
  explicit PackageSession(std::shared_ptr<Plan> plan) : plan_(std::move(plan)), lane_(plan_->device, plan_->priority) {}

  Result<void> run(std::span<const float* const> inputs, std::span<float* const> outputs) override {
    STROBE_TRY(check_buffers(plan_->ends, inputs, outputs));
    return run_on([&] { return lane_.bring(inputs.front(), plan_->ends.inputs.front().shape); }, outputs);
  }

  Result<void> run_prepared(const DeviceInput& input, std::span<float* const> outputs) override {
    STROBE_ASSIGN(const TorchInput* const own, own_input(input, plan_->ends, plan_->device, outputs));
    return run_on([&] { return own->seen_by(lane_); }, outputs);
  }

 private:
  template <typename Bring>
  Result<void> run_on(const Bring& bring, std::span<float* const> outputs) {
    auto done = guarded(ErrorKind::kEngine, [&]() -> Result<void> {
      const c10::InferenceMode inference;
      use_threads(plan_->threads);
      const auto stream = lane_.guard();  // a package runs in the current one
      const auto returned = plan_->loader->run({bring()});
      if (returned.size() != outputs.size())
        return engine_error("torch: the package returned " + std::to_string(returned.size()) + " tensors, " +
                            std::to_string(outputs.size()) + " were expected");
      lane_.fetch(returned, outputs, plan_->ends.outputs);
      return {};
    });
    if (!done) lane_.settle();
    return done;
  }

  std::shared_ptr<Plan> plan_;
  Lane lane_;
};

class PackageNetwork : public Network {
 public:
  explicit PackageNetwork(std::shared_ptr<Plan> plan) : plan_(std::move(plan)) {}
  const std::vector<TensorInfo>& inputs() const override { return plan_->ends.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return plan_->ends.outputs; }
  Result<std::unique_ptr<Session>> create_session() override {
    return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Session>> {
      return std::unique_ptr<Session>(std::make_unique<PackageSession>(plan_));
    });
  }
  Result<std::unique_ptr<Preprocessor>> create_preprocessor(const PrepOptions& options) override {
    return make_preprocessor(plan_->ends.inputs.front(), plan_->device, options);
  }
  // One function made of everything: no kernel can be told from another.
  Result<std::vector<Kernel>> kernels() override { return std::vector<Kernel>{}; }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    std::vector<std::pair<std::string, std::string>> facts = {
        {"variant", "AOTInductor package"},
        {"precision", "as compiled"},
        {"threads_per_session", std::to_string(plan_->threads)},
        {"layer_times", "none: the package is one piece of machine code"}};
    for (auto& fact : device_facts(plan_->device)) facts.push_back(std::move(fact));
    return facts;
  }

 private:
  std::shared_ptr<Plan> plan_;
};

}  // namespace

Result<std::unique_ptr<Network>> load_package(const std::filesystem::path& path, const LoadOptions& options) {
  const std::string file = path.string();
  if (options.input_shape.empty())
    return usage_error(file + ": a package does not tell its input's shape; give one, e.g. 3x416x416");
  STROBE_ASSIGN(const c10::Device device, open_device(options.device));
  auto plan = std::make_shared<Plan>();
  plan->device = device;
  plan->priority = options.priority;
  plan->threads = session_threads(options);
  auto opened = guarded(ErrorKind::kBadData, [&]() -> Result<void> {
    const std::string target = compiled_for<AOTIModelPackageLoader>(file),
                      wanted = c10::DeviceTypeName(device.type(), true);
    if (!target.empty() && target != wanted)
      return unsupported("compiled for " + target + ", and asked to run on " + options.device +
                         "; a package runs on the kind of device that it was compiled for");
    // What a CUDA wheel compiles asks for this by name, and does not say where it lies; here it is beside the plugin's
    // other libraries. Where it is missing, the loader's own words tell.
    ::dlopen("libtorch.so", RTLD_LAZY | RTLD_LOCAL);
    plan->loader = std::make_unique<AOTIModelPackageLoader>(file, "model", /*run_single_threaded=*/false,
                                                            static_cast<size_t>(options.sessions), device.index());
    return {};
  });
  if (!opened) return std::move(opened).error().at(file);
  auto tried = guarded(ErrorKind::kUsage, [&]() -> Result<void> {
    const c10::InferenceMode inference;
    use_threads(plan->threads);
    std::vector<int64_t> shape{options.batch};
    shape.insert(shape.end(), options.input_shape.begin(), options.input_shape.end());
    plan->ends.inputs.push_back({"input", shape});
    const auto returned = plan->loader->run({at::zeros(shape, at::TensorOptions(at::kFloat).device(device))});
    wait_for(device);
    for (size_t i = 0; i < returned.size(); ++i)
      plan->ends.outputs.push_back({"output" + std::to_string(i), returned[i].sizes().vec()});
    return {};
  });
  if (!tried) return std::move(tried).error().at(file);
  return std::unique_ptr<Network>(std::make_unique<PackageNetwork>(std::move(plan)));
}

}  // namespace strobe::engines::torch_plugin
