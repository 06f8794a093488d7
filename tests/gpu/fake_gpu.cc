#include "gpu/fake_gpu.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/cupti_abi.h"
#include "gpu/cupti_replay_abi.h"
#include "gpu/fake_metrics.h"
#include "gpu/fake_replay.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

namespace abi = strobe::gpu::cupti;

constexpr uint32_t kContextNumber = 1;
constexpr uint32_t kLaunchFunction = 211, kCopyFunction = 41, kSetFunction = 51, kSyncFunction = 131, kGetDevice = 17,
                   kSetDevice = 16, kLastError = 10, kCaptureInfo = 410, kInstantiateFunction = 306,
                   kGraphLaunchFunction = 311;
constexpr uint32_t kDriverLaunch = 307, kDriverCopy = 277, kDriverOther = 304;
constexpr std::pair<uint32_t, const char*> kRuntimeNames[] = {{kGetDevice, "cudaGetDevice_v3020"},
                                                              {kSetDevice, "cudaSetDevice_v3020"},
                                                              {kCaptureInfo, "cudaStreamGetCaptureInfo_v2_ptsz_v11030"},
                                                              {kLastError, "cudaGetLastError_v3020"},
                                                              {kCopyFunction, "cudaMemcpyAsync_v3020"},
                                                              {kSetFunction, "cudaMemsetAsync_v3020"},
                                                              {kSyncFunction, "cudaStreamSynchronize_v3020"},
                                                              {kInstantiateFunction, "cudaGraphInstantiate_v12000"},
                                                              {kGraphLaunchFunction, "cudaGraphLaunch_v10000"},
                                                              {kLaunchFunction, "cudaLaunchKernel_v7000"}};
constexpr std::pair<uint32_t, const char*> kDriverNames[] = {
    {kDriverCopy, "cuMemcpyHtoDAsync_v2"}, {kDriverOther, "cuCtxGetCurrent"}, {kDriverLaunch, "cuLaunchKernel"}};

struct Node {
  uint64_t id;
  FakeLaunch launch;
  Node* original;
};
struct Graph {
  std::vector<Node*> nodes;
  uint32_t id = 0;
};

struct State {
  std::recursive_mutex mutex;
  abi::BufferRequested requested = nullptr;
  abi::BufferCompleted completed = nullptr;
  abi::Callback callback = nullptr;
  void* user = nullptr;
  std::set<std::pair<int, uint32_t>> called_back;
  std::vector<std::unique_ptr<Node>> nodes;  // numbered from 1, as graphs are
  std::vector<std::unique_ptr<Graph>> graphs;
  bool subscribed = false, zeroed_promised = false;
  bool initialized = false;  // the driver: CUPTI tells of devices while that happens, or when asked for a dump
  std::set<uint32_t> kinds, driver_functions, runtime_off;
  uint8_t* buffer = nullptr;
  size_t size = 0, used = 0;
  size_t dropped = 0;
  uint64_t outstanding = 0;
  uint32_t correlation = 0;
  int64_t stepped_ns = 0;
  std::map<uint32_t, uint64_t> stream_free;  // by stream: when
  // Lengths of the records of a buffer, by its address: CUPTI knows them by their kinds.
  std::map<const uint8_t*, std::map<size_t, size_t>> lengths;
};
State& state() {
  static auto* one = new State;
  return *one;
}

int64_t setting(const std::string& name, int64_t otherwise) {
  const char* text = std::getenv(name.c_str());
  return text == nullptr ? otherwise : std::atoll(text);
}

void hand_over(State& s) {
  if (s.buffer == nullptr) return;
  uint8_t* const buffer = s.buffer;
  const size_t size = s.size, used = s.used;
  s.buffer = nullptr;
  --s.outstanding;
  s.completed(nullptr, 0, buffer, size, used);
}

