// A stand-in for libnvinfer and libnvonnxparser, on the stand-in for the driver: it reads of an ONNX file the ends and
// the names of its nodes, fuses a convolution with the elementwise nodes behind it, writes that down as its "engine"
// and computes value i of output k as 2 x + k, where x is value i of the input (from the beginning again behind its
// end). Of bytes (uint8) it takes the last input, and value i is byte i.
//
// An engine file is text: "FAKETRT <version> <gpu>", then lines of words separated by tabs:
// "input"|"output" NAME TYPE EXTENT..., "profile" NAME LEAST... MOST..., "layer" NAME TYPE TACTIC METADATA.
//
// The environment changes it: FAKE_TRT_VERSION (of getInferLibVersion), FAKE_TRT_ENGINE_VERSION, FAKE_TRT_GPU,
// FAKE_TRT_REFUSE (an operation that the parser lacks), FAKE_TRT_NO_BUILD, FAKE_TRT_NO_CONTEXT, FAKE_TRT_NO_RUN,
// FAKE_TRT_BUILDS (a file that gets a letter of each build), FAKE_TRT_BUILD_MS, FAKE_TRT_PADDING (more bytes an
// engine).
#include <NvInfer.h>
#include <NvOnnxParser.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engines/tensorrt/fake_cuda.h"
#include "stub_interfaces.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

void unexpected_call(const char* function) {
  std::fprintf(stderr, "fake TensorRT: %s was called\n", function);
  std::abort();
}

namespace {

using namespace nvinfer1;
using strobe::test::fake_cuda::setting;

std::atomic<int> objects{0};
struct Counted {
  Counted() { ++objects; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  ~Counted() { --objects; }
};

std::string word(const char* variable, const char* otherwise) {
  const char* text = std::getenv(variable);
  return text == nullptr ? otherwise : text;
}
int32_t library_version() {
  return static_cast<int32_t>(
      setting("FAKE_TRT_VERSION", NV_TENSORRT_MAJOR * 10000 + NV_TENSORRT_MINOR * 100 + NV_TENSORRT_PATCH));
}

struct End {
  std::string name;
  bool input = false;
  int64_t type = 1;  // ONNX's number of it
  std::vector<int64_t> extents, least, most;
};
struct Node {
  std::string name, type;
  std::vector<std::string> inputs, outputs;
};
struct Model {
  std::vector<End> ends;
  std::vector<Node> nodes;
  int64_t weight_type = 1;
};
struct Layer {
  std::string name, type, tactic, metadata;
};

Dims dims_of(const std::vector<int64_t>& extents) {
  Dims dims{};
  dims.nbDims = static_cast<int32_t>(extents.size());
  for (size_t i = 0; i < extents.size(); ++i) dims.d[i] = extents[i];
  return dims;
}
std::vector<int64_t> extents_of(const Dims& dims) {
  return {dims.d, dims.d + dims.nbDims};
}
int64_t count(const std::vector<int64_t>& extents) {
  int64_t product = 1;
  for (const int64_t extent : extents) product *= extent;
  return product;
}
constexpr int64_t kBytes = 2;
DataType type_of(int64_t onnx) {
  return onnx == 1        ? DataType::kFLOAT
         : onnx == kBytes ? DataType::kUINT8
         : onnx == 10     ? DataType::kHALF
         : onnx == 7      ? DataType::kINT64
                          : DataType::kBF16;
}

// Fields of a protocol buffer; false where it is none.
class Fields {
 public:
  explicit Fields(std::string_view bytes) : bytes_(bytes) {}
  bool next() {
    if (at_ >= bytes_.size()) return false;
    const uint64_t key = varint();
    field = static_cast<int>(key >> 3);
    number = 0, text = {};
    switch (key & 7) {
      case 0:
        number = static_cast<int64_t>(varint());
        break;
      case 1:
        at_ += 8;
        break;
      case 2: {
        const uint64_t size = varint();
        if (size > bytes_.size() - std::min(at_, bytes_.size())) return broken = true, false;
        text = bytes_.substr(at_, size);
        at_ += size;
        break;
      }
      case 5:
        at_ += 4;
        break;
      default:
        return broken = true, false;
    }
    if (at_ > bytes_.size()) broken = true;
    return !broken;
  }
  int field = 0;
  int64_t number = 0;
  std::string_view text;
  bool broken = false;

