#include "network.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <set>

#include "engines/request.h"
#include "kernels.h"
#include "log.h"
#include "preprocess.h"

namespace strobe::engines::tensorrt_plugin {
namespace {

using nvinfer1::Dims;
using nvinfer1::OptProfileSelector;

struct Shared {
  explicit Shared(Device on) : device(std::move(on)) {}
  ~Shared() {
    const Current current(device);
    plan.engine.reset();
    plan.runtime.reset();
  }
  Device device;
  Plan plan;
  Ends ends;
  std::vector<std::string> inputs, outputs;  // as the engine calls them
  KernelList kernels;
  bool profile = false;
  int priority = 0;
  std::mutex mutex;  // contexts are made one at a time
  std::atomic<size_t> unknown_layers{0};
  std::vector<std::pair<std::string, std::string>> facts;
};

std::vector<int64_t> extents_of(const Dims& dims) {
  return {dims.d, dims.d + std::max(0, dims.nbDims)};
}

Dims dims_of(const std::vector<int64_t>& extents) {
  Dims dims{};
  dims.nbDims = static_cast<int32_t>(extents.size());
  for (size_t i = 0; i < extents.size(); ++i) dims.d[i] = static_cast<decltype(+dims.d[i])>(extents[i]);
  return dims;
}

class TensorrtSession : public Session {
 public:
  static Result<std::unique_ptr<Session>> create(std::shared_ptr<Shared> shared) {
    const Current current(shared->device);
    std::unique_ptr<TensorrtSession> session(new TensorrtSession(std::move(shared)));
    STROBE_TRY(session->prepare());
    return std::unique_ptr<Session>(std::move(session));
  }

  ~TensorrtSession() override {
    const Current current(shared_->device);
    settle();
    context_.reset();
    buffers_.clear();
    lane_.reset();
  }

  Result<void> run(std::span<const float* const> inputs, std::span<float* const> outputs) override {
    STROBE_TRY(check_buffers(shared_->ends, inputs, outputs));
    const Current current(shared_->device);
    return finish(start(inputs), outputs);
  }

  Result<void> run_prepared(const DeviceInput& input, std::span<float* const> outputs) override {
    STROBE_ASSIGN(const TensorrtInput* const own, own_input(input, shared_->ends, shared_->device, outputs));
    const Current current(shared_->device);
    return finish(start(*own), outputs);
  }

  Result<std::vector<KernelTime>> kernel_times() override {
    return times_ ? times_->times() : std::vector<KernelTime>{};
  }

