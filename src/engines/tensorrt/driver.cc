#include "driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/library.h"

namespace strobe::engines::tensorrt_plugin {
namespace {

constexpr int kNoDevice = 100, kOutOfMemory = 2;
constexpr int kMultiprocessors = 16, kComputeCapabilityMajor = 75, kComputeCapabilityMinor = 76;  // attributes
constexpr unsigned kNonBlocking = 1;    // a stream that does not wait for the default one
constexpr unsigned kWithoutTiming = 2;  // an event

Result<Driver> open_driver() {
  auto library = Library::open({"STROBE_CUDA_LIBRARY", {"libcuda.so.1"}});
  if (!library) return unsupported("no NVIDIA driver here (" + library.error().message() + ")");
  Driver driver;
  std::string missing;
  const auto find = [&](auto*& function, const char* name) {
    library->find(function, name);
    if (function == nullptr && missing.empty()) missing = name;
  };
  find(driver.init, "cuInit");
  find(driver.device_count, "cuDeviceGetCount");
  find(driver.device_get, "cuDeviceGet");
  find(driver.device_name, "cuDeviceGetName");
  find(driver.device_attribute, "cuDeviceGetAttribute");
  find(driver.device_memory, "cuDeviceTotalMem_v2");
  find(driver.version, "cuDriverGetVersion");
  find(driver.retain, "cuDevicePrimaryCtxRetain");
  find(driver.push, "cuCtxPushCurrent_v2");
  find(driver.pop, "cuCtxPopCurrent_v2");
  find(driver.priority_range, "cuCtxGetStreamPriorityRange");
  find(driver.stream_create, "cuStreamCreateWithPriority");
  find(driver.stream_destroy, "cuStreamDestroy_v2");
  find(driver.stream_wait, "cuStreamSynchronize");
  find(driver.stream_wait_event, "cuStreamWaitEvent");
  find(driver.event_create, "cuEventCreate");
  find(driver.event_destroy, "cuEventDestroy_v2");
  find(driver.event_record, "cuEventRecord");
  find(driver.event_wait, "cuEventSynchronize");
  find(driver.allocate, "cuMemAlloc_v2");
  find(driver.release, "cuMemFree_v2");
  find(driver.allocate_pinned, "cuMemHostAlloc");
  find(driver.release_pinned, "cuMemFreeHost");
  find(driver.to_device, "cuMemcpyHtoDAsync_v2");
  find(driver.to_host, "cuMemcpyDtoHAsync_v2");
  find(driver.on_device, "cuMemcpyDtoDAsync_v2");
  find(driver.fill, "cuMemsetD8Async");
  find(driver.error_text, "cuGetErrorString");
  if (!missing.empty())
    return unsupported(library->path() + ": is no CUDA driver that can be used, it lacks " + missing);
  if (const int code = driver.init(0); code != 0 && code != kNoDevice)
    return unsupported("the NVIDIA driver cannot be used: " + driver.check(code, "cuInit").error().message());
  return driver;
}

}  // namespace

Result<void> Driver::check(int code, const char* what) const {
  if (code == 0) return {};
  const char* text = nullptr;
  if (error_text(code, &text) != 0 || text == nullptr) text = "unknown error";
  return engine_error(fmt::format("{}: {} (CUDA error {})", what, text, code));
}

const Result<Driver>& driver() {
  static const Result<Driver> opened = open_driver();
  return opened;
}

Result<Device> Device::open(const std::string& name) {
  const Result<Driver>& opened = driver();
  if (!opened) return Error(opened.error()).at("device " + name);
  Device device;
  device.api_ = &*opened;
  device.name_ = name;
  const int number = std::stoi(name.substr(name.find(':') + 1));
  int count = 0;
  if (const int code = opened->device_count(&count); code != 0) count = 0;
  if (number >= count)
    return unsupported("device " + name + ": " +
                       (count == 0   ? std::string("there is a driver, but CUDA sees no GPU (CUDA_VISIBLE_DEVICES?)")
                        : count == 1 ? "CUDA sees 1 GPU, cuda:0"
                                     : fmt::format("CUDA sees {} GPUs, up to cuda:{}", count, count - 1)));
  int handle = 0;
  STROBE_TRY(opened->check(opened->device_get(&handle, number), "cuDeviceGet"));
  char model[256] = {};
  if (opened->device_name(model, sizeof model - 1, handle) == 0) device.model_ = model;
  const auto attribute = [&](int which) {
    int value = 0;
    return opened->device_attribute(&value, which, handle) == 0 ? value : 0;
  };
  device.major_ = attribute(kComputeCapabilityMajor);
  size_t bytes = 0;
  int cuda = 0;
  if (opened->device_memory(&bytes, handle) != 0 || opened->version(&cuda) != 0) bytes = 0;
  device.kind_ =
      fmt::format("{}, compute capability {}.{}, {} multiprocessors, {} bytes, driver for CUDA {}", device.model_,
                  device.major_, attribute(kComputeCapabilityMinor), attribute(kMultiprocessors), bytes, cuda);
  STROBE_TRY(opened->check(opened->retain(&device.context_, handle), "the GPU's context"));
  return device;
}

Result<std::unique_ptr<Lane>> Lane::create(const Device& device, int priority) {
  std::unique_ptr<Lane> lane(new Lane(device.api()));
  // CUDA counts down from 0; devices tell a few levels apart.
  constexpr int kLevels = 3;
  int least = 0, greatest = 0;
  STROBE_TRY(lane->api_.check(lane->api_.priority_range(&least, &greatest), "levels of streams"));
  const int level = std::max(-std::clamp(priority, 0, kLevels), greatest);
  STROBE_TRY(lane->api_.check(lane->api_.stream_create(&lane->stream_, kNonBlocking, level), "a stream"));
  return lane;
}

Lane::~Lane() {
  if (stream_ != nullptr) api_.stream_destroy(stream_);
}

Result<void> Lane::wait() const {
  return api_.check(api_.stream_wait(stream_), "waiting for the GPU");
}

Result<Event> Event::create(const Device& device) {
  Event event(device.api());
  STROBE_TRY(event.api_->check(event.api_->event_create(&event.event_, kWithoutTiming), "an event"));
  return event;
}

Event::~Event() {
  if (event_ != nullptr) api_->event_destroy(event_);
}

Result<void> Event::record(Stream stream) const {
  return api_->check(api_->event_record(event_, stream), "an event in a stream");
}

Result<void> Event::hold_back(Stream stream) const {
  return api_->check(api_->stream_wait_event(stream, event_, 0), "an event that a stream waits for");
}

Result<void> Event::wait() const {
  return api_->check(api_->event_wait(event_), "waiting for the GPU");
}

namespace {

Result<void> allocated(const Driver& api, int code, const char* what, size_t bytes, const std::string& where) {
  if (code == kOutOfMemory)
    return unsupported(
        fmt::format("out of memory {}: {:.1f} MB for {}", where, static_cast<double>(bytes) / 1e6, what));
  return api.check(code, "memory");
}

}  // namespace

Result<DeviceBlock> DeviceBlock::create(const Device& device, size_t bytes, const char* what) {
  DeviceBlock block(device.api(), bytes);
  STROBE_TRY(allocated(device.api(), device.api().allocate(&block.at_, bytes), what, bytes, "on " + device.name()));
  return block;
}

DeviceBlock::~DeviceBlock() {
  if (at_ != 0) api_->release(at_);
}

Result<PinnedBlock> PinnedBlock::create(const Device& device, size_t bytes, const char* what) {
  PinnedBlock block(device.api(), bytes);
  STROBE_TRY(
      allocated(device.api(), device.api().allocate_pinned(&block.at_, bytes, 0), what, bytes, "on the host (pinned)"));
  return block;
}

PinnedBlock::~PinnedBlock() {
  if (at_ != nullptr) api_->release_pinned(at_);
}

Result<Buffer> Buffer::create(const Device& device, int64_t floats) {
  const size_t bytes = static_cast<size_t>(floats) * sizeof(float);
  STROBE_ASSIGN(DeviceBlock there, DeviceBlock::create(device, bytes, "a tensor"));
  STROBE_ASSIGN(PinnedBlock here, PinnedBlock::create(device, bytes, "a tensor"));
  return Buffer(device.api(), std::move(there), std::move(here));
}

Result<void> Buffer::bring(const float* values, Stream stream) {
  std::memcpy(host_.at(), values, host_.bytes());
  return api_->check(api_->to_device(device_.at(), host_.at(), host_.bytes(), stream), "a copy to the GPU");
}

Result<void> Buffer::fetch(Stream stream) {
  return api_->check(api_->to_host(host_.at(), device_.at(), host_.bytes(), stream), "a copy from the GPU");
}

void Buffer::take(float* values) const {
  std::memcpy(values, host_.at(), host_.bytes());
}

}  // namespace strobe::engines::tensorrt_plugin