 private:
  uint64_t varint() {
    uint64_t value = 0;
    for (int shift = 0; at_ < bytes_.size() && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(bytes_[at_++]);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return value;
    }
    broken = true;
    return 0;
  }
  std::string_view bytes_;
  size_t at_ = 0;
};

End end_of(std::string_view bytes, bool input) {
  End end;
  end.input = input;
  for (Fields info(bytes); info.next();) {
    if (info.field == 1) end.name = info.text;
    if (info.field != 2) continue;
    for (Fields type(info.text); type.next();)
      for (Fields tensor(type.text); tensor.next();) {
        if (tensor.field == 1) end.type = tensor.number;
        if (tensor.field != 2) continue;
        for (Fields shape(tensor.text); shape.next();) {
          int64_t extent = -1;
          for (Fields dim(shape.text); dim.next();)
            if (dim.field == 1) extent = dim.number;
          end.extents.push_back(extent);
        }
      }
  }
  return end;
}

bool read_model(std::string_view bytes, Model& model) {
  Fields file(bytes);
  bool graph = false;
  while (file.next()) {
    if (file.field != 7) continue;
    graph = true;
    Fields parts(file.text);
    while (parts.next()) {
      if (parts.field == 1) {
        Node node;
        for (Fields f(parts.text); f.next();) {
          if (f.field == 1) node.inputs.emplace_back(f.text);
          if (f.field == 2) node.outputs.emplace_back(f.text);
          if (f.field == 3) node.name = f.text;
          if (f.field == 4) node.type = f.text;
        }
        model.nodes.push_back(std::move(node));
      } else if (parts.field == 5) {
        for (Fields f(parts.text); f.next();)
          if (f.field == 2 && f.number != 7) model.weight_type = f.number;
      } else if (parts.field == 11 || parts.field == 12) {
        model.ends.push_back(end_of(parts.text, parts.field == 11));
      }
    }
    if (parts.broken) return false;
  }
  return graph && !file.broken;
}

class Tensor : public ITensor, Counted {
 public:
  explicit Tensor(End& end) : impl_(end) { mImpl = &impl_; }

 private:
  struct Impl : StubVTensor {
    explicit Impl(End& e) : end(e) {}
    const char* getName() const noexcept override { return end.name.c_str(); }
    DataType getType() const noexcept override { return type_of(end.type); }
    Dims getDimensions() const noexcept override { return dims_of(end.extents); }
    void setDimensions(const Dims& dims) noexcept override { end.extents = extents_of(dims); }
    End& end;
  };
  Impl impl_;
};

class Network : public INetworkDefinition, Counted {
 public:
  explicit Network(NetworkDefinitionCreationFlags flags) : impl_(*this), created_with(flags) { mImpl = &impl_; }
  Model model;
  std::vector<std::unique_ptr<Tensor>> inputs, outputs;

 private:
  struct Impl : StubVNetworkDefinition {
    explicit Impl(Network& n) : network(n) {}
    int32_t getNbInputs() const noexcept override { return static_cast<int32_t>(network.inputs.size()); }
    ITensor* getInput(int32_t index) const noexcept override {
      return network.inputs[static_cast<size_t>(index)].get();
    }
    int32_t getNbOutputs() const noexcept override { return static_cast<int32_t>(network.outputs.size()); }
    ITensor* getOutput(int32_t index) const noexcept override {
      return network.outputs[static_cast<size_t>(index)].get();
    }
    Network& network;
  };
  Impl impl_;

 public:
  NetworkDefinitionCreationFlags created_with;
};

class Config : public IBuilderConfig, Counted {
 public:
  Config() { mImpl = &impl_; }
  bool tf32() const { return impl_.tf32; }
  ProfilingVerbosity verbosity() const { return impl_.verbosity; }
  const std::string& numbers() const { return impl_.numbers; }