void put(const void* record, size_t bytes) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.requested == nullptr) return;
  if (s.buffer != nullptr && s.used + bytes > s.size) hand_over(s);
  if (s.buffer == nullptr) {
    size_t most = 1;
    s.requested(&s.buffer, &s.size, &most);
    s.used = 0;
    if (s.buffer == nullptr || s.size < bytes) {
      ++s.dropped;
      s.buffer = nullptr;
      return;
    }
    ++s.outstanding;
    s.lengths[s.buffer].clear();
    // Promised to be zero: otherwise the library would have to clear it on the launching thread.
    if (s.zeroed_promised && std::any_of(s.buffer, s.buffer + s.size, [](uint8_t byte) { return byte != 0; })) {
      std::fprintf(stderr, "fake CUPTI: a buffer is not zero\n");
      std::abort();
    }
  }
  std::memcpy(s.buffer + s.used, record, bytes);
  s.lengths[s.buffer][s.used] = bytes;
  s.used += bytes;
}

template <typename Record>
void put_if_wanted(const Record& record) {
  if (fake_enabled(record.kind) != 0) put(&record, sizeof record);
}

uint32_t call(uint32_t function, uint32_t number, uint64_t start, uint64_t end, bool driver) {
  const bool wanted = driver ? fake_driver_function_enabled(function) != 0 || fake_enabled(abi::kDriver) != 0
                             : fake_enabled(abi::kRuntime) != 0 && fake_runtime_function_disabled(function) == 0;
  const abi::ApiRecord record{
      driver ? abi::kDriver : abi::kRuntime, function, start, end, static_cast<uint32_t>(::getpid()),
      static_cast<uint32_t>(::gettid()),     number,   0};
  if (wanted) put(&record, sizeof record);
  return number;
}

// What concerns a node, told to who subscribed; the library's own lock is held meanwhile.
void tell(uint32_t function, Graph* graph, Node* node) {
  State& s = state();
  if (s.callback == nullptr || s.called_back.count({abi::kDomainResource, function}) == 0) return;
  abi::GraphData data{};
  data.graph = graph, data.node = node, data.original_node = node->original;
  data.node_type = node->launch.kernel != nullptr ? 0 : node->launch.copy_kind != 0 ? 1 : 2;
  const abi::ResourceData resource{nullptr, nullptr, &data};
  s.callback(s.user, abi::kDomainResource, function, &resource);
}

int the_context = 0;

void tell_launch(int domain, uint32_t function, int site, const FakeLaunch& launch) {
  State& s = state();
  if (s.callback == nullptr || s.called_back.count({domain, function}) == 0) return;
  const abi::DirectLaunch params{nullptr, {{80, 1, 1}, {256, 1, 1}}};
  int result = 0;
  abi::CallbackData data{};
  data.site = site;
  data.params = &params;
  data.return_value = &result;
  data.symbol = launch.kernel;
  data.context = &the_context;
  s.callback(s.user, domain, function, &data);
}

}  // namespace

void strobe::gpu::testing::tell_own_launch() {
  const std::lock_guard lock(state().mutex);
  FakeLaunch launch{};
  launch.kernel = "cupti_own";
  tell_launch(abi::kDomainDriver, kDriverLaunch, abi::kCallEnter, launch);
  tell_launch(abi::kDomainDriver, kDriverLaunch, abi::kCallExit, launch);
}

