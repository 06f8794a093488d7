// `strobe model export`: a network as a file that other programs run.
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <string>

#include "base/file.h"
#include "model_command.h"
#include "models/model.h"
#include "models/onnx.h"

namespace strobe::app {
namespace {

namespace fs = std::filesystem;

// "dynamic" is 0, as the writer has it.
Result<int64_t> parse_batch(const std::string& text) {
  if (text == "dynamic") return 0;
  constexpr int64_t kMost = int64_t{1} << 16;
  int64_t batch = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), batch);
  if (failed != std::errc{} || end != text.data() + text.size() || batch < 1 || batch > kMost)
    return usage_error(fmt::format("--batch '{}': expected a number from 1 to {}, or dynamic", text, kMost));
  return batch;
}

// Before the network is read, which may take long.
Result<void> check_output(const fs::path& path) {
  if (path.extension() != ".onnx")
    return usage_error(fmt::format("--output {}: expected a name that ends in .onnx", path.string()));
  STROBE_TRY(check_replaceable(path));
  std::error_code ignored;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  if (!fs::is_directory(folder, ignored)) return io_error(fmt::format("{}: no such folder", folder.string()));
  return {};
}

class ModelExport : public Word {
 public:
  const char* name() const override { return "export"; }
  const char* summary() const override { return "A network as ONNX, for TensorRT, ONNX Runtime, OpenVINO"; }

  void declare(CLI::App& app) override {
    app.add_option("network", network_, "Built-in network, or a file of one")->required();
    app.add_option("-o,--output", output_, "FILE.onnx")->required();
    app.add_option("--batch", batch_, "Items of the input: a number, or dynamic to leave it open")
        ->capture_default_str();
    app.add_option("--weights", open_.weights, "Weights of the network (.weights, .safetensors)");
    app.add_option("--seed", open_.seed, "Of seeded weights")->capture_default_str();
    app.add_option("--width", open_.width, "Width of the input (default: the network's own)");
    app.add_option("--height", open_.height, "Height of the input (default: the network's own)");
  }

  Result<int> run() override {
    models::OnnxOptions options;
    STROBE_ASSIGN(options.batch, parse_batch(batch_));
    STROBE_TRY(check_output(output_));
    STROBE_ASSIGN(const models::Graph graph, models::open_graph(network_, open_));
    STROBE_ASSIGN(const std::string file, models::write_onnx(graph, options));
    STROBE_TRY(write_file(output_, file));
    fmt::print("{}: {}, \"{}\" of {}x{}, {} layers, {:.1f} MB{}\n", output_, graph.name, graph.layers.front().name,
               options.batch > 0 ? std::to_string(options.batch) : "batch", graph.input_shape().to_string(),
               graph.layers.size(), static_cast<double>(file.size()) / 1e6,
               graph.trained ? "" : "; the weights are seeded, not trained");
    return 0;
  }

 private:
  std::string network_, output_, batch_ = "1";
  models::OpenOptions open_;
};

}  // namespace

std::unique_ptr<Word> make_model_export() {
  return std::make_unique<ModelExport>();
}

}  // namespace strobe::app