 private:
  struct Impl : StubVBuilderConfig {
    void clearFlag(BuilderFlag flag) noexcept override {
      if (flag == BuilderFlag::kTF32) tf32 = false;
    }
    void setFlag(BuilderFlag flag) noexcept override { numbers += "+flag" + std::to_string(static_cast<int>(flag)); }
    void setProfilingVerbosity(ProfilingVerbosity wanted) noexcept override { verbosity = wanted; }
    bool tf32 = true;
    std::string numbers;
    ProfilingVerbosity verbosity = ProfilingVerbosity::kLAYER_NAMES_ONLY;
  };
  Impl impl_;
};

class Bytes : public IHostMemory, Counted {
 public:
  explicit Bytes(std::string bytes) : impl_(std::move(bytes)) { mImpl = &impl_; }

 private:
  struct Impl : StubVHostMemory {
    explicit Impl(std::string b) : bytes(std::move(b)) {}
    void* data() const noexcept override { return const_cast<char*>(bytes.data()); }
    size_t size() const noexcept override { return bytes.size(); }
    std::string bytes;
  };
  Impl impl_;
};

// A convolution takes what follows it element by element, as TensorRT does; shapes and casts of the ends vanish.
std::vector<Layer> fuse(const Model& model, const std::string& numbers) {
  std::vector<Layer> layers;
  std::map<std::string, size_t> made_by;  // values that one layer can still take
  for (const Node& node : model.nodes) {
    if (node.type == "Reshape" || node.type == "Cast" || node.type == "Identity") continue;
    const bool elementwise = node.type == "BatchNormalization" || node.type == "Relu" || node.type == "LeakyRelu";
    const auto before = node.inputs.empty() ? made_by.end() : made_by.find(node.inputs[0]);
    const std::string metadata = "[ONNX Layer: " + node.name + "]";
    if (elementwise && before != made_by.end()) {
      Layer& layer = layers[before->second];
      layer.name += " + " + node.name;
      layer.metadata += "\\u001e" + metadata;
      made_by[node.outputs[0]] = before->second;
      continue;
    }
    const bool weighted = node.type == "Conv";
    layers.push_back({weighted ? node.name : "PWN(" + node.name + ")", weighted ? "CaskConvolution" : node.type,
                      "stand_in_" + numbers, metadata});
    if (weighted) made_by[node.outputs[0]] = layers.size() - 1;
  }
  return layers;
}

std::string write_plan(const Network& network, const Config& config) {
  std::ostringstream plan;
  plan << "FAKETRT " << setting("FAKE_TRT_ENGINE_VERSION", library_version()) << " " << word("FAKE_TRT_GPU", "GH100")
       << "\n";
  std::vector<int64_t> input;
  for (const auto& end : network.model.ends)
    if (end.input) input = end.extents;
  for (const auto& end : network.model.ends) {
    plan << (end.input ? "input\t" : "output\t") << end.name << "\t" << end.type;
    for (size_t i = 0; i < end.extents.size(); ++i) plan << "\t" << (end.extents[i] < 0 ? input[i] : end.extents[i]);
    plan << "\n";
  }
  const int64_t type = network.model.weight_type;
  std::string numbers = type == 1 ? "f32" : type == 10 ? "f16" : "bf16";
  numbers += config.numbers() + (config.tf32() ? "+tf32" : "") + "+typed" + std::to_string(network.created_with);
  for (const Layer& layer : fuse(network.model, numbers)) {
    plan << "layer\t" << layer.name;
    if (config.verbosity() == ProfilingVerbosity::kDETAILED)
      plan << "\t" << layer.type << "\t" << layer.tactic << "\t" << layer.metadata;
    plan << "\n";
  }
  if (const int64_t more = setting("FAKE_TRT_PADDING", 0); more > 0)
    plan << "padding\t" << std::string(static_cast<size_t>(more), 'x') << "\n";
  return plan.str();
}

std::vector<std::string> split(const std::string& line) {
  std::vector<std::string> words;
  std::istringstream text(line);
  for (std::string one; std::getline(text, one, '\t');) words.push_back(one);
  return words;
}

struct Plan {
  std::vector<End> ends;
  std::vector<Layer> layers;
  const End* find(const char* name) const {
    for (const End& end : ends)
      if (end.name == name) return &end;
    unexpected_call(name);
  }
  End* find(const char* name) { return const_cast<End*>(std::as_const(*this).find(name)); }
};

bool read_plan(const std::string& bytes, Plan& plan, ILogger& logger) {
  std::istringstream text(bytes);
  std::string line, magic, gpu;
  int32_t version = 0;
  std::getline(text, line);
  std::istringstream(line) >> magic >> version >> gpu;
  const auto fails = [&logger](const std::string& why) {
    logger.log(ILogger::Severity::kERROR,
               ("IRuntime::deserializeCudaEngine: Error Code 1: Serialization (" + why + ")").c_str());
    return false;
  };
  if (magic != "FAKETRT")
    return fails("Serialization assertion magicTagRead == kMAGIC_TAG failed.\nMagic tag does not match");
  if (version != library_version())
    return fails("Version tag does not match. Note: Current Version: " + std::to_string(library_version()) +
                 ", Serialized Engine Version: " + std::to_string(version));
  if (gpu != word("FAKE_TRT_GPU", "GH100")) return fails("Target GPU SM mismatch: " + gpu);
  while (std::getline(text, line)) {
    auto words = split(line);
    if (words[0] == "padding") continue;
    if (words[0] == "layer") {
      words.resize(5);
      plan.layers.push_back({words[1], words[2], words[3], words[4]});
    } else if (words[0] == "profile") {
      End& end = *plan.find(words[1].c_str());
      const size_t extents = (words.size() - 2) / 2;
      for (size_t i = 0; i < extents; ++i) {
        end.least.push_back(std::stoll(words[2 + i]));
        end.most.push_back(std::stoll(words[2 + extents + i]));
      }
    } else {
      End end{words[1], words[0] == "input", std::stoll(words[2]), {}, {}, {}};
      for (size_t i = 3; i < words.size(); ++i) end.extents.push_back(std::stoll(words[i]));
      plan.ends.push_back(std::move(end));
    }
  }
  return true;
}

class Context : public IExecutionContext, Counted {
 public:
  Context(Plan plan, ILogger& logger) : impl_(std::move(plan), logger) { mImpl = &impl_; }

