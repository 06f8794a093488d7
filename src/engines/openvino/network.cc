#include "network.h"

#include <algorithm>
#include <mutex>
#include <openvino/op/parameter.hpp>
#include <openvino/op/result.hpp>
#include <openvino/runtime/intel_cpu/properties.hpp>
#include <openvino/runtime/properties.hpp>
#include <optional>

#include "engines/request.h"
#include "error.h"
#include "kernels.h"

namespace strobe::engines::openvino_plugin {
namespace {

// Where an output comes from. OpenVINO takes an output that is an input, with no operation between them, for one piece
// of memory: set to a buffer of its own, it spoils the input. Such an output is left out of the model and copied.
struct OutputSource {
  std::optional<size_t> input;
  size_t port = 0;  // of the compiled model, else
};

// What the sessions of a network share.
struct Shared {
  std::shared_ptr<const models::Graph> graph;
  ov::CompiledModel compiled;
  Ends ends;
  std::vector<OutputSource> sources;  // by output
  KernelList kernels;
  bool profile = false;
  std::mutex profile_mutex;  // held through a profiled run: the counters are those of the one stream
  std::optional<RunningMeans> means;
};

class OpenvinoSession : public Session {
 public:
  OpenvinoSession(std::shared_ptr<Shared> shared, ov::InferRequest request)
      : shared_(std::move(shared)), request_(std::move(request)) {
    bound_.resize(shared_->ends.inputs.size() + shared_->ends.outputs.size());
  }

  Result<void> run(std::span<const float* const> inputs, std::span<float* const> outputs) override {
    STROBE_TRY(check_buffers(shared_->ends, inputs, outputs));
    return guarded(ErrorKind::kEngine, [&]() -> Result<void> {
      bind(inputs, outputs);
      if (shared_->profile) {
        const std::lock_guard lock(shared_->profile_mutex);
        request_.infer();
        times_ = last_run(shared_->kernels, request_.get_profiling_info(), *shared_->means);
      } else {
        request_.infer();
      }
      for (size_t i = 0; i < outputs.size(); ++i) {
        const auto input = shared_->sources[i].input;
        if (input) std::copy_n(inputs[*input], shared_->ends.outputs[i].elements(), outputs[i]);
      }
      return {};
    });
  }

  Result<std::vector<KernelTime>> kernel_times() override { return times_; }

 private:
  // The request reads and writes the caller's buffers themselves; they are wrapped anew only when they change.
  void bind(std::span<const float* const> inputs, std::span<float* const> outputs) {
    const auto wrap = [this](size_t slot, const TensorInfo& info, float* buffer, auto&& set) {
      if (bound_[slot] == buffer) return;
      set(ov::Tensor(ov::element::f32, ov::Shape(info.shape.begin(), info.shape.end()), buffer));
      bound_[slot] = buffer;
    };
    for (size_t i = 0; i < inputs.size(); ++i) {
      wrap(i, shared_->ends.inputs[i], const_cast<float*>(inputs[i]),
           [&](const ov::Tensor& tensor) { request_.set_input_tensor(i, tensor); });
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      const OutputSource& source = shared_->sources[i];
      if (source.input) continue;
      wrap(inputs.size() + i, shared_->ends.outputs[i], outputs[i],
           [&](const ov::Tensor& tensor) { request_.set_output_tensor(source.port, tensor); });
    }
  }

  std::shared_ptr<Shared> shared_;
  ov::InferRequest request_;
  std::vector<const float*> bound_;
  std::vector<KernelTime> times_;
};

class OpenvinoNetwork : public Network {
 public:
  explicit OpenvinoNetwork(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}
  const std::vector<TensorInfo>& inputs() const override { return shared_->ends.inputs; }
  const std::vector<TensorInfo>& outputs() const override { return shared_->ends.outputs; }
  Result<std::unique_ptr<Session>> create_session() override {
    return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Session>> {
      return std::unique_ptr<Session>(
          std::make_unique<OpenvinoSession>(shared_, shared_->compiled.create_infer_request()));
    });
  }
  Result<std::vector<Kernel>> kernels() override { return shared_->kernels.kernels; }