namespace {

void put_operation(const FakeLaunch& launch, uint32_t stream, uint32_t number, uint64_t start, uint64_t end,
                   uint64_t node, uint32_t graph) {
  if (launch.kernel != nullptr) {
    abi::KernelRecord record{};
    record.kind = abi::kConcurrentKernel;
    record.registers_per_thread = 32;
    record.start = start, record.end = end;
    record.context = kContextNumber, record.stream = stream;
    record.grid[0] = 80, record.grid[1] = record.grid[2] = 1;
    record.block[0] = 256, record.block[1] = record.block[2] = 1;
    record.static_shared = 1024, record.dynamic_shared = 2048;
    record.correlation = number;
    record.name = reinterpret_cast<uint64_t>(launch.kernel);
    record.graph_node = node, record.graph = graph;
    put_if_wanted(record);
  } else if (launch.copy_kind != 0) {
    abi::MemcpyRecord record{};
    record.kind = abi::kMemcpy;
    record.copy_kind = static_cast<uint8_t>(launch.copy_kind);
    record.source_kind = launch.copy_kind == 1 ? 2 : 3;  // pinned, device
    record.target_kind = launch.copy_kind == 2 ? 1 : 3;
    record.flags = 1;
    record.bytes = launch.bytes, record.start = start, record.end = end;
    record.context = kContextNumber, record.stream = stream;
    record.correlation = number;
    record.graph_node = node, record.graph = graph;
    put_if_wanted(record);
  } else {
    abi::MemsetRecord record{};
    record.kind = abi::kMemset;
    record.bytes = launch.bytes, record.start = start, record.end = end;
    record.context = kContextNumber, record.stream = stream;
    record.memory_kind = 3;
    record.correlation = number;
    record.graph_node = node, record.graph = graph;
    put_if_wanted(record);
  }
}

Graph* new_graph(State& s) {
  s.graphs.push_back(std::make_unique<Graph>());
  s.graphs.back()->id = static_cast<uint32_t>(s.graphs.size());
  return s.graphs.back().get();
}
Node* new_node(State& s, const FakeLaunch& launch, Node* original) {
  s.nodes.push_back(std::make_unique<Node>(Node{s.nodes.size() + 1, launch, original}));
  return s.nodes.back().get();
}

uint32_t function_of(const FakeLaunch& launch) {
  return launch.kernel != nullptr ? kLaunchFunction : launch.copy_kind != 0 ? kCopyFunction : kSetFunction;
}

}  // namespace

// ---- what tests play with

EXPORTED uint64_t fake_now() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec + setting("FAKE_CUPTI_AHEAD_NS", 0) +
                               state().stepped_ns);
}
EXPORTED void fake_step_clock(int64_t by_ns) {
  state().stepped_ns += by_ns;
}
EXPORTED void fake_emit(const void* record, size_t bytes) {
  put(record, bytes);
}
EXPORTED uint32_t fake_enabled(uint32_t kind) {
  const std::lock_guard lock(state().mutex);
  return state().kinds.count(kind) != 0 ? 1 : 0;
}
EXPORTED uint32_t fake_driver_function_enabled(uint32_t function) {
  const std::lock_guard lock(state().mutex);
  return state().driver_functions.count(function) != 0 ? 1 : 0;
}
EXPORTED uint32_t fake_runtime_function_disabled(uint32_t function) {
  const std::lock_guard lock(state().mutex);
  return state().runtime_off.count(function) != 0 ? 1 : 0;
}
EXPORTED uint64_t fake_outstanding() {
  return state().outstanding;
}
EXPORTED void fake_reset() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.kinds.clear(), s.driver_functions.clear(), s.runtime_off.clear(), s.stream_free.clear();
  s.subscribed = s.zeroed_promised = false;
  s.buffer = nullptr;
  s.dropped = s.outstanding = 0;
  s.stepped_ns = 0;
  s.callback = nullptr;
  s.called_back.clear();
  strobe::gpu::testing::forget_kernels();
  strobe::gpu::testing::forget_replay();
}

EXPORTED uint32_t fake_launch(const FakeLaunch* launch) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const uint32_t number = ++s.correlation;
  const uint64_t begin = fake_now();
  if (launch->nested != 0) {
    const uint64_t inner = fake_now();
    call(launch->kernel != nullptr ? kDriverLaunch : kDriverCopy, number, inner, fake_now(), true);
  }
  call(kGetDevice, ++s.correlation, begin, fake_now(), false);
  if (launch->kernel != nullptr) {
    // The runtime's call makes the driver's.
    tell_launch(abi::kDomainRuntime, kLaunchFunction, abi::kCallEnter, *launch);
    tell_launch(abi::kDomainDriver, kDriverLaunch, abi::kCallEnter, *launch);
    strobe::gpu::testing::replay_kernel(launch->kernel, launch->duration_ns);
    tell_launch(abi::kDomainDriver, kDriverLaunch, abi::kCallExit, *launch);
    tell_launch(abi::kDomainRuntime, kLaunchFunction, abi::kCallExit, *launch);
  }
  call(function_of(*launch), number, begin, fake_now(), false);
  uint64_t& free = s.stream_free[launch->stream];
  uint64_t start = std::max(begin + launch->delay_ns, free), end = start + launch->duration_ns;
  free = end;
  if (launch->before_call_ns != 0) start = begin - static_cast<uint64_t>(launch->before_call_ns);
  if (launch->no_times != 0) start = end = 0;
  if (launch->kernel != nullptr) strobe::gpu::testing::note_kernel(start, end, launch->kernel);
  put_operation(*launch, launch->stream, number, start, end, 0, 0);
  return number;
}