 private:
  struct Impl : StubVExecutionContext {
    Impl(Plan p, ILogger& l) : plan(std::move(p)), logger(l) {}
    void setProfiler(IProfiler* one) noexcept override { profiler = one; }
    bool setInputShape(const char* name, const Dims& dims) noexcept override {
      plan.find(name)->extents = extents_of(dims);
      for (End& end : plan.ends)
        if (!end.input && end.extents[0] < 0) end.extents[0] = dims.d[0];
      return true;
    }
    Dims getTensorShape(const char* name) const noexcept override { return dims_of(plan.find(name)->extents); }
    bool setTensorAddress(const char* name, void* data) noexcept override {
      if (!strobe::test::fake_cuda::owns(data) || reinterpret_cast<uintptr_t>(data) % 256 != 0) return false;
      memory[name] = static_cast<float*>(data);
      return true;
    }
    bool enqueueV3(cudaStream_t stream) noexcept override {
      if (setting("FAKE_TRT_NO_RUN", 0) != 0 || !strobe::test::fake_cuda::is_current()) {
        logger.log(ILogger::Severity::kERROR,
                   "IExecutionContext::enqueueV3: Error Code 1: Cask (Cask\nconvolution execution)");
        return false;
      }
      const auto work = [this, where = memory] {  // addresses may be others by then
        const End* input = nullptr;
        for (const End& end : plan.ends)
          if (end.input) input = &end;
        const float* in = where.at(input->name);
        const int64_t inputs = count(input->extents);
        int k = 0;
        for (const End& end : plan.ends) {
          if (end.input) continue;
          float* out = where.at(end.name);
          const auto* bytes = reinterpret_cast<const unsigned char*>(in);
          for (int64_t i = 0; i < count(end.extents); ++i)
            out[i] = input->type == kBytes ? static_cast<float>(bytes[i % inputs])
                                           : 2 * in[i % inputs] + static_cast<float>(k);
          ++k;
        }
      };
      strobe::test::fake_cuda::later(stream, work);
      if (profiler == nullptr) return true;
      strobe::test::fake_cuda::settle(stream);  // a profiler makes the call wait
      for (size_t i = 0; i < plan.layers.size(); ++i)
        profiler->reportLayerTime(plan.layers[i].name.c_str(), 0.25F * static_cast<float>(i + 1));
      profiler->reportLayerTime("Reformatting CopyNode for Output Tensor 0", 0.125F);
      return true;
    }
    Plan plan;
    ILogger& logger;
    IProfiler* profiler = nullptr;
    std::map<std::string, float*> memory;
  };
  Impl impl_;
};

class Inspector : public IEngineInspector, Counted {
 public:
  explicit Inspector(const Plan& plan) : impl_(plan) { mImpl = &impl_; }

