#include "engines/tensorrt/fake_cuda.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace strobe::test::fake_cuda {
namespace {

struct StreamState {
  int priority = 0;
  std::vector<std::function<void()>> waiting;
};
// A place in a stream: what was given to it before is done when `done` is.
struct Place {
  StreamState* stream = nullptr;
  bool done = false;
};
struct EventState {
  std::shared_ptr<Place> recorded;
};
struct State {
  std::recursive_mutex mutex;
  std::map<void*, size_t> device, pinned;
  size_t used = 0;
  std::set<StreamState*> streams;
  std::set<EventState*> events;
  std::string priorities;
  int host_waits = 0;  // for events
};
State& state() {
  static auto* const one = new State;
  return *one;
}
thread_local int contexts = 0;

constexpr int kOutOfMemory = 2, kInvalidContext = 201, kInvalidHandle = 400, kNoDevice = 100;

// What a call finds that is made with no context, or with what is no such memory.
int find(const std::map<void*, size_t>& memory, const void* at, size_t bytes) {
  auto block = memory.upper_bound(const_cast<void*>(at));
  if (contexts == 0 || block == memory.begin()) return kInvalidHandle;
  --block;
  const auto offset = static_cast<size_t>(static_cast<const char*>(at) - static_cast<const char*>(block->first));
  return offset + bytes <= block->second ? 0 : kInvalidHandle;
}

}  // namespace

int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr || *text == 0 ? otherwise : std::atoll(text);
}

bool is_current() {
  return contexts > 0;
}

void later(void* stream, std::function<void()> work) {
  const std::lock_guard lock(state().mutex);
  static_cast<StreamState*>(stream)->waiting.push_back(std::move(work));
}

void settle(void* stream) {
  const std::lock_guard lock(state().mutex);
  auto work = std::exchange(static_cast<StreamState*>(stream)->waiting, {});
  for (const auto& one : work) one();
}

bool owns(const void* device_memory) {
  const std::lock_guard lock(state().mutex);
  return find(state().device, device_memory, 1) == 0;
}

}  // namespace strobe::test::fake_cuda

using namespace strobe::test::fake_cuda;