EXPORTED void fake_launch_begins(const char* kernel) {
  const std::lock_guard lock(state().mutex);
  FakeLaunch launch{};
  launch.kernel = kernel;
  tell_launch(abi::kDomainRuntime, kLaunchFunction, abi::kCallEnter, launch);
}
EXPORTED void fake_launch_ends(const char* kernel, uint64_t duration_ns) {
  const std::lock_guard lock(state().mutex);
  FakeLaunch launch{};
  launch.kernel = kernel;
  strobe::gpu::testing::replay_kernel(kernel, duration_ns);
  tell_launch(abi::kDomainRuntime, kLaunchFunction, abi::kCallExit, launch);
}

EXPORTED void fake_context(uint32_t created) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const uint32_t function = created != 0 ? abi::kContextCreated : abi::kContextDestroyed;
  if (s.callback == nullptr || s.called_back.count({abi::kDomainResource, function}) == 0) return;
  const abi::ResourceData resource{&the_context, nullptr, nullptr};
  s.callback(s.user, abi::kDomainResource, function, &resource);
}

EXPORTED void* fake_graph_capture(void* graph, const FakeLaunch* launch) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  auto* const into = graph != nullptr ? static_cast<Graph*>(graph) : new_graph(s);
  const uint32_t number = ++s.correlation;
  const uint64_t begin = fake_now();
  into->nodes.push_back(new_node(s, *launch, nullptr));
  if (launch->kernel != nullptr) tell_launch(abi::kDomainRuntime, kLaunchFunction, abi::kCallEnter, *launch);
  tell(abi::kGraphNodeCreated, into, into->nodes.back());
  if (launch->kernel != nullptr) tell_launch(abi::kDomainRuntime, kLaunchFunction, abi::kCallExit, *launch);
  call(function_of(*launch), number, begin, fake_now(), false);
  return into;
}

EXPORTED void* fake_graph_instantiate(void* graph) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const uint64_t begin = fake_now();
  Graph* const made = new_graph(s);
  for (Node* node : static_cast<Graph*>(graph)->nodes) {
    made->nodes.push_back(new_node(s, node->launch, node));
    tell(abi::kGraphNodeCreated, made, made->nodes.back());
    tell(abi::kGraphNodeCloned, made, made->nodes.back());
  }
  call(kInstantiateFunction, ++s.correlation, begin, fake_now(), false);
  return made;
}

EXPORTED uint32_t fake_graph_launch(void* instance, uint32_t stream) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const uint32_t number = ++s.correlation;
  const uint64_t begin = fake_now();
  call(kGraphLaunchFunction, number, begin, fake_now(), false);
  const auto* const graph = static_cast<Graph*>(instance);
  uint64_t at = std::max(fake_now(), s.stream_free[stream]);
  const uint64_t first = at;
  for (const Node* node : graph->nodes) {
    const uint64_t start = at + node->launch.delay_ns;
    at = start + node->launch.duration_ns;
    if (fake_enabled(abi::kGraphTrace) == 0)
      put_operation(node->launch, stream, number, start, at, node->id, graph->id);
  }
  s.stream_free[stream] = at;
  abi::GraphTraceRecord record{};
  record.kind = abi::kGraphTrace;
  record.correlation = number, record.start = first, record.end = at;
  record.context = kContextNumber, record.stream = stream, record.graph = graph->id;
  put_if_wanted(record);
  return number;
}