 private:
  struct Impl : StubVEngineInspector {
    explicit Impl(const Plan& plan) {
      text = "{\"Layers\": [";
      for (size_t i = 0; i < plan.layers.size(); ++i) {
        const Layer& layer = plan.layers[i];
        text += i == 0 ? "" : ",\n";
        text += layer.type.empty()
                    ? "\"" + layer.name + "\""
                    : "{\n  \"Name\": \"" + layer.name + "\",\n  \"LayerType\": \"" + layer.type +
                          "\",\n  \"Inputs\": [],\n  \"Outputs\": [],\n  \"TacticName\": \"" + layer.tactic +
                          "\",\n  \"StreamId\": 0,\n  \"Metadata\": \"" + layer.metadata + "\"\n}";
      }
      text += "],\n\"Bindings\": []\n}";
    }
    const char* getEngineInformation(LayerInformationFormat format) const noexcept override {
      return format == LayerInformationFormat::kJSON ? text.c_str() : nullptr;
    }
    std::string text;
  };
  Impl impl_;
};

class CudaEngine : public ICudaEngine, Counted {
 public:
  CudaEngine(Plan plan, ILogger& logger) : impl_(std::move(plan), logger) { mImpl = &impl_; }

 private:
  struct Impl : StubVCudaEngine {
    Impl(Plan p, ILogger& l) : plan(std::move(p)), logger(l) {}
    IExecutionContext* createExecutionContext(ExecutionContextAllocationStrategy) noexcept override {
      if (setting("FAKE_TRT_NO_CONTEXT", 0) == 0) return new Context(plan, logger);
      logger.log(ILogger::Severity::kERROR,
                 "ICudaEngine::createExecutionContext: Error Code 2: OutOfMemory (no further information)");
      return nullptr;
    }
    IEngineInspector* createEngineInspector() const noexcept override { return new Inspector(plan); }
    Dims getTensorShape(const char* name) const noexcept override { return dims_of(plan.find(name)->extents); }
    DataType getTensorDataType(const char* name) const noexcept override { return type_of(plan.find(name)->type); }
    TensorLocation getTensorLocation(const char*) const noexcept override { return TensorLocation::kDEVICE; }
    TensorIOMode getTensorIOMode(const char* name) const noexcept override {
      return plan.find(name)->input ? TensorIOMode::kINPUT : TensorIOMode::kOUTPUT;
    }
    TensorFormat getTensorFormat(const char*) const noexcept override { return TensorFormat::kLINEAR; }
    Dims getProfileShape(const char* name, int32_t, OptProfileSelector which) const noexcept override {
      const End& end = *plan.find(name);
      return dims_of(end.least.empty() ? end.extents : which == OptProfileSelector::kMIN ? end.least : end.most);
    }
    int32_t getNbIOTensors() const noexcept override { return static_cast<int32_t>(plan.ends.size()); }
    const char* getIOTensorName(int32_t index) const noexcept override {  // in an order of its own
      return plan.ends[plan.ends.size() - 1 - static_cast<size_t>(index)].name.c_str();
    }
    Plan plan;
    ILogger& logger;
  };
  Impl impl_;
};

class Runtime : public IRuntime, Counted {
 public:
  explicit Runtime(ILogger& logger) : impl_(logger) { mImpl = &impl_; }

 private:
  struct Impl : StubVRuntime {
    explicit Impl(ILogger& l) : logger(l) {}
    ICudaEngine* deserializeCudaEngine(const void* blob, size_t size) noexcept override {
      Plan plan;
      if (!read_plan({static_cast<const char*>(blob), size}, plan, logger)) return nullptr;
      return new CudaEngine(std::move(plan), logger);
    }
    ILogger& logger;
  };
  Impl impl_;
};

class Builder : public IBuilder, Counted {
 public:
  explicit Builder(ILogger& logger) : impl_(logger) { mImpl = &impl_; }

