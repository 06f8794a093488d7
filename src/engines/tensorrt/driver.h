// NVIDIA's driver, opened at run time: device memory, pinned memory, streams, in the device's primary context, which is
// the one that TensorRT works in.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "strobe/base/result.h"

namespace strobe::engines::tensorrt_plugin {

// The driver's own types, as far as they are needed here.
using DevicePointer = unsigned long long;
using Context = void*;
using Stream = void*;
using EventHandle = void*;

struct Driver {
  int (*init)(unsigned flags) = nullptr;
  int (*device_count)(int* count) = nullptr;
  int (*device_get)(int* device, int number) = nullptr;
  int (*device_name)(char* name, int size, int device) = nullptr;
  int (*device_attribute)(int* value, int attribute, int device) = nullptr;
  int (*device_memory)(size_t* bytes, int device) = nullptr;
  int (*version)(int* version) = nullptr;
  int (*retain)(Context* context, int device) = nullptr;
  int (*push)(Context context) = nullptr;
  int (*pop)(Context* context) = nullptr;
  int (*priority_range)(int* least, int* greatest) = nullptr;
  int (*stream_create)(Stream* stream, unsigned flags, int priority) = nullptr;
  int (*stream_destroy)(Stream stream) = nullptr;
  int (*stream_wait)(Stream stream) = nullptr;
  int (*stream_wait_event)(Stream stream, EventHandle event, unsigned flags) = nullptr;
  int (*event_create)(EventHandle* event, unsigned flags) = nullptr;
  int (*event_destroy)(EventHandle event) = nullptr;
  int (*event_record)(EventHandle event, Stream stream) = nullptr;
  int (*event_wait)(EventHandle event) = nullptr;
  int (*allocate)(DevicePointer* memory, size_t bytes) = nullptr;
  int (*release)(DevicePointer memory) = nullptr;
  int (*allocate_pinned)(void** memory, size_t bytes, unsigned flags) = nullptr;
  int (*release_pinned)(void* memory) = nullptr;
  int (*to_device)(DevicePointer to, const void* from, size_t bytes, Stream stream) = nullptr;
  int (*to_host)(void* to, DevicePointer from, size_t bytes, Stream stream) = nullptr;
  int (*on_device)(DevicePointer to, DevicePointer from, size_t bytes, Stream stream) = nullptr;
  int (*fill)(DevicePointer to, unsigned char value, size_t bytes, Stream stream) = nullptr;
  int (*error_text)(int code, const char** text) = nullptr;

  // Errors: kEngine with what was tried and the driver's own words.
  Result<void> check(int code, const char* what) const;
};

// Opened and initialised at the first call; STROBE_CUDA_LIBRARY names another one. Errors: kUnsupported.
const Result<Driver>& driver();

// A GPU and its primary context, which is kept until the process ends: others in it use the same one.
class Device {
 public:
  // name: "cuda:N". Errors: kUnsupported (no driver, no such GPU: says which there are), kEngine.
  static Result<Device> open(const std::string& name);

  const Driver& api() const { return *api_; }
  Context context() const { return context_; }
  const std::string& name() const { return name_; }    // "cuda:0"
  const std::string& model() const { return model_; }  // "NVIDIA H100 ..."
  bool has_bf16() const { return major_ >= 8; }
  // All that an engine that was built on it may depend on, in one line: model, compute capability, multiprocessors (a
  // part of them under MIG and MPS), memory, and the driver's CUDA.
  const std::string& kind() const { return kind_; }

 private:
  const Driver* api_ = nullptr;
  Context context_ = nullptr;
  std::string name_, model_, kind_;
  int major_ = 0;  // of its compute capability
};

// The device is the calling thread's for the life of this.
class Current {
 public:
  explicit Current(const Device& device) : api_(device.api()), pushed_(api_.push(device.context()) == 0) {}
  Current(const Current&) = delete;
  Current& operator=(const Current&) = delete;
  ~Current() {
    Context ignored = nullptr;
    if (pushed_) api_.pop(&ignored);
  }