EXPORTED void fake_synchronize(uint32_t stream) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const uint64_t begin = fake_now();
  // As long as its work takes, but a test need not wait.
  const uint64_t end = std::max(fake_now(), s.stream_free[stream]);
  const uint32_t number = ++s.correlation;
  call(kSyncFunction, number, begin, end, false);
  abi::SynchronizationRecord record{};
  record.kind = abi::kSynchronization;
  record.type = 3;
  record.start = begin, record.end = end;
  record.correlation = number;
  record.context = kContextNumber, record.stream = stream;
  put_if_wanted(record);
}

// ---- the driver

namespace {

// What there is of a kind whose records tell what exists.
void tell_of(uint32_t kind) {
  static const char device_name[] = "Fake GPU 9000";
  if (kind == abi::kDevice) {
    abi::DeviceRecord record{};
    record.kind = abi::kDevice;
    record.memory_bandwidth = 3'350'000'000, record.memory_bytes = uint64_t{80} << 30;
    record.l2_bytes = 50 << 20, record.threads_per_warp = 32, record.core_clock = 1'980'000;
    record.copy_engines = 3, record.multiprocessors = 132, record.warps_per_sm = 64, record.blocks_per_sm = 32;
    record.shared_per_sm = 233472, record.registers_per_sm = 65536;
    record.compute_major = 9;
    record.uuid[0] = 0xAB, record.uuid[15] = 0xCD;
    record.gpu_instance = record.compute_instance = ~0U;
    if (setting("FAKE_CUDA_MIG", 0) != 0) {
      record.is_mig = 1, record.gpu_instance = 2, record.compute_instance = 0;
      record.mig_uuid[0] = 0x31, record.mig_uuid[15] = 2;
    }
    record.name = reinterpret_cast<uint64_t>(device_name);
    put(&record, sizeof record);
  }
  if (kind == abi::kContext) {
    abi::ContextRecord record{};
    record.kind = abi::kContext;
    record.context = kContextNumber, record.null_stream = 7;
    put(&record, sizeof record);
  }
}

}  // namespace

EXPORTED int cuInit(unsigned) {
  if (const auto code = setting("FAKE_CUDA_INIT", 0); code != 0) return static_cast<int>(code);
  static const bool injected = [] {
    const char* path = std::getenv("CUDA_INJECTION64_PATH");
    if (path == nullptr || *path == 0) return false;
    void* library = ::dlopen(path, RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      std::fprintf(stderr, "fake driver: %s\n", ::dlerror());
      return false;
    }
    auto* start = reinterpret_cast<int (*)()>(::dlsym(library, "InitializeInjection"));
    return start != nullptr && start() != 0;
  }();
  (void)injected;
  if (std::exchange(state().initialized, true)) return 0;
  for (const uint32_t kind : {abi::kDevice, abi::kContext})
    if (state().kinds.count(kind) != 0) tell_of(kind);
  return 0;
}
EXPORTED int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(setting("FAKE_CUDA_DEVICES", 1));
  return 0;
}
EXPORTED int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

// ---- CUPTI

