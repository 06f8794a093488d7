// An engine that computes nothing and uses the stand-in's device as frameworks use the real one: it opens the driver
// and initialises it when a network is loaded; each inference copies in, runs two kernels, copies out and waits. The
// second kernel runs on a stream of its own while the next copy is under way. FAKE_ENGINE_US: how long an inference
// takes at least (300).
//
// On "cuda:0" it stands for a device of known speed, which the stand-in for NVML is told of: 1 TFLOP/s, 100 GB/s of
// memory, 10 GB/s of copies, 20 us a launch. There it holds a context of 400 MiB and 100 MiB an item of the batch, of
// which tensors take 80, writes that into the file FAKE_NVML_HELD with half of the device's time as its own, and fails
// beyond the limit that it was given, or, with FAKE_ENGINE_HAS_NO_LIMIT, takes none.
#include <dlfcn.h>

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <thread>
#include <utility>

#include "gpu/fake_gpu.h"
#include "models/cost.h"
#include "strobe/engines/engine.h"

namespace {

using namespace strobe;
using engines::TensorInfo;

struct Driver {
  decltype(&fake_launch) launch = nullptr;
  decltype(&fake_synchronize) synchronize = nullptr;
};

Result<Driver> open_driver() {
  const char* path = std::getenv("STROBE_CUDA_LIBRARY");
  void* library = path == nullptr ? nullptr : ::dlopen(path, RTLD_NOW);
  if (library == nullptr) return Driver{};  // runs on, without a device
  Driver driver;
  driver.launch = reinterpret_cast<decltype(driver.launch)>(::dlsym(library, "fake_launch"));
  driver.synchronize = reinterpret_cast<decltype(driver.synchronize)>(::dlsym(library, "fake_synchronize"));
  auto* init = reinterpret_cast<int (*)(unsigned)>(::dlsym(library, "cuInit"));
  if (driver.launch == nullptr || driver.synchronize == nullptr || init == nullptr || init(0) != 0)
    return engine_error("the stand-in's driver does not start");
  return driver;
}

// Copy in and first kernel on stream 7, one after the other; second kernel on stream 8 beside the copy out. All of it
// is over before the call returns. The listener hears of two layers: the copy in and the first kernel, and the rest.
void work(const Driver& driver, const char* first, const char* second, engines::LayerListener* listener = nullptr) {
  if (driver.launch == nullptr) return;
  static const char* const wanted = std::getenv("FAKE_ENGINE_US");
  static const std::chrono::microseconds least(wanted == nullptr ? 300 : std::atoll(wanted));
  FakeLaunch in{}, kernel{}, beside{}, out{};
  in.stream = 7, in.delay_ns = 2'000, in.duration_ns = 4'000, in.bytes = 12'288, in.copy_kind = 1;
  kernel.kernel = first, kernel.stream = 7, kernel.delay_ns = 3'000, kernel.duration_ns = 10'000, kernel.nested = 1;
  beside.kernel = second, beside.stream = 8, beside.delay_ns = 25'000, beside.duration_ns = 20'000;
  out.stream = 7, out.delay_ns = 30'000, out.duration_ns = 5'000, out.bytes = 4'096, out.copy_kind = 2;
  const auto finish = [&] { driver.synchronize(7); };
  size_t layer = 0;
  for (const auto& pair : {std::pair{&in, &kernel}, {&beside, &out}}) {
    if (listener != nullptr) listener->before(layer, finish);
    driver.launch(pair.first);
    driver.launch(pair.second);
    if (listener != nullptr) listener->after(layer, finish);
    ++layer;
  }
  std::this_thread::sleep_for(least);
  driver.synchronize(7);
}

constexpr int64_t kMib = 1 << 20;
constexpr int64_t kContext = 400 * kMib, kItem = 100 * kMib, kTensors = 80 * kMib, kTotal = int64_t{80} << 30;
engines::DeviceMemory held_memory;
bool has_known_speed() {
  return std::getenv("FAKE_NVML_HELD") != nullptr;
}
int64_t most_memory = kTotal;

Result<void> take_memory(int64_t batch) {
  const int64_t bytes = batch * kItem;
  if (bytes > most_memory) return engine_error("CUDA out of memory. Tried to allocate " + std::to_string(bytes));
  held_memory = {batch * kTensors, bytes, batch * kTensors, bytes};
  std::ofstream(std::getenv("FAKE_NVML_HELD"), std::ios::app) << ::getpid() << ' ' << kContext + bytes << " 50\n";
  return {};
}

// Of a batch on that device: layers one after the other, none shorter than a launch.
std::chrono::nanoseconds time_on_device(const models::Graph& graph, int64_t batch) {
  constexpr double kFlop = 1e12, kBytes = 1e11, kCopied = 1e10, kLaunch_s = 20e-6;
  double seconds = 0;
  const auto items = static_cast<double>(batch);
  for (models::LayerId id = 1; id < static_cast<models::LayerId>(graph.layers.size()); ++id) {
    const models::Cost cost = models::layer_cost(graph, id);
    seconds += std::max({kLaunch_s, items * static_cast<double>(cost.flop) / kFlop,
                         items * static_cast<double>(cost.bytes - 4 * cost.parameters) / kBytes});
  }
  seconds += 4 * items * static_cast<double>(graph.input_shape().elements()) / kCopied;
  return std::chrono::nanoseconds(static_cast<int64_t>(seconds * 1e9));
}

class Session : public engines::Session {
 public:
  // on_device: how long a run takes there; 0: on the CPU.
  Session(Driver driver, std::vector<int64_t> elements, std::chrono::nanoseconds on_device)
      : driver_(driver), elements_(std::move(elements)), on_device_(on_device) {}
  Result<void> run(std::span<const float* const>, std::span<float* const> outputs) override {
    if (on_device_.count() > 0)
      std::this_thread::sleep_for(on_device_);
    else
      work(driver_, "_Z4gemmPKfPf", "_Z4reluPf", listener_);
    for (size_t i = 0; i < outputs.size(); ++i) std::fill_n(outputs[i], elements_[i], 0.0F);
    return {};
  }
  bool listen(engines::LayerListener* listener) override {
    listener_ = listener;
    return true;
  }