 private:
  struct Impl : StubVBuilder {
    explicit Impl(ILogger& l) : logger(l) {}
    IBuilderConfig* createBuilderConfig() noexcept override { return new Config; }
    INetworkDefinition* createNetworkV2(NetworkDefinitionCreationFlags flags) noexcept override {
      return new Network(flags);
    }
    IHostMemory* buildSerializedNetwork(INetworkDefinition& network, IBuilderConfig& config) noexcept override {
      if (!strobe::test::fake_cuda::is_current() || setting("FAKE_TRT_NO_BUILD", 0) != 0) {
        logger.log(ILogger::Severity::kERROR,
                   "IBuilder::buildSerializedNetwork: Error Code 10: Internal Error (Could not find any implementation "
                   "for node\n1_Convolution.)");
        return nullptr;
      }
      if (const std::string builds = word("FAKE_TRT_BUILDS", ""); !builds.empty())
        std::ofstream(builds, std::ios::app) << "b" << std::flush;
      std::this_thread::sleep_for(std::chrono::milliseconds(setting("FAKE_TRT_BUILD_MS", 0)));
      logger.log(ILogger::Severity::kWARNING, "a weight is small");
      logger.log(ILogger::Severity::kINFO, "Detected 1 inputs");
      return new Bytes(write_plan(static_cast<Network&>(network), static_cast<Config&>(config)));
    }
    ILogger& logger;
  };
  Impl impl_;
};

struct ParserError : nvonnxparser::StubIParserError {
  nvonnxparser::ErrorCode code() const override { return kind; }
  const char* desc() const override { return text.c_str(); }
  const char* nodeName() const override { return node.c_str(); }
  const char* nodeOperator() const override { return operation.c_str(); }
  nvonnxparser::ErrorCode kind{};
  std::string text, node, operation;
};

class Parser : public nvonnxparser::StubIParser, Counted {
 public:
  explicit Parser(Network& network) : network_(network) {}
  bool parse(const void* bytes, size_t size, const char*) noexcept override {
    if (!read_model({static_cast<const char*>(bytes), size}, network_.model)) {
      error_.kind = nvonnxparser::ErrorCode::kMODEL_DESERIALIZE_FAILED;
      error_.text = "Failed to parse the ONNX model.";
      failed_ = true;
    }
    for (const Node& node : network_.model.nodes) {
      if (failed_ || node.type != word("FAKE_TRT_REFUSE", "")) continue;
      error_.kind = nvonnxparser::ErrorCode::kUNSUPPORTED_NODE;
      error_.text =
          "In node 3 with name: and operator: (checkFallbackPluginImporter): UNSUPPORTED_NODE:\n Plugin not found";
      error_.node = node.name, error_.operation = node.type;
      failed_ = true;
    }
    for (End& end : network_.model.ends)
      (end.input ? network_.inputs : network_.outputs).push_back(std::make_unique<Tensor>(end));
    return !failed_;
  }
  int getNbErrors() const noexcept override { return failed_ ? 1 : 0; }
  const nvonnxparser::IParserError* getError(int) const noexcept override { return &error_; }

 private:
  Network& network_;
  ParserError error_;
  bool failed_ = false;
};

}  // namespace

EXPORTED int32_t getInferLibVersion() noexcept {
  return library_version();
}
EXPORTED void* createInferBuilder_INTERNAL(void* logger, int32_t) noexcept {
  return static_cast<IBuilder*>(new Builder(*static_cast<ILogger*>(logger)));
}
EXPORTED void* createInferRuntime_INTERNAL(void* logger, int32_t) noexcept {
  return static_cast<IRuntime*>(new Runtime(*static_cast<ILogger*>(logger)));
}
EXPORTED void* createNvOnnxParser_INTERNAL(void* network, void*, int) noexcept {
  return static_cast<nvonnxparser::IParser*>(
      new Parser(*static_cast<Network*>(static_cast<INetworkDefinition*>(network))));
}
EXPORTED int fake_tensorrt_objects() {
  return objects;
}
