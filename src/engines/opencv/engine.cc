// The opencv plugin: OpenCV's DNN module on the CPU.
#include "strobe/engines/engine.h"

#include <algorithm>
#include <cstring>
#include <opencv2/core/utility.hpp>
#include <opencv2/core/version.hpp>
#include <opencv2/dnn.hpp>

#include "emit.h"
#include "engines/fusion.h"
#include "engines/request.h"
#include "error.h"

namespace strobe::engines::opencv_plugin {
namespace {

// What the sessions of a network share; never changes after load.
struct Plan {
  ModelSource source;
  Ends ends;
  std::vector<Kernel> kernels;
  std::vector<int> kernel_of;  // by OpenCV's layer id; -1 for a layer that does not run on its own
  int threads = 1;
  bool profile = false;
};

Emitted build(const ModelSource& source) {
  if (const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&source)) return emit(**graph);
  Emitted emitted;
  emitted.net = cv::dnn::readNetFromONNX(std::get<std::filesystem::path>(source).string());
  emitted.outputs = emitted.net.getUnconnectedOutLayersNames();
  return emitted;
}

// One network of OpenCV and a run of it: each session has its own, since a network is no object for two threads.
class Runner {
 public:
  explicit Runner(const ModelSource& source) : emitted_(build(source)) {
    emitted_.net.setPreferableBackend(cv::dnn::DNN_BACKEND_OPENCV);
    emitted_.net.setPreferableTarget(cv::dnn::DNN_TARGET_CPU);
  }

  const std::vector<cv::Mat>& forward(const TensorInfo& input, const float* values) {
    const std::vector<int> shape(input.shape.begin(), input.shape.end());
    emitted_.net.setInput(cv::Mat(shape, CV_32F, const_cast<float*>(values)));
    emitted_.net.forward(results_, emitted_.outputs);
    return results_;
  }
  cv::dnn::Net& net() { return emitted_.net; }
  const std::vector<std::string>& output_names() const { return emitted_.outputs; }

  // Nanoseconds by layer id; 0 for a layer that was fused into another one or needs no work.
  std::vector<int64_t> layer_times() {
    std::vector<double> ticks;  // of the layers 1, 2, ...
    emitted_.net.getPerfProfile(ticks);
    std::vector<int64_t> times{0};
    for (const double count : ticks) times.push_back(static_cast<int64_t>(count / cv::getTickFrequency() * 1e9));
    return times;
  }

 private:
  Emitted emitted_;
  std::vector<cv::Mat> results_;
};

class OpencvSession : public Session {
 public:
  explicit OpencvSession(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)), runner_(plan_->source) {}

  Result<void> run(std::span<const float* const> inputs, std::span<float* const> outputs) override {
    STROBE_TRY(check_buffers(plan_->ends, inputs, outputs));
    return guarded(ErrorKind::kEngine, [&]() -> Result<void> {
      const auto& results = runner_.forward(plan_->ends.inputs.front(), inputs.front());
      for (size_t i = 0; i < outputs.size(); ++i) {
        std::memcpy(outputs[i], results[i].ptr<float>(), results[i].total() * sizeof(float));
      }
      return {};
    });
  }

  Result<std::vector<KernelTime>> kernel_times() override {
    if (!plan_->profile) return std::vector<KernelTime>{};
    return guarded(ErrorKind::kEngine, [&]() -> Result<std::vector<KernelTime>> {
      std::vector<KernelTime> times;
      const auto by_layer = runner_.layer_times();
      for (size_t id = 0; id < std::min(by_layer.size(), plan_->kernel_of.size()); ++id) {
        if (plan_->kernel_of[id] >= 0) times.push_back({static_cast<size_t>(plan_->kernel_of[id]), by_layer[id]});
      }
      return times;
    });
  }

 private:
  std::shared_ptr<const Plan> plan_;
  Runner runner_;
};

class OpencvNetwork : public Network {
 public:
  explicit OpencvNetwork(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}
  const std::vector<TensorInfo>& inputs() const override { return plan_->ends.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return plan_->ends.outputs; }
  Result<std::unique_ptr<Session>> create_session() override {
    return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Session>> {
      return std::unique_ptr<Session>(std::make_unique<OpencvSession>(plan_));
    });
  }
  Result<std::vector<Kernel>> kernels() override { return plan_->kernels; }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    return {{"precision", "f32"}, {"threads_per_session", std::to_string(plan_->threads)}};
  }

 private:
  std::shared_ptr<const Plan> plan_;
};

