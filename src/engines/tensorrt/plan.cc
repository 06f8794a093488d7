#include "plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/utsname.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/sha256.h"
#include "cache.h"
#include "engines/request.h"
#include "log.h"
#include "onnx_weights.h"

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

Result<Plan> deserialize_plan(const Tensorrt& tensorrt, std::string_view bytes, ErrorKind kind) {
  const Listening said;
  Plan plan;
  plan.runtime = tensorrt.runtime();
  if (plan.runtime == nullptr) return engine_error("TensorRT's runtime: " + said.errors());
  plan.engine.reset(plan.runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
  if (plan.engine == nullptr) return Error(kind, said.errors());
  if (const auto warnings = said.warnings(); !warnings.empty())
    plan.facts.emplace_back("load_warnings", fmt::format("{}, the first: {}", warnings.size(), warnings.front()));
  return plan;
}

std::string seconds_since(std::chrono::steady_clock::time_point begin) {
  const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
  return fmt::format("{:.3f}", spent.count());
}

Result<CachedEngine> build_engine(const Tensorrt& tensorrt, const OnnxSource& source, const LoadOptions& options) {
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
  CachedEngine built;
  for (int32_t i = 0; i < network->getNbInputs(); ++i) {
    if (!source.whole) STROBE_TRY(settle(*network->getInput(i), options));
    built.inputs.emplace_back(network->getInput(i)->getName());
  }
  for (int32_t i = 0; i < network->getNbOutputs(); ++i) built.outputs.emplace_back(network->getOutput(i)->getName());

  // Names of layers and of the nodes behind them are kept; it does not slow down what is built.
  config->setProfilingVerbosity(nvinfer1::ProfilingVerbosity::kDETAILED);
  const std::unique_ptr<nvinfer1::IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
  if (bytes == nullptr) return engine_error("TensorRT could not build it: " + said.errors());
  built.engine.assign(static_cast<const char*>(bytes->data()), bytes->size());
  built.facts.emplace_back("build_s", seconds_since(begin));
  built.facts.emplace_back("engine_mbyte", fmt::format("{:.1f}", static_cast<double>(bytes->size()) / 1e6));
  if (const auto warnings = said.warnings(); !warnings.empty())
    built.facts.emplace_back("build_warnings", fmt::format("{}, the first: {}", warnings.size(), warnings.front()));
  return built;
}

Result<Plan> plan_of(const Tensorrt& tensorrt, const CachedEngine& engine, ErrorKind kind) {
  STROBE_ASSIGN(Plan plan, deserialize_plan(tensorrt, engine.engine, kind));
  plan.inputs = engine.inputs;
  plan.outputs = engine.outputs;
  plan.facts.insert(plan.facts.begin(), engine.facts.begin(), engine.facts.end());
  return plan;
}

// All that decides about an engine. kRecipe grows with whatever build_engine() asks of TensorRT.
constexpr int kRecipe = 1;
Result<std::string> description_of(const Tensorrt& tensorrt, const Device& device, const OnnxSource& source,
                                   const LoadOptions& options) {
  struct utsname system {};
  ::uname(&system);
  std::string text = fmt::format(
      "recipe {}, headers {}\nTensorRT {} build {} on {} {}\nGPU {}\nprecision {}, types of {}\nbatch {}, item {}\n"
      "network {} bytes, sha256 {}\n",
      kRecipe, header_version(), tensorrt.version, tensorrt.build, system.sysname, system.machine, device.kind(),
      to_string(options.precision), source.carries_numbers ? "the network" : "the file", options.batch,
      options.input_shape.empty() ? "as written" : fmt::format("{}", fmt::join(options.input_shape, "x")),
      source.bytes.size(), sha256(source.bytes));
  if (source.path.empty()) return text;
  for (const std::string& name : external_weights(source.bytes)) {
    STROBE_ASSIGN(const std::string weights, read_file(std::filesystem::path(source.path).parent_path() / name));
    text += fmt::format("weights {}: {} bytes, sha256 {}\n", name, weights.size(), sha256(weights));
  }
  return text;
}

// What the cache had to say to this load.
class CacheNotes {
 public:
  void add(const Error& error) {
    const std::string line = one_line(error.to_string(), 1000);
    text_ += (text_.empty() ? "" : "; ") + line;
    // Once a process: a cache that cannot be used cannot be for each network.
    static std::mutex mutex;
    static std::set<std::string> said;
    const std::lock_guard lock(mutex);
    if (said.insert(line).second) std::fprintf(stderr, "strobe: note: TensorRT's engine cache: %s\n", line.c_str());
  }
  void tell(Plan& plan, const char* state, const std::string& file) const {
    plan.facts.emplace_back("engine_cache", state);
    if (!file.empty()) plan.facts.emplace_back("engine_cache_file", file);
    if (!text_.empty()) plan.facts.emplace_back("engine_cache_note", text_);
  }

 private:
  std::string text_;
};

// nullopt: it has to be built.
std::optional<Plan> look_up(const Tensorrt& tensorrt, const EngineCache& cache, const std::string& description,
                            CacheNotes& notes) {
  const auto begin = std::chrono::steady_clock::now();
  auto found = cache.find(description);
  if (!found) {
    notes.add(found.error());
    return std::nullopt;
  }
  if (!*found) return std::nullopt;
  auto plan = plan_of(tensorrt, **found, ErrorKind::kBadData);
  if (!plan) {
    notes.add(std::move(plan).error().at(cache.path_of(description).string()));
    return std::nullopt;
  }
  for (auto& [key, value] : plan->facts)
    if (key == "build_s") key = "built_before_in_s";
  plan->facts.emplace_back("read_s", seconds_since(begin));
  return std::move(*plan);
}

}  // namespace

