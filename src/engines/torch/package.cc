#include "package.h"

#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/inductor/aoti_package/model_package_loader.h>

#include <string>
#include <vector>

#include "engines/request.h"
#include "error.h"
#include "threads.h"

namespace strobe::engines::torch_plugin {
namespace {

using torch::inductor::AOTIModelPackageLoader;

// What the sessions of a network share.
struct Plan {
  std::unique_ptr<AOTIModelPackageLoader> loader;  // has as many runners as there are sessions; thread-safe
  Ends ends;
  int threads = 1;
};

class PackageSession : public Session {
 public:
  explicit PackageSession(std::shared_ptr<Plan> plan) : plan_(std::move(plan)) {}

  Result<void> run(std::span<const float* const> inputs, std::span<float* const> outputs) override {
    STROBE_TRY(check_buffers(plan_->ends, inputs, outputs));
    return guarded(ErrorKind::kEngine, [&]() -> Result<void> {
      const c10::InferenceMode inference;
      use_threads(plan_->threads);
      const auto returned = plan_->loader->run(
          {at::from_blob(const_cast<float*>(inputs.front()), plan_->ends.inputs.front().shape, at::kFloat)});
      if (returned.size() != outputs.size())
        return engine_error("torch: the package returned " + std::to_string(returned.size()) + " tensors, " +
                            std::to_string(outputs.size()) + " were expected");
      for (size_t i = 0; i < outputs.size(); ++i)
        at::from_blob(outputs[i], plan_->ends.outputs[i].shape, at::kFloat).copy_(returned[i]);
      return {};
    });
  }

 private:
  std::shared_ptr<Plan> plan_;
};

class PackageNetwork : public Network {
 public:
  explicit PackageNetwork(std::shared_ptr<Plan> plan) : plan_(std::move(plan)) {}
  const std::vector<TensorInfo>& inputs() const override { return plan_->ends.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return plan_->ends.outputs; }
  Result<std::unique_ptr<Session>> create_session() override {
    return std::unique_ptr<Session>(std::make_unique<PackageSession>(plan_));
  }
  // One function made of everything: no kernel can be told from another.
  Result<std::vector<Kernel>> kernels() override { return std::vector<Kernel>{}; }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return {{"variant", "AOTInductor package"},
            {"precision", "as compiled"},
            {"threads_per_session", std::to_string(plan_->threads)},
            {"layer_times", "none: the package is one piece of machine code"}};
  }

 private:
  std::shared_ptr<Plan> plan_;
};

}  // namespace

Result<std::unique_ptr<Network>> load_package(const std::filesystem::path& path, const LoadOptions& options) {
  const std::string file = path.string();
  if (options.input_shape.empty())
    return usage_error(file + ": a package does not tell its input's shape; give one, e.g. 3x416x416");
  auto plan = std::make_shared<Plan>();
  plan->threads = session_threads(options);
  auto opened = guarded(ErrorKind::kBadData, [&]() -> Result<void> {
    plan->loader = std::make_unique<AOTIModelPackageLoader>(file, "model", /*run_single_threaded=*/false,
                                                            static_cast<size_t>(options.sessions));
    return {};
  });
  if (!opened) return std::move(opened).error().at(file);
  auto tried = guarded(ErrorKind::kUsage, [&]() -> Result<void> {
    const c10::InferenceMode inference;
    use_threads(plan->threads);
    std::vector<int64_t> shape{options.batch};
    shape.insert(shape.end(), options.input_shape.begin(), options.input_shape.end());
    plan->ends.inputs.push_back({"input", shape});
    const auto returned = plan->loader->run({at::zeros(shape)});
    for (size_t i = 0; i < returned.size(); ++i)
      plan->ends.outputs.push_back({"output" + std::to_string(i), returned[i].sizes().vec()});
    return {};
  });
  if (!tried) return std::move(tried).error().at(file);
  return std::unique_ptr<Network>(std::make_unique<PackageNetwork>(std::move(plan)));
}

}  // namespace strobe::engines::torch_plugin