 private:
  Driver driver_;
  std::vector<int64_t> elements_;
  engines::LayerListener* listener_ = nullptr;
  std::chrono::nanoseconds on_device_;
};

class Network : public engines::Network {
 public:
  Network(Driver driver, const models::Graph& graph, const engines::LoadOptions& options) : driver_(driver) {
    const int64_t batch = options.batch;
    if (options.device != "cpu" && has_known_speed()) on_device_ = time_on_device(graph, batch);
    const auto info = [batch](const models::Layer& layer) {
      return TensorInfo{layer.name, {batch, layer.output.channels, layer.output.height, layer.output.width}};
    };
    inputs_.push_back(info(graph.layers.front()));
    for (const models::LayerId id : graph.outputs) outputs_.push_back(info(graph.layers[static_cast<size_t>(id)]));
  }
  const std::vector<TensorInfo>& inputs() const override { return inputs_; }
  const std::vector<TensorInfo>& outputs() const override { return outputs_; }
  Result<std::unique_ptr<engines::Session>> create_session() override {
    std::vector<int64_t> elements;
    for (const TensorInfo& output : outputs_) elements.push_back(output.elements());
    return std::unique_ptr<engines::Session>(std::make_unique<Session>(driver_, elements, on_device_));
  }
  Result<std::vector<engines::Kernel>> kernels() override {
    return std::vector<engines::Kernel>{{"conv1", "Convolution", "", {}}, {"relu2", "Activation", "", {}}};
  }

 private:
  Driver driver_;
  std::chrono::nanoseconds on_device_{0};
  std::vector<TensorInfo> inputs_, outputs_;
};

class Trainer : public engines::Trainer {
 public:
  Trainer(Driver driver, std::shared_ptr<const models::Graph> graph) : driver_(driver), graph_(std::move(graph)) {}
  Result<double> forward(std::span<const float>, std::span<const engines::Target>) override {
    work(driver_, "_Z7forwardPf", "_Z4lossPf");
    return 1.0;
  }
  Result<void> backward() override {
    work(driver_, "_Z8backwardPf", "_Z4gradPf");
    return {};
  }
  Result<void> update(double) override {
    work(driver_, "_Z4adamPf", "_Z4zeroPf");
    return {};
  }
  Result<models::Graph> graph() const override { return *graph_; }
  Result<std::vector<models::Graph>> graphs() const override { return std::vector<models::Graph>{*graph_}; }
  Result<std::map<std::string, models::Tensor>> optimizer_state() const override {
    return std::map<std::string, models::Tensor>{};
  }
  Result<void> set_optimizer_state(const std::map<std::string, models::Tensor>&) override { return {}; }

 private:
  Driver driver_;
  std::shared_ptr<const models::Graph> graph_;
};

class Engine : public engines::Engine {
 public:
  std::string name() const override { return "fakegpu"; }
  std::string version() const override { return "1"; }
  std::vector<std::string> variants() const override { return {"eager", "graphs"}; }
  std::vector<engines::Precision> precisions() const override { return {engines::Precision::kF32}; }
  std::vector<std::string> file_formats() const override { return {}; }
  Result<std::vector<engines::Precision>> precisions_on(const std::string& device) const override {
    if (device != "cuda:0") return unsupported("device " + device + ": CUDA sees 1 GPU, cuda:0");
    return precisions();
  }
  Result<engines::DeviceMemory> device_memory(const std::string&) const override { return held_memory; }
  Result<void> reset_device_peak(const std::string&) override { return {}; }
  Result<void> limit_device_memory(double share) override {
    if (std::getenv("FAKE_ENGINE_HAS_NO_LIMIT") != nullptr) return unsupported("no limit");
    most_memory = static_cast<int64_t>(share * static_cast<double>(kTotal));
    return {};
  }
  Result<std::unique_ptr<engines::Network>> load(const engines::ModelSource& source,
                                                 const engines::LoadOptions& options) override {
    STROBE_ASSIGN(const Driver driver, open_driver());
    if (options.device != "cpu" && has_known_speed()) STROBE_TRY(take_memory(options.batch));
    return std::unique_ptr<engines::Network>(
        std::make_unique<Network>(driver, *std::get<std::shared_ptr<const models::Graph>>(source), options));
  }
  Result<std::unique_ptr<engines::Trainer>> train(std::shared_ptr<const models::Graph> graph,
                                                  const engines::TrainOptions&) override {
    STROBE_ASSIGN(const Driver driver, open_driver());
    return std::unique_ptr<engines::Trainer>(std::make_unique<Trainer>(driver, std::move(graph)));
  }
};

}  // namespace

STROBE_DEFINE_ENGINE(Engine)