  std::vector<std::pair<std::string, std::string>> facts() const override {
    std::vector<std::pair<std::string, std::string>> facts;
    const auto add = [&](const char* key, const auto& property) {
      try {
        facts.emplace_back(key, ov::Any(shared_->compiled.get_property(property)).template as<std::string>());
      } catch (const std::exception&) {
        // A fact that this version does not tell is left out.
      }
    };
    add("precision", ov::hint::inference_precision);
    add("hint", ov::hint::performance_mode);
    add("streams", ov::num_streams);
    add("threads", ov::inference_num_threads);
    add("cpu_pinning", ov::hint::enable_cpu_pinning);
    add("execution_devices", ov::execution_devices);
    return facts;
  }

 private:
  std::shared_ptr<Shared> shared_;
};

std::string port_name(const ov::Output<const ov::Node>& port, const std::string& fallback) {
  return port.get_names().empty() ? fallback : port.get_any_name();
}

Ends ends_of_model(const ov::Model& model) {
  const auto extents = [](const ov::Shape& shape) { return std::vector<int64_t>(shape.begin(), shape.end()); };
  Ends ends;
  for (const auto& port : model.inputs()) {
    ends.inputs.push_back({port_name(port, port.get_node()->get_friendly_name()), extents(port.get_shape())});
  }
  for (const auto& port : model.outputs()) {
    const auto* source = port.get_node()->get_input_node_ptr(0);
    ends.outputs.push_back({port_name(port, source->get_friendly_name()), extents(port.get_shape())});
  }
  return ends;
}

std::vector<OutputSource> take_out_inputs(ov::Model& model) {
  std::vector<OutputSource> sources;
  size_t port = 0;
  for (const auto& result : ov::ResultVector(model.get_results())) {
    const auto parameter = ov::as_type_ptr<ov::op::v0::Parameter>(result->get_input_node_shared_ptr(0));
    if (parameter == nullptr) {
      sources.push_back({std::nullopt, port++});
    } else {
      sources.push_back({static_cast<size_t>(model.get_parameter_index(parameter)), 0});
      model.remove_result(result);
    }
  }
  return sources;
}

ov::AnyMap settings(const LoadOptions& options) {
  const int threads = session_threads(options);
  return {
      ov::hint::performance_mode(options.hint == Hint::kLatency ? ov::hint::PerformanceMode::LATENCY
                                                                : ov::hint::PerformanceMode::THROUGHPUT),
      ov::hint::inference_precision(options.precision == Precision::kBf16 ? ov::element::bf16 : ov::element::f32),
      ov::num_streams(options.profile_layers ? 1 : options.sessions),
      ov::inference_num_threads(options.sessions * threads),
      // Pinning takes the first cores of the machine: two programs that pin would share them while others idle.
      ov::hint::enable_cpu_pinning(false),
      ov::enable_profiling(options.profile_layers),
  };
}

}  // namespace

Result<std::unique_ptr<Network>> compile(ov::Core& core, const std::shared_ptr<ov::Model>& model,
                                         std::shared_ptr<const models::Graph> graph, const LoadOptions& options) {
  return guarded(ErrorKind::kEngine, [&]() -> Result<std::unique_ptr<Network>> {
    auto shared = std::make_shared<Shared>();
    shared->graph = std::move(graph);
    shared->profile = options.profile_layers;
    shared->ends = shared->graph != nullptr ? ends_of(*shared->graph, options.batch) : ends_of_model(*model);
    shared->sources = take_out_inputs(*model);
    if (model->get_results().empty()) {
      return unsupported("openvino: " + model->get_friendly_name() + ": every output is an input, nothing is computed");
    }
    shared->compiled = core.compile_model(model, "CPU", settings(options));
    shared->kernels = kernels_of(shared->compiled, shared->graph.get());
    shared->means.emplace(shared->kernels.kernels.size());
    return std::unique_ptr<Network>(std::make_unique<OpenvinoNetwork>(std::move(shared)));
  });
}

}  // namespace strobe::engines::openvino_plugin