// The layer that one of OpenCV's stands for; none for a copy of the network's input. A file's layers are OpenCV's own.
std::vector<std::string> layers_of(const std::string& name, const models::Graph* graph) {
  if (graph == nullptr) return {name};
  for (const std::string& candidate : {name, name.substr(0, name.rfind('#'))}) {
    const auto layer = std::find_if(graph->layers.begin(), graph->layers.end(),
                                    [&](const auto& one) { return one.name == candidate; });
    if (layer != graph->layers.end() && !is_identity(*layer)) return {candidate};
  }
  return {};
}

// A run on zeros shows what the network returns and which layers run on their own: the others have no time.
Result<void> explore(Plan& plan) {
  Runner runner(plan.source);
  const std::vector<float> zeros(static_cast<size_t>(plan.ends.inputs.front().elements()));
  const auto& results = runner.forward(plan.ends.inputs.front(), zeros.data());
  const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&plan.source);
  for (size_t i = 0; i < results.size(); ++i) {
    if (graph == nullptr) {
      const cv::MatSize& size = results[i].size;
      plan.ends.outputs.push_back({runner.output_names()[i], {size.p, size.p + results[i].dims}});
    } else if (static_cast<int64_t>(results[i].total()) != plan.ends.outputs[i].elements()) {
      return engine_error("opencv: output " + plan.ends.outputs[i].name + " has " + std::to_string(results[i].total()) +
                          " values, the graph says " + std::to_string(plan.ends.outputs[i].elements()));
    }
  }
  const auto times = runner.layer_times();
  plan.kernel_of.assign(times.size(), -1);
  for (size_t id = 1; id < times.size(); ++id) {
    if (times[id] == 0) continue;
    const auto layer = runner.net().getLayer(static_cast<int>(id));
    plan.kernel_of[id] = static_cast<int>(plan.kernels.size());
    plan.kernels.push_back({layer->name, layer->type, "", layers_of(layer->name, graph ? graph->get() : nullptr)});
  }
  if (graph != nullptr) complete_fusion(**graph, plan.kernels);
  return {};
}

class OpencvEngine : public Engine {
 public:
  std::string name() const override { return "opencv"; }
  std::string version() const override { return CV_VERSION; }
  std::vector<std::string> variants() const override { return {}; }
  std::vector<Precision> precisions() const override { return {Precision::kF32}; }
  std::vector<std::string> file_formats() const override { return {".onnx"}; }

  Result<std::unique_ptr<Network>> load(const ModelSource& source, const LoadOptions& options) override {
    STROBE_TRY(check_request(*this, source, options));
    auto plan = std::make_shared<Plan>();
    plan->source = source;
    plan->profile = options.profile_layers;
    // OpenCV has one thread pool and one thread count in a process: several sessions run on one thread each.
    plan->threads = options.sessions > 1 ? 1 : session_threads(options);
    cv::setNumThreads(plan->threads);
    std::string file;
    if (const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&source)) {
      plan->ends = ends_of(**graph, options.batch);
    } else {
      file = std::get<std::filesystem::path>(source).string();
      if (options.input_shape.empty()) {
        return usage_error(file + ": OpenCV does not tell the input's shape of an ONNX file; give one, e.g. 3x416x416");
      }
      std::vector<int64_t> shape{options.batch};
      shape.insert(shape.end(), options.input_shape.begin(), options.input_shape.end());
      plan->ends.inputs.push_back({"input", std::move(shape)});
      auto read = guarded(ErrorKind::kBadData, [&]() -> Result<void> {
        build(source);
        return {};
      });
      if (!read) return std::move(read).error().at(file);
    }
    auto explored = guarded(ErrorKind::kEngine, [&] { return explore(*plan); });
    if (!explored) return file.empty() ? std::move(explored).error() : std::move(explored).error().at(file);
    return std::unique_ptr<Network>(std::make_unique<OpencvNetwork>(std::move(plan)));
  }
};

}  // namespace
}  // namespace strobe::engines::opencv_plugin

STROBE_DEFINE_ENGINE(strobe::engines::opencv_plugin::OpencvEngine)