EXPORTED int cuInit(unsigned) {
  return static_cast<int>(setting("FAKE_CUDA_INIT", 0));
}
EXPORTED int cuDeviceGetCount(int* count) {
  *count = static_cast<int>(setting("FAKE_CUDA_DEVICES", 1));
  return 0;
}
EXPORTED int cuDeviceGet(int* device, int number) {
  *device = number;
  return number < setting("FAKE_CUDA_DEVICES", 1) ? 0 : kNoDevice;
}
EXPORTED int cuDeviceGetName(char* name, int size, int) {
  std::snprintf(name, static_cast<size_t>(size), "Stand-in");
  return 0;
}
EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int) {
  constexpr int kMultiprocessors = 16, kMajor = 75;
  *value = attribute == kMajor             ? static_cast<int>(setting("FAKE_CUDA_MAJOR", 9))
           : attribute == kMultiprocessors ? static_cast<int>(setting("FAKE_CUDA_MULTIPROCESSORS", 132))
                                           : 0;
  return 0;
}
EXPORTED int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{80} << 30;
  return 0;
}
EXPORTED int cuDriverGetVersion(int* version) {
  *version = static_cast<int>(setting("FAKE_CUDA_VERSION", 13000));
  return 0;
}
EXPORTED int cuDevicePrimaryCtxRetain(void** context, int) {
  static int one = 0;
  *context = &one;
  return 0;
}
EXPORTED int cuCtxPushCurrent_v2(void*) {
  ++contexts;
  return 0;
}
EXPORTED int cuCtxPopCurrent_v2(void**) {
  return --contexts >= 0 ? 0 : kInvalidContext;
}
EXPORTED int cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = 0, *greatest = -2;
  return contexts > 0 ? 0 : kInvalidContext;
}
EXPORTED int cuStreamCreateWithPriority(void** stream, unsigned flags, int priority) {
  const std::lock_guard lock(state().mutex);
  auto* const made = new StreamState{priority, {}};
  state().streams.insert(made);
  state().priorities += std::to_string(priority) + (flags == 1 ? " " : "(blocking) ");
  *stream = made;
  return contexts > 0 ? 0 : kInvalidContext;
}
EXPORTED int cuStreamDestroy_v2(void* stream) {
  const std::lock_guard lock(state().mutex);
  auto* const one = static_cast<StreamState*>(stream);
  if (state().streams.erase(one) == 0) return kInvalidHandle;
  delete one;
  return 0;
}
EXPORTED int cuStreamSynchronize(void* stream) {
  settle(stream);
  return contexts > 0 ? static_cast<int>(setting("FAKE_CUDA_WAIT", 0)) : kInvalidContext;
}
EXPORTED int cuStreamWaitEvent(void* stream, void* event, unsigned) {
  const std::lock_guard lock(state().mutex);
  const auto place = static_cast<EventState*>(event)->recorded;
  if (place == nullptr) return 0;
  later(stream, [place] {
    if (!place->done) settle(place->stream);
  });
  return contexts > 0 ? 0 : kInvalidContext;
}
EXPORTED int cuEventCreate(void** event, unsigned) {
  const std::lock_guard lock(state().mutex);
  *event = *state().events.insert(new EventState).first;
  return contexts > 0 ? 0 : kInvalidContext;
}
EXPORTED int cuEventDestroy_v2(void* event) {
  const std::lock_guard lock(state().mutex);
  auto* const one = static_cast<EventState*>(event);
  if (contexts == 0 || state().events.erase(one) == 0) return kInvalidHandle;
  delete one;
  return 0;
}
EXPORTED int cuEventRecord(void* event, void* stream) {
  const std::lock_guard lock(state().mutex);
  const auto place = std::make_shared<Place>(Place{static_cast<StreamState*>(stream)});
  static_cast<EventState*>(event)->recorded = place;
  later(stream, [place] { place->done = true; });
  return contexts > 0 ? 0 : kInvalidContext;
}
EXPORTED int cuEventSynchronize(void* event) {
  const std::lock_guard lock(state().mutex);
  const auto place = static_cast<EventState*>(event)->recorded;
  if (place != nullptr && !place->done) {
    ++state().host_waits;
    settle(place->stream);
  }
  return contexts > 0 ? 0 : kInvalidContext;
}
EXPORTED int cuMemsetD8Async(unsigned long long to, unsigned char value, size_t bytes, void* stream) {
  const std::lock_guard lock(state().mutex);
  void* const target = reinterpret_cast<void*>(to);
  if (find(state().device, target, bytes) != 0) return kInvalidHandle;
  later(stream, [=] { std::memset(target, value, bytes); });
  return 0;
}
EXPORTED int cuMemcpyDtoDAsync_v2(unsigned long long to, unsigned long long from, size_t bytes, void* stream) {
  const std::lock_guard lock(state().mutex);
  void* const target = reinterpret_cast<void*>(to);
  const void* const source = reinterpret_cast<const void*>(from);
  if (find(state().device, target, bytes) != 0 || find(state().device, source, bytes) != 0) return kInvalidHandle;
  later(stream, [=] { std::memcpy(target, source, bytes); });
  return 0;
}
EXPORTED int cuMemAlloc_v2(unsigned long long* memory, size_t bytes) {
  const std::lock_guard lock(state().mutex);
  if (contexts == 0) return kInvalidContext;
  if (state().used + bytes > static_cast<size_t>(setting("FAKE_CUDA_MEMORY", int64_t{1} << 40))) return kOutOfMemory;
  void* const made = std::aligned_alloc(256, (bytes + 255) / 256 * 256);  // as cuMemAlloc promises
  std::memset(made, 0x5a, bytes);
  state().device[made] = bytes;
  state().used += bytes;
  *memory = reinterpret_cast<unsigned long long>(made);
  return 0;
}
EXPORTED int cuMemFree_v2(unsigned long long memory) {
  const std::lock_guard lock(state().mutex);
  const auto block = state().device.find(reinterpret_cast<void*>(memory));
  if (contexts == 0 || block == state().device.end()) return kInvalidHandle;
  state().used -= block->second;
  std::free(block->first);
  state().device.erase(block);
  return 0;
}
EXPORTED int cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  const std::lock_guard lock(state().mutex);
  *memory = std::malloc(bytes);
  state().pinned[*memory] = bytes;
  return contexts > 0 ? 0 : kInvalidContext;
}
EXPORTED int cuMemFreeHost(void* memory) {
  const std::lock_guard lock(state().mutex);
  if (contexts == 0 || state().pinned.erase(memory) == 0) return kInvalidHandle;
  std::free(memory);
  return 0;
}
EXPORTED int cuMemcpyHtoDAsync_v2(unsigned long long to, const void* from, size_t bytes, void* stream) {
  const std::lock_guard lock(state().mutex);
  void* const target = reinterpret_cast<void*>(to);
  if (find(state().device, target, bytes) != 0 || find(state().pinned, from, bytes) != 0) return kInvalidHandle;
  later(stream, [=] { std::memcpy(target, from, bytes); });
  return 0;
}
EXPORTED int cuMemcpyDtoHAsync_v2(void* to, unsigned long long from, size_t bytes, void* stream) {
  const std::lock_guard lock(state().mutex);
  const void* const source = reinterpret_cast<const void*>(from);
  if (find(state().device, source, bytes) != 0 || find(state().pinned, to, bytes) != 0) return kInvalidHandle;
  later(stream, [=] { std::memcpy(to, source, bytes); });
  return 0;
}
EXPORTED int cuGetErrorString(int code, const char** text) {
  *text = code == kOutOfMemory ? "out of memory" : code == 700 ? "an illegal memory access was encountered" : "invalid";
  return 0;
}

EXPORTED const char* fake_cuda_held() {
  static std::string text;
  const std::lock_guard lock(state().mutex);
  text = std::to_string(state().device.size()) + " on the device, " + std::to_string(state().pinned.size()) +
         " pinned, " + std::to_string(state().streams.size()) + " streams" +
         (state().events.empty() ? "" : ", " + std::to_string(state().events.size()) + " events");
  return text.c_str();
}
EXPORTED int fake_cuda_host_waits() {
  return state().host_waits;
}
EXPORTED const char* fake_cuda_priorities() {
  return state().priorities.c_str();
}