 private:
  explicit TensorrtSession(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  Result<void> prepare() {
    STROBE_ASSIGN(lane_, Lane::create(shared_->device, shared_->priority));
    const Listening said;
    {
      const std::lock_guard lock(shared_->mutex);
      context_.reset(shared_->plan.engine->createExecutionContext());
    }
    if (context_ == nullptr) return engine_error("TensorRT could not make an execution context: " + said.errors());
    for (size_t i = 0; i < shared_->inputs.size(); ++i) {
      if (!context_->setInputShape(shared_->inputs[i].c_str(), dims_of(shared_->ends.inputs[i].shape)))
        return engine_error(shared_->inputs[i] + ": " + said.errors());
      STROBE_TRY(bind(shared_->inputs[i], shared_->ends.inputs[i], said));
    }
    for (size_t i = 0; i < shared_->outputs.size(); ++i)
      STROBE_TRY(bind(shared_->outputs[i], shared_->ends.outputs[i], said));
    if (shared_->profile) {
      times_.emplace(shared_->kernels);
      context_->setProfiler(&*times_);
    }
    return {};
  }

  Result<void> bind(const std::string& name, const TensorInfo& info, const Listening& said) {
    STROBE_ASSIGN(Buffer buffer, Buffer::create(shared_->device, info.elements()));
    if (!context_->setTensorAddress(name.c_str(), buffer.device())) return engine_error(name + ": " + said.errors());
    buffers_.push_back(std::move(buffer));
    return {};
  }

  // Everything into the stream; nothing is waited for, except by TensorRT's profiler.
  Result<void> start(std::span<const float* const> inputs) {
    for (size_t i = 0; i < inputs.size(); ++i) STROBE_TRY(buffers_[i].bring(inputs[i], lane_->stream()));
    if (reads_prepared_) STROBE_TRY(read_from(buffers_[0].device()));
    reads_prepared_ = false;
    return enqueue();
  }
  Result<void> start(const TensorrtInput& input) {
    STROBE_TRY(input.ready().hold_back(lane_->stream()));
    reads_prepared_ = true;
    STROBE_TRY(read_from(input.values().address()));
    return enqueue();
  }
  Result<void> read_from(void* first_input) {
    const Listening said;
    if (!context_->setTensorAddress(shared_->inputs[0].c_str(), first_input))
      return engine_error(shared_->inputs[0] + ": " + said.errors());
    return {};
  }
  Result<void> enqueue() {
    if (times_) times_->begin_run();
    const Listening said;
    if (!context_->enqueueV3(static_cast<cudaStream_t>(lane_->stream())))
      return engine_error("TensorRT could not run: " + said.errors());
    for (size_t i = shared_->inputs.size(); i < buffers_.size(); ++i) STROBE_TRY(buffers_[i].fetch(lane_->stream()));
    return {};
  }
  Result<void> finish(Result<void> done, std::span<float* const> outputs) {
    if (done) done = lane_->wait();
    if (!done) {
      settle();
      return done;
    }
    for (size_t i = 0; i < outputs.size(); ++i) buffers_[shared_->inputs.size() + i].take(outputs[i]);
    if (times_) shared_->unknown_layers = times_->unknown();
    return {};
  }

  // After a failure, whose cause goes before what the waiting itself may fail with.
  void settle() const {
    if (lane_ != nullptr) (void)lane_->wait().has_value();
  }

  std::shared_ptr<Shared> shared_;
  std::unique_ptr<Lane> lane_;
  std::vector<Buffer> buffers_;  // inputs, then outputs
  bool reads_prepared_ = false;  // the context has the address of an input that was prepared on the device
  std::optional<LayerTimes> times_;
  std::unique_ptr<nvinfer1::IExecutionContext> context_;
};

class TensorrtNetwork : public Network {
 public:
  explicit TensorrtNetwork(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  const std::vector<TensorInfo>& inputs() const override { return shared_->ends.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return shared_->ends.outputs; }
  Result<std::unique_ptr<Session>> create_session() override { return TensorrtSession::create(shared_); }
  Result<std::unique_ptr<Preprocessor>> create_preprocessor(const PrepOptions& options) override {
    if (shared_->ends.inputs.size() != 1) return unsupported("the network's input is not one picture");
    return make_preprocessor(shared_->device, shared_->priority, shared_->ends.inputs[0], options);
  }
  Result<std::vector<Kernel>> kernels() override { return shared_->kernels.kernels; }
  std::vector<std::pair<std::string, std::string>> facts() const override {
    auto facts = shared_->facts;
    if (const size_t unknown = shared_->unknown_layers; unknown > 0)
      facts.emplace_back("layer_times_without_kernel", std::to_string(unknown));
    return facts;
  }

 private:
  std::shared_ptr<Shared> shared_;
};

// Plain float32 in the device's memory, at both ends.
Result<void> check_end(const nvinfer1::ICudaEngine& engine, const char* name) {
  if (engine.getTensorDataType(name) != nvinfer1::DataType::kFLOAT)
    return unsupported(fmt::format("tensor {}: float32 is expected at a network's ends", name));
  if (engine.getTensorLocation(name) != nvinfer1::TensorLocation::kDEVICE)
    return unsupported(fmt::format("tensor {} is a shape that is read on the host; such networks are not run", name));
  if (engine.getTensorFormat(name) != nvinfer1::TensorFormat::kLINEAR)
    return unsupported(fmt::format("tensor {} is not in plain NCHW order: {}", name, engine.getTensorFormatDesc(name)));
  return {};
}

// The shape of a run's input. What is fixed in the engine stays; what is open is taken from the request, within the
// engine's (first) profile.
Result<std::vector<int64_t>> input_extents(const nvinfer1::ICudaEngine& engine, const char* name,
                                           const LoadOptions& options) {
  auto extents = extents_of(engine.getTensorShape(name));
  if (extents.empty()) return unsupported(fmt::format("input {} has no extents", name));
  std::vector<int64_t> asked = options.input_shape;
  if (asked.empty()) asked.assign(extents.size() - 1, -1);
  if (asked.size() + 1 != extents.size())
    return usage_error(fmt::format("input {} has {} extents without the batch, the input shape given has {}", name,
                                   extents.size() - 1, asked.size()));
  asked.insert(asked.begin(), options.batch);
  std::vector<int64_t> least, most;
  if (std::any_of(extents.begin(), extents.end(), [](int64_t extent) { return extent < 0; })) {
    least = extents_of(engine.getProfileShape(name, 0, OptProfileSelector::kMIN));
    most = extents_of(engine.getProfileShape(name, 0, OptProfileSelector::kMAX));
  }
  for (size_t i = 0; i < extents.size(); ++i) {
    const std::string what = i == 0 ? "batch" : fmt::format("extent {}", i);
    if (extents[i] >= 0) {
      if (asked[i] >= 0 && asked[i] != extents[i])
        return usage_error(fmt::format("input {}: this engine was built for {} {}, {} was asked for", name, what,
                                       extents[i], asked[i]));
      continue;
    }
    if (asked[i] < 0) return usage_error(fmt::format("input {} leaves extents open; give an input shape", name));
    if (i < least.size() && i < most.size() && (asked[i] < least[i] || asked[i] > most[i]))
      return usage_error(fmt::format("input {}: this engine was built for {} {} to {}, {} was asked for", name, what,
                                     least[i], most[i], asked[i]));
    extents[i] = asked[i];
  }
  return extents;
}

// Names and shapes of the ends, in the network's order or, of a file, in the engine's own.
Result<void> read_ends(Shared& shared, const LoadOptions& options) {
  nvinfer1::ICudaEngine& engine = *shared.plan.engine;
  shared.inputs = shared.plan.inputs;
  shared.outputs = shared.plan.outputs;
  std::set<std::string> there;
  for (int32_t i = 0; i < engine.getNbIOTensors(); ++i) {
    const std::string name = engine.getIOTensorName(i);
    STROBE_TRY(check_end(engine, name.c_str()));
    there.insert(name);
    if (!shared.plan.inputs.empty()) continue;
    const bool input = engine.getTensorIOMode(name.c_str()) == nvinfer1::TensorIOMode::kINPUT;
    (input ? shared.inputs : shared.outputs).push_back(name);
  }
  for (const auto* side : {&shared.inputs, &shared.outputs})
    for (const std::string& name : *side)
      if (!there.contains(name)) return engine_error(name + ": TensorRT's engine lacks this end of its network");
  for (const std::string& name : shared.inputs) {
    STROBE_ASSIGN(auto extents, input_extents(engine, name.c_str(), options));
    shared.ends.inputs.push_back({name, std::move(extents)});
  }
  for (const std::string& name : shared.outputs)
    shared.ends.outputs.push_back({name, extents_of(engine.getTensorShape(name.c_str()))});
  const bool open = std::any_of(shared.ends.outputs.begin(), shared.ends.outputs.end(), [](const TensorInfo& output) {
    return std::any_of(output.shape.begin(), output.shape.end(), [](int64_t extent) { return extent < 0; });
  });
  if (!open) return {};
  const Listening said;
  const std::unique_ptr<nvinfer1::IExecutionContext> context(engine.createExecutionContext());
  if (context == nullptr) return engine_error("TensorRT could not make an execution context: " + said.errors());
  for (const TensorInfo& input : shared.ends.inputs)
    if (!context->setInputShape(input.name.c_str(), dims_of(input.shape)))
      return engine_error(input.name + ": " + said.errors());
  for (TensorInfo& output : shared.ends.outputs) {
    output.shape = extents_of(context->getTensorShape(output.name.c_str()));
    for (const int64_t extent : output.shape)
      if (extent < 0)
        return unsupported(
            fmt::format("output {}: its size depends on the values; such networks are not run", output.name));
  }
  return {};
}

// The ends bear the graph's names, which the engine may have had to change (models/onnx.h).
Result<void> take_names(Shared& shared, const models::Graph& graph, int64_t batch) {
  Ends ends = ends_of(graph, batch);
  const auto same = [](const std::vector<TensorInfo>& a, const std::vector<TensorInfo>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](const auto& x, const auto& y) { return x.shape == y.shape; });
  };
  if (!same(ends.inputs, shared.ends.inputs) || !same(ends.outputs, shared.ends.outputs))
    return internal_error("the engine that TensorRT built has other ends than its network");
  shared.ends = std::move(ends);
  return {};
}

}  // namespace

Result<std::unique_ptr<Network>> make_network(Device device, const Tensorrt& tensorrt, Plan plan,
                                              const models::Graph* graph, const LoadOptions& options) {
  auto shared = std::make_shared<Shared>(std::move(device));
  shared->plan = std::move(plan);
  shared->profile = options.profile_layers;
  shared->priority = options.priority;
  STROBE_TRY(read_ends(*shared, options));
  if (graph != nullptr) STROBE_TRY(take_names(*shared, *graph, options.batch));
  STROBE_ASSIGN(shared->kernels, kernels_of(*shared->plan.engine, graph));
  shared->facts = {{"device", shared->device.name()},
                   {"device_name", shared->device.model()},
                   {"precision", std::string(to_string(options.precision))},
                   {"tf32", "off"},
                   {"tensorrt", tensorrt.version},
                   {"tensorrt_library", tensorrt.path}};
  shared->facts.insert(shared->facts.end(), shared->plan.facts.begin(), shared->plan.facts.end());
  return std::unique_ptr<Network>(std::make_unique<TensorrtNetwork>(std::move(shared)));
}

}  // namespace strobe::engines::tensorrt_plugin