Result<Plan> build(const Tensorrt& tensorrt, const Device& device, const OnnxSource& source,
                   const LoadOptions& options) {
  CacheNotes notes;
  auto cache = EngineCache::open();
  if (!cache) notes.add(cache.error());
  auto description = description_of(tensorrt, device, source, options);
  if (!cache || *cache == nullptr || !description) {  // weights that cannot be read: the parser says what of it
    STROBE_ASSIGN(const CachedEngine built, build_engine(tensorrt, source, options));
    STROBE_ASSIGN(Plan plan, plan_of(tensorrt, built, ErrorKind::kEngine));
    notes.tell(plan, "off", "");
    return plan;
  }
  const std::string file = (*cache)->path_of(*description).string();
  auto plan = look_up(tensorrt, **cache, *description, notes);
  std::optional<EngineCache::Turn> turn;
  if (!plan) {
    turn.emplace(**cache);
    CacheNotes again;  // the same once more
    plan = look_up(tensorrt, **cache, *description, again);
  }
  if (plan) {
    notes.tell(*plan, "hit", file);
    return std::move(*plan);
  }
  STROBE_ASSIGN(const CachedEngine built, build_engine(tensorrt, source, options));
  STROBE_ASSIGN(Plan fresh, plan_of(tensorrt, built, ErrorKind::kEngine));
  const auto kept = (*cache)->keep(*description, built);
  if (!kept) notes.add(kept.error());
  notes.tell(fresh, "miss", kept ? file : "");
  return fresh;
}

Result<Plan> deserialize(const Tensorrt& tensorrt, std::string_view bytes) {
  if (bytes.empty()) return bad_data("the file is empty, expected a TensorRT engine");
  auto plan = deserialize_plan(tensorrt, bytes, ErrorKind::kBadData);
  if (!plan)
    return bad_data(
        fmt::format("TensorRT {} cannot run this engine, which must have been built by the same version for "
                    "this kind of GPU: {}",
                    tensorrt.version, plan.error().message()));
  return plan;
}

}  // namespace strobe::engines::tensorrt_plugin
