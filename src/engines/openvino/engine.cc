// The openvino plugin: OpenVINO on the CPU.
#include "strobe/engines/engine.h"

#include <algorithm>
#include <openvino/core/version.hpp>
#include <openvino/runtime/core.hpp>
#include <openvino/runtime/properties.hpp>

#include "emit.h"
#include "engines/request.h"
#include "error.h"
#include "file.h"
#include "network.h"

namespace strobe::engines::openvino_plugin {
namespace {

class OpenvinoEngine : public Engine {
 public:
  std::string name() const override { return "openvino"; }
  std::string version() const override { return ov::get_openvino_version().buildNumber; }
  std::vector<std::string> variants() const override { return {}; }

  std::vector<Precision> precisions() const override {
    std::vector<Precision> all = {Precision::kF32};
    try {
      const auto capabilities = core_.get_property("CPU", ov::device::capabilities);
      const auto has = [&](const char* one) {
        return std::find(capabilities.begin(), capabilities.end(), one) != capabilities.end();
      };
      if (has(ov::device::capability::BF16)) all.push_back(Precision::kBf16);
      if (has(ov::device::capability::INT8)) all.push_back(Precision::kInt8);
    } catch (const std::exception&) {
      // No CPU device: loading says why.
    }
    return all;
  }

  std::vector<std::string> file_formats() const override { return {".onnx", ".xml"}; }

  Result<std::unique_ptr<Network>> load(const ModelSource& source, const LoadOptions& options) override {
    STROBE_TRY(check_request(*this, source, options));
    if (const auto* path = std::get_if<std::filesystem::path>(&source)) {
      STROBE_ASSIGN(const auto model, read_file(core_, *path, options));
      auto network = compile(core_, model, nullptr, options);
      if (!network) return std::move(network).error().at(path->string());
      return network;
    }
    const auto& graph = std::get<std::shared_ptr<const models::Graph>>(source);
    if (options.precision == Precision::kInt8) {
      return unsupported(graph->name + ": i8 needs a quantised model (.xml or .onnx); this network's weights are f32");
    }
    STROBE_ASSIGN(const auto model, guarded(ErrorKind::kEngine, [&]() -> Result<std::shared_ptr<ov::Model>> {
                    return emit(*graph, options.batch);
                  }));
    return compile(core_, model, graph, options);
  }

 private:
  mutable ov::Core core_;
};

}  // namespace
}  // namespace strobe::engines::openvino_plugin

STROBE_DEFINE_ENGINE(strobe::engines::openvino_plugin::OpenvinoEngine)
