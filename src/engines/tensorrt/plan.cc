#include "plan.h"

#include <fmt/format.h>

#include <chrono>
#include <mutex>

#include "engines/request.h"
#include "log.h"

namespace strobe::engines::tensorrt_plugin {
namespace {

using nvonnxparser::ErrorCode;

// One engine is built at a time: building measures kernels on the device.
std::mutex& builder_mutex() {
  static std::mutex mutex;
  return mutex;
}

Error parse_error(const nvonnxparser::IParser& parser, const Listening& said) {
  const auto text = [](const char* words) { return std::string(words == nullptr ? "" : words); };
  if (parser.getNbErrors() == 0) return bad_data("TensorRT's ONNX parser cannot read it: " + said.errors());
  const nvonnxparser::IParserError& first = *parser.getError(0);
  const std::string node = text(first.nodeName()), operation = text(first.nodeOperator());
  std::string where = "TensorRT's ONNX parser";
  if (!node.empty()) where += ", node " + node;
  if (!operation.empty()) where += " (" + operation + ")";
  const std::string line = one_line(where + ": " + text(first.desc()));
  switch (first.code()) {
    case ErrorCode::kSUCCESS:
    case ErrorCode::kINTERNAL_ERROR:
    case ErrorCode::kMEM_ALLOC_FAILED:
      return engine_error(line);
    case ErrorCode::kMODEL_DESERIALIZE_FAILED:
    case ErrorCode::kINVALID_VALUE:
    case ErrorCode::kINVALID_GRAPH:
    case ErrorCode::kINVALID_NODE:
      return bad_data(line);
    default:
      return unsupported(line);
  }
}

// The whole shape of an input, and float32.
Result<void> settle(nvinfer1::ITensor& input, const LoadOptions& options) {
  const std::string place = fmt::format("input {}", input.getName());
  if (input.getType() != nvinfer1::DataType::kFLOAT)
    return unsupported(place + ": float32 is expected at a network's ends");
  nvinfer1::Dims dims = input.getDimensions();
  if (dims.nbDims < 1) return usage_error(place + " has no extents");
  const auto extents = static_cast<size_t>(dims.nbDims) - 1;
  if (!options.input_shape.empty() && options.input_shape.size() != extents)
    return usage_error(fmt::format("{} has {} extents without the batch, the input shape given has {}", place, extents,
                                   options.input_shape.size()));
  for (size_t i = 0; i <= extents; ++i) {
    int64_t wanted = i == 0 ? options.batch : options.input_shape.empty() ? -1 : options.input_shape[i - 1];
    if (dims.d[i] >= 0 && wanted >= 0 && wanted != dims.d[i])
      return usage_error(
          i == 0 ? fmt::format("{}: its batch is {}, {} was asked for; write it with an open batch", place, dims.d[0],
                               wanted)
                 : fmt::format("{}: extent {} is {}, the input shape given has {}", place, i, dims.d[i], wanted));
    if (dims.d[i] >= 0) continue;
    if (wanted < 0) return usage_error(place + " leaves extents open; give an input shape");
    dims.d[i] = static_cast<decltype(+dims.d[i])>(wanted);
  }
  input.setDimensions(dims);
  return {};
}

// Up to 10.x a network may leave types to TensorRT, within the flags; its own ones are strongly typed everywhere.
nvinfer1::NetworkDefinitionCreationFlags network_flags(const OnnxSource& source) {
#if NV_TENSORRT_MAJOR >= 11
  (void)source;
  return 0;
#else
  return source.carries_numbers ? 1U << static_cast<uint32_t>(nvinfer1::NetworkDefinitionCreationFlag::kSTRONGLY_TYPED)
                                : 0U;
#endif
}

Result<void> set_precision(nvinfer1::IBuilderConfig& config, const OnnxSource& source, Precision precision) {
  config.clearFlag(nvinfer1::BuilderFlag::kTF32);
  if (source.carries_numbers || precision == Precision::kF32) return {};
#if NV_TENSORRT_MAJOR >= 11
  return unsupported(fmt::format("TensorRT {} computes in the types that the file has: write it in {}, and ask for f32",
                                 NV_TENSORRT_MAJOR, to_string(precision)));
#else
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  config.setFlag(precision == Precision::kF16 ? nvinfer1::BuilderFlag::kFP16 : nvinfer1::BuilderFlag::kBF16);
#pragma GCC diagnostic pop
  return {};
#endif
}

Result<Plan> deserialize_plan(const Tensorrt& tensorrt, const void* bytes, size_t size, ErrorKind kind) {
  const Listening said;
  Plan plan;
  plan.runtime = tensorrt.runtime();
  if (plan.runtime == nullptr) return engine_error("TensorRT's runtime: " + said.errors());
  plan.engine.reset(plan.runtime->deserializeCudaEngine(bytes, size));
  if (plan.engine == nullptr) return Error(kind, said.errors());
  return plan;
}

}  // namespace

Result<Plan> build(const Tensorrt& tensorrt, const OnnxSource& source, const LoadOptions& options) {
  const std::lock_guard lock(builder_mutex());
  const Listening said;
  const auto begin = std::chrono::steady_clock::now();
  const auto builder = tensorrt.builder();
  if (builder == nullptr) return engine_error("TensorRT's builder: " + said.errors());
  const std::unique_ptr<nvinfer1::INetworkDefinition> network(builder->createNetworkV2(network_flags(source)));
  const std::unique_ptr<nvinfer1::IBuilderConfig> config(builder->createBuilderConfig());
  if (network == nullptr || config == nullptr) return engine_error("TensorRT's builder: " + said.errors());
  const auto parser = tensorrt.parser(*network);  // its weights are the network's: it lives until that is built
  if (parser == nullptr) return engine_error("TensorRT's ONNX parser: " + said.errors());
  STROBE_TRY(set_precision(*config, source, options.precision));
  if (!parser->parse(source.bytes.data(), source.bytes.size(), source.path.empty() ? nullptr : source.path.c_str()))
    return parse_error(*parser, said);
  std::vector<std::string> inputs, outputs;
  for (int32_t i = 0; i < network->getNbInputs(); ++i) {
    STROBE_TRY(settle(*network->getInput(i), options));
    inputs.emplace_back(network->getInput(i)->getName());
  }
  for (int32_t i = 0; i < network->getNbOutputs(); ++i) outputs.emplace_back(network->getOutput(i)->getName());

  // Names of layers and of the nodes behind them are kept; it does not slow down what is built.
  config->setProfilingVerbosity(nvinfer1::ProfilingVerbosity::kDETAILED);
  const std::unique_ptr<nvinfer1::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
  if (bytes == nullptr) return engine_error("TensorRT could not build it: " + said.errors());
  STROBE_ASSIGN(Plan plan, deserialize_plan(tensorrt, bytes->data(), bytes->size(), ErrorKind::kEngine));
  plan.inputs = std::move(inputs);
  plan.outputs = std::move(outputs);

  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  plan.facts.emplace_back("build_s", fmt::format("{:.1f}", spent.count()));
  plan.facts.emplace_back("engine_mbyte", fmt::format("{:.1f}", static_cast<double>(bytes->size()) / 1e6));
  if (const auto warnings = said.warnings(); !warnings.empty())
    plan.facts.emplace_back("build_warnings", fmt::format("{}, the first: {}", warnings.size(), warnings.front()));
  return plan;
}

Result<Plan> deserialize(const Tensorrt& tensorrt, std::string_view bytes) {
  if (bytes.empty()) return bad_data("the file is empty, expected a TensorRT engine");
  auto plan = deserialize_plan(tensorrt, bytes.data(), bytes.size(), ErrorKind::kBadData);
  if (!plan)
    return bad_data(
        fmt::format("TensorRT {} cannot run this engine, which must have been built by the same version for "
                    "this kind of GPU: {}",
                    tensorrt.version, plan.error().message()));
  return plan;
}

}  // namespace strobe::engines::tensorrt_plugin