 private:
  const Driver& api_;
  bool pushed_;
};

// What a session holds on its device. All calls: with the device current.
class Lane {
 public:
  // priority: LoadOptions::priority.
  static Result<std::unique_ptr<Lane>> create(const Device& device, int priority);
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  ~Lane();

  Stream stream() const { return stream_; }
  Result<void> wait() const;

 private:
  explicit Lane(const Driver& api) : api_(api) {}
  const Driver& api_;
  Stream stream_ = nullptr;
};

// A place in a stream, for others to wait for. All calls: with the device current.
class Event {
 public:
  static Result<Event> create(const Device& device);
  Event(Event&& other) noexcept : api_(other.api_), event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&&) = delete;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();

  Result<void> record(Stream stream) const;     // behind all that it was given
  Result<void> hold_back(Stream stream) const;  // what this stream does next comes after it; the host does not wait
  Result<void> wait() const;                    // the host does; done at once where nothing was recorded

 private:
  explicit Event(const Driver& api) : api_(&api) {}
  const Driver* api_;
  EventHandle event_ = nullptr;
};

// Memory on the device; pinned memory on the host, through which copies go. All calls: with the device current.
class DeviceBlock {
 public:
  // what: for the message. Errors: kUnsupported (out of memory, with how much was asked for), kEngine.
  static Result<DeviceBlock> create(const Device& device, size_t bytes, const char* what);
  DeviceBlock(DeviceBlock&& other) noexcept
      : api_(other.api_), bytes_(other.bytes_), at_(std::exchange(other.at_, 0)) {}
  DeviceBlock& operator=(DeviceBlock&&) = delete;
  DeviceBlock(const DeviceBlock&) = delete;
  DeviceBlock& operator=(const DeviceBlock&) = delete;
  ~DeviceBlock();
  size_t bytes() const { return bytes_; }
  DevicePointer at(size_t offset = 0) const { return at_ + offset; }
  void* address(size_t offset = 0) const { return reinterpret_cast<void*>(at(offset)); }

 private:
  DeviceBlock(const Driver& api, size_t bytes) : api_(&api), bytes_(bytes) {}
  const Driver* api_;
  size_t bytes_;
  DevicePointer at_ = 0;
};
class PinnedBlock {
 public:
  static Result<PinnedBlock> create(const Device& device, size_t bytes, const char* what);
  PinnedBlock(PinnedBlock&& other) noexcept
      : api_(other.api_), bytes_(other.bytes_), at_(std::exchange(other.at_, nullptr)) {}
  PinnedBlock& operator=(PinnedBlock&&) = delete;
  PinnedBlock(const PinnedBlock&) = delete;
  PinnedBlock& operator=(const PinnedBlock&) = delete;
  ~PinnedBlock();
  size_t bytes() const { return bytes_; }
  void* at() const { return at_; }

 private:
  PinnedBlock(const Driver& api, size_t bytes) : api_(&api), bytes_(bytes) {}
  const Driver* api_;
  size_t bytes_;
  void* at_ = nullptr;
};

// A tensor's memory on the device, and the pinned one on the host that copies go through.
class Buffer {
 public:
  // Errors: those of the blocks.
  static Result<Buffer> create(const Device& device, int64_t floats);

  void* device() const { return device_.address(); }
  // The caller's values on their way to the device; what the stream does next comes after it.
  Result<void> bring(const float* values, Stream stream);
  // Begins the way back; the values are there for take() once the stream was waited for.
  Result<void> fetch(Stream stream);
  void take(float* values) const;

 private:
  Buffer(const Driver& api, DeviceBlock device, PinnedBlock host)
      : api_(&api), device_(std::move(device)), host_(std::move(host)) {}
  const Driver* api_;
  DeviceBlock device_;
  PinnedBlock host_;
};

}  // namespace strobe::engines::tensorrt_plugin
