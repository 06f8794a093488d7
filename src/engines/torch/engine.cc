// The torch plugin: LibTorch, on the CPU and, where the wheel has it, on CUDA devices.
#include <torch/version.h>

#include "device.h"
#include "eager.h"
#include "engines/request.h"
#include "package.h"
#include "script.h"
#include "strobe/engines/engine.h"
#include "train.h"

namespace strobe::engines::torch_plugin {
namespace {

class TorchEngine : public Engine {
 public:
  TorchEngine() { cuda_support(); }

  std::string name() const override { return "torch"; }
  std::string version() const override { return TORCH_VERSION; }
  std::vector<std::string> variants() const override { return {"eager", "script", "graph"}; }
  std::vector<Precision> precisions() const override {
    std::vector<Precision> all = {Precision::kF32};
    if (__builtin_cpu_supports("avx512bf16")) all.push_back(Precision::kBf16);
    return all;
  }
  Result<std::vector<Precision>> precisions_on(const std::string& device) const override {
    STROBE_TRY(open_device(device));
    return std::vector<Precision>{Precision::kF32, Precision::kBf16, Precision::kF16};
  }
  Result<DeviceMemory> device_memory(const std::string& device) const override {
    STROBE_ASSIGN(const c10::Device opened, open_device(device));
    return torch_plugin::device_memory(opened);
  }
  Result<void> reset_device_peak(const std::string& device) override {
    STROBE_ASSIGN(const c10::Device opened, open_device(device));
    return torch_plugin::reset_device_peak(opened);
  }
  Result<void> limit_device_memory(double share) override { return torch_plugin::limit_device_memory(share); }
  std::vector<std::string> file_formats() const override { return {".pt", ".pt2"}; }

  Result<std::unique_ptr<Network>> load(const ModelSource& source, const LoadOptions& options) override {
    STROBE_TRY(check_request(*this, source, options));
    const bool script = options.variant == "script";
    const auto* path = std::get_if<std::filesystem::path>(&source);
    if (path != nullptr && options.variant == "graph")
      return unsupported(path->string() +
                         ": torch:graph captures built-in networks only; torch and torch:script run files");
    if (path != nullptr)
      return path->extension() == ".pt2" ? load_package(*path, options) : load_file(*path, script, options);
    const auto& graph = std::get<std::shared_ptr<const models::Graph>>(source);
    return script ? load_script(graph, options) : load_eager(graph, options);
  }
  Result<std::unique_ptr<Trainer>> train(std::shared_ptr<const models::Graph> graph,
                                         const TrainOptions& options) override {
    STROBE_ASSIGN(const c10::Device device, open_device(options.device));
    return make_trainer(std::move(graph), options, device);
  }
};

}  // namespace
}  // namespace strobe::engines::torch_plugin

STROBE_DEFINE_ENGINE(strobe::engines::torch_plugin::TorchEngine)