EXPORTED int cuptiGetVersion(uint32_t* version) {
  *version = static_cast<uint32_t>(setting("FAKE_CUPTI_VERSION", 130001));
  return 0;
}
EXPORTED int cuptiGetTimestamp(uint64_t* time) {
  *time = fake_now();
  return 0;
}
EXPORTED int cuptiActivityRegisterCallbacks(abi::BufferRequested requested, abi::BufferCompleted completed) {
  state().requested = requested, state().completed = completed;
  return 0;
}
EXPORTED int cuptiActivityEnable(uint32_t kind) {
  if (const auto code = setting("FAKE_CUPTI_ENABLE_" + std::to_string(kind), 0); code != 0)
    return static_cast<int>(code);
  const std::lock_guard lock(state().mutex);
  state().kinds.insert(kind);
  return 0;
}
EXPORTED int cuptiActivityDisable(uint32_t kind) {
  const std::lock_guard lock(state().mutex);
  state().kinds.erase(kind);
  return 0;
}
EXPORTED int cuptiActivityFlushAll(uint32_t) {
  if (setting("FAKE_CUPTI_FLUSH_HANGS", 0) != 0)
    for (;;) ::pause();
  State& s = state();
  const std::lock_guard lock(s.mutex);
  hand_over(s);
  return 0;
}
EXPORTED int cuptiActivityGetNextRecord(uint8_t* buffer, size_t valid, uint8_t** record) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const auto& lengths = s.lengths[buffer];
  size_t at = 0;
  if (*record != nullptr) {
    const auto found = lengths.find(static_cast<size_t>(*record - buffer));
    if (found == lengths.end()) return 1;
    at = found->first + found->second;
  }
  if (at >= valid) return abi::kMaxLimitReached;
  *record = buffer + at;
  return 0;
}
#ifndef FAKE_WITHOUT_OPTIONAL
EXPORTED int cuptiSubscribe_v2(void** handle, abi::Callback callback, void* user, abi::SubscriberParams* params) {
  if (const char* other = std::getenv("FAKE_CUPTI_OTHER_CLIENT")) {
    std::snprintf(params->old_name, params->old_name_size, "%s", other);
    return abi::kMultipleSubscribers;
  }
  if (const auto code = setting("FAKE_CUPTI_SUBSCRIBE", 0); code != 0) return static_cast<int>(code);
  if (std::exchange(state().subscribed, true)) {
    std::snprintf(params->old_name, params->old_name_size, "CUPTI for Strobe");
    return abi::kMultipleSubscribers;
  }
  *handle = &state();
  const std::lock_guard lock(state().mutex);
  state().callback = callback, state().user = user;
  return 0;
}
EXPORTED int cuptiUnsubscribe(void*) {
  const std::lock_guard lock(state().mutex);
  state().subscribed = false;
  state().callback = nullptr;
  state().called_back.clear();
  return 0;
}
EXPORTED int cuptiActivityEnableAndDump(uint32_t kind) {
  if (const int code = cuptiActivityEnable(kind); code != 0) return code;
  if (state().initialized) tell_of(kind);
  return 0;
}
EXPORTED int cuptiActivitySetAttribute(int attribute, size_t*, void* value) {
  if (attribute == abi::kZeroedOutBuffer) state().zeroed_promised = *static_cast<uint8_t*>(value) != 0;
  return 0;
}
EXPORTED int cuptiSetThreadIdType(int) {
  return 0;
}
EXPORTED int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t* dropped) {
  const std::lock_guard lock(state().mutex);
  *dropped = std::exchange(state().dropped, 0);
  return 0;
}
EXPORTED int cuptiActivityFlushPeriod(uint32_t) {
  return 0;
}
EXPORTED int cuptiActivityEnableAllSyncRecords(uint8_t) {
  return 0;
}
EXPORTED int cuptiActivityEnableRuntimeApi(uint32_t function, uint8_t on) {
  const std::lock_guard lock(state().mutex);
  on != 0 ? void(state().runtime_off.erase(function)) : void(state().runtime_off.insert(function));
  return 0;
}
EXPORTED int cuptiActivityEnableDriverApi(uint32_t function, uint8_t on) {
  const std::lock_guard lock(state().mutex);
  on != 0 ? void(state().driver_functions.insert(function)) : void(state().driver_functions.erase(function));
  return 0;
}
EXPORTED int cuptiEnableCallback(uint32_t on, void* handle, int domain, uint32_t function) {
  if (handle != &state()) return 1;
  const std::lock_guard lock(state().mutex);
  on != 0 ? void(state().called_back.emplace(domain, function)) : void(state().called_back.erase({domain, function}));
  return 0;
}
EXPORTED int cuptiGetGraphNodeId(void* node, uint64_t* id) {
  if (node == nullptr) return 1;
  *id = static_cast<Node*>(node)->id;
  return 0;
}
EXPORTED int cuptiGetCallbackName(int domain, uint32_t function, const char** name) {
  const auto find = [&](const auto& names) {
    for (const auto& [number, text] : names)
      if (number == function) return *name = text, 0;
    return 1;
  };
  return domain == abi::kDomainRuntime ? find(kRuntimeNames) : domain == abi::kDomainDriver ? find(kDriverNames) : 1;
}
#endif
