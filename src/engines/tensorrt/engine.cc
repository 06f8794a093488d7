// The tensorrt plugin: NVIDIA's TensorRT, on GPUs only.
#include "strobe/engines/engine.h"

#include "base/file.h"
#include "driver.h"
#include "engines/request.h"
#include "library.h"
#include "models/onnx.h"
#include "network.h"
#include "plan.h"

namespace strobe::engines::tensorrt_plugin {
namespace {

models::OnnxNumber number_of(Precision precision) {
  switch (precision) {
    case Precision::kF16:
      return models::OnnxNumber::kF16;
    case Precision::kBf16:
      return models::OnnxNumber::kBf16;
    case Precision::kF32:
    case Precision::kInt8:
      break;
  }
  return models::OnnxNumber::kF32;
}

Result<Plan> plan_of(const Tensorrt& tensorrt, const Device& device, const ModelSource& source,
                     const LoadOptions& options) {
  if (const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&source)) {
    STROBE_ASSIGN(const std::string onnx,
                  models::write_onnx(**graph, {.batch = options.batch, .number = number_of(options.precision)}));
    auto plan = build(tensorrt, device, {onnx, (*graph)->name, "", true}, options);
    if (!plan) return std::move(plan).error().at((*graph)->name);
    return plan;
  }
  const auto& path = std::get<std::filesystem::path>(source);
  STROBE_ASSIGN(const std::string bytes, read_file(path));
  const bool onnx = path.extension() == ".onnx";
  if (!onnx && options.precision != Precision::kF32)
    return unsupported("an engine file has the precision that it was built with; ask for f32").at(path.string());
  auto plan = onnx ? build(tensorrt, device, {bytes, path.string(), path.string(), false}, options)
                   : deserialize(tensorrt, bytes);
  if (!plan) return std::move(plan).error().at(path.string());
  return plan;
}

class TensorrtEngine : public Engine {
 public:
  std::string name() const override { return "tensorrt"; }
  std::string version() const override {
    const auto& library = tensorrt();
    return library ? library->version : header_version() + " (headers; no library here)";
  }
  std::vector<std::string> variants() const override { return {}; }
  std::vector<Precision> precisions() const override { return {}; }
  Result<std::vector<Precision>> precisions_on(const std::string& device) const override {
    STROBE_TRY(check_device_word(device));
    if (device == "cpu") return unsupported("device cpu: engine tensorrt runs on GPUs only");
    STROBE_ASSIGN(const Device opened, Device::open(device));
    if (const auto& library = tensorrt(); !library) return Error(library.error()).at("engine tensorrt");
    std::vector<Precision> all{Precision::kF32, Precision::kF16};
    if (opened.has_bf16()) all.push_back(Precision::kBf16);
    return all;
  }
  std::vector<std::string> file_formats() const override { return {".onnx", ".engine", ".plan"}; }

  Result<std::unique_ptr<Network>> load(const ModelSource& source, const LoadOptions& options) override {
    STROBE_TRY(check_request(*this, source, options));
    const auto& library = tensorrt();
    if (!library) return Error(library.error()).at("engine tensorrt");
    STROBE_ASSIGN(Device device, Device::open(options.device));
    const Current current(device);
    STROBE_ASSIGN(Plan plan, plan_of(*library, device, source, options));
    const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&source);
    auto network = make_network(device, *library, std::move(plan), graph != nullptr ? graph->get() : nullptr, options);
    if (!network && graph == nullptr)
      return std::move(network).error().at(std::get<std::filesystem::path>(source).string());
    return network;
  }
};

}  // namespace
}  // namespace strobe::engines::tensorrt_plugin

STROBE_DEFINE_ENGINE(strobe::engines::tensorrt_plugin::TensorrtEngine)
