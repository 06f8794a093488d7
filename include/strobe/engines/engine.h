// The engine interface: what a plugin implements so that pipelines can run networks on it. A plugin is a shared object
// libstrobe_engine_NAME.so; no type of its framework crosses this header. All tensors here are float32, row-major NCHW
// in host memory, wherever the network runs, but for a DeviceInput.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/engines/preprocessor.h"
#include "strobe/engines/trainer.h"
#include "strobe/models/graph.h"

namespace strobe::engines {

// Raised with every change of this header; a plugin built against another value is refused by the loader.
inline constexpr int kEngineAbi = 8;

enum class Precision : uint8_t { kF32, kBf16, kF16, kInt8 };
enum class Hint : uint8_t { kLatency, kThroughput };
std::string_view to_string(Precision precision);  // "f32", "bf16", "f16", "i8"
std::string_view to_string(Hint hint);

struct TensorInfo {
  std::string name;
  std::vector<int64_t> shape;  // with the batch first
  int64_t elements() const {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    return count;
  }
};

struct LoadOptions {
  std::string variant;  // how the engine runs it, where it has a choice: one of Engine::variants()
  int64_t batch = 1;
  int sessions = 1;             // how many sessions will run at the same time, each in its own thread
  int threads_per_session = 0;  // 0: the allowed cores divided by the sessions, at least 1
  Precision precision = Precision::kF32;
  Hint hint = Hint::kLatency;
  bool profile_layers = false;  // Session::kernel_times will be asked for; may make runs slower
  std::string device = "cpu";   // where it runs: "cpu", or "cuda:N"
  int priority = 0;             // on a GPU, of a session's stream: higher goes first, as far as the device tells apart
  // Extents of one item (channels, height, width) for a file that leaves them open, as every .pt does; empty: the
  // file's own. A Graph has its own input shape and takes none.
  std::vector<int64_t> input_shape;
};

// What was given to load: a graph, or a file in a format that the engine reads itself (.onnx, .xml, .pt).
using ModelSource = std::variant<std::shared_ptr<const models::Graph>, std::filesystem::path>;

// One kernel as the engine executes it, and which source layers ended up in it. An engine that cannot say leaves
// `layers` empty. Layer names are the Graph's (or the file's) own.
struct Kernel {
  std::string name;
  std::string type;            // "Convolution", "Reorder", ...
  std::string implementation;  // e.g. "brgconv_avx512_f32"; empty where the engine does not tell
  std::vector<std::string> layers;
};
struct KernelTime {
  size_t kernel = 0;        // index into Network::kernels()
  int64_t duration_ns = 0;  // wall time
};

// Is told of the kernels of a session that runs them one at a time, on the session's thread. What takes long here holds
// the session up at that border between two layers.
class LayerListener {
 public:
  virtual ~LayerListener() = default;
  // kernel: index into Network::kernels(). finish() returns when all that the session has given to its device so far is
  // done; who lets others onto the device calls it first. On a CPU it does nothing.
  virtual void before(size_t kernel, const std::function<void()>& finish) = 0;
  // The call has returned. On a GPU its work may still be under way.
  virtual void after(size_t kernel, const std::function<void()>& finish) = 0;
};

// One stream of inferences: used by one thread at a time, which must be the thread that created it or has taken it over
// for good (frameworks bind thread pools to threads).
class Session {
 public:
  virtual ~Session() = default;
  // Runs one batch. inputs[i] has inputs()[i].elements() floats, outputs[i] likewise; buffers stay the caller's and
  // must live until the return. Errors: kEngine.
  virtual Result<void> run(std::span<const float* const> inputs, std::span<float* const> outputs) = 0;
  // The same with an input that a preprocessor of this network (or of another one of the same engine, device and input
  // shape) has filled, by whatever thread: it is read on the device. The input's pictures stay until the return.
  virtual Result<void> run_prepared(const DeviceInput& input, std::span<float* const> outputs) {
    (void)input, (void)outputs;
    return unsupported("this network takes its input from host memory only");
  }
  // Times of the last run by kernel, in execution order. Empty unless loaded with profile_layers.
  virtual Result<std::vector<KernelTime>> kernel_times() { return std::vector<KernelTime>{}; }
  // Calls the listener around each kernel from the next run on; null: no more. The listener outlives the session or is
  // taken away before. False: this engine runs a network in one piece; the listener is called at most while that piece
  // is put together (the capture of a CUDA graph, whose kernels are then told apart by the ranges of the capture).
  virtual bool listen(LayerListener* listener) {
    (void)listener;
    return false;
  }
};

// A loaded network. Thread-safe.
class Network {
 public:
  virtual ~Network() = default;
  virtual const std::vector<TensorInfo>& inputs() const = 0;
  virtual const std::vector<TensorInfo>& outputs() const = 0;
  virtual Result<std::unique_ptr<Session>> create_session() = 0;
  // For a network on pictures, which it samples where the network runs. Errors: kUnsupported (an engine that cannot, an
  // input that is not one picture), kEngine.
  virtual Result<std::unique_ptr<Preprocessor>> create_preprocessor(const PrepOptions& options) {
    (void)options;
    return unsupported("this engine does not preprocess pictures on a device; torch does");
  }
  // The executed kernels; known after load, or for engines that decide at the first run after it.
  virtual Result<std::vector<Kernel>> kernels() = 0;
  // Facts for the trace: threads used, precision chosen, streams, ... as key, value.
  virtual std::vector<std::pair<std::string, std::string>> facts() const { return {}; }
};

// What the engine's allocator has of a device for this process, bytes. Neither the device's context nor the code of its
// kernels is in it.
struct DeviceMemory {
  int64_t allocated = 0, reserved = 0;            // by tensors; with what is kept for later ones
  int64_t peak_allocated = 0, peak_reserved = 0;  // since the process began, or the last reset
};

class Engine {
 public:
  virtual ~Engine() = default;
  virtual std::string name() const = 0;
  virtual std::string version() const = 0;                // of the framework
  virtual std::vector<std::string> variants() const = 0;  // the first one is the default
  virtual std::vector<Precision> precisions() const = 0;  // those that this CPU runs
  // Those that it runs on the GPU "cuda:N". Errors: kUnsupported (an engine for CPUs, no driver, no such GPU: says
  // which).
  virtual Result<std::vector<Precision>> precisions_on(const std::string& device) const {
    return unsupported("device " + device + ": engine " + name() + " runs on the CPU only; torch runs on GPUs");
  }
  // Of a GPU, for whoever measures what runs there. Errors: kUnsupported (an engine for CPUs, a framework that does not
  // tell).
  virtual Result<DeviceMemory> device_memory(const std::string& device) const {
    return unsupported("device " + device + ": engine " + name() + " does not tell its memory");
  }
  virtual Result<void> reset_device_peak(const std::string& device) {
    return unsupported("device " + device + ": engine " + name() + " does not tell its memory");
  }
  // From now on the allocator takes no more than this share (0 to 1) of each device; what would need more fails with
  // "out of memory". To be called before anything is loaded. Errors: kUnsupported.
  virtual Result<void> limit_device_memory(double share) {
    (void)share;
    return unsupported("engine " + name() + " does not limit the memory of devices");
  }
  virtual std::vector<std::string> file_formats() const = 0;  // extensions with the dot: ".onnx"
  // Errors: kUnsupported (a layer, precision or format that the engine lacks: says which and what it has), kBadData (a
  // file that is not what it says), kNotFound, kEngine.
  virtual Result<std::unique_ptr<Network>> load(const ModelSource& source, const LoadOptions& options) = 0;
  // Errors: kUnsupported (an engine that only infers, a network without a loss, a device that is not there or whose
  // memory is full), kUsage, kEngine.
  virtual Result<std::unique_ptr<Trainer>> train(std::shared_ptr<const models::Graph> /*graph*/,
                                                 const TrainOptions& /*options*/) {
    return unsupported("engine " + name() + " does not train networks; torch does");
  }
};

}  // namespace strobe::engines

// Every plugin exports these two, by STROBE_DEFINE_ENGINE(EngineClass).
extern "C" {
using strobe_engine_abi_fn = int (*)();
using strobe_engine_create_fn = strobe::engines::Engine* (*)();
}
#define STROBE_DEFINE_ENGINE(EngineClass)                                                             \
  extern "C" __attribute__((visibility("default"))) int strobe_engine_abi() {                         \
    return strobe::engines::kEngineAbi;                                                               \
  }                                                                                                   \
  extern "C" __attribute__((visibility("default"))) strobe::engines::Engine* strobe_engine_create() { \
    return new EngineClass();                                                                         \
  }
