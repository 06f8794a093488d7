// Where a network runs. On the CPU everything here is nothing; on a GPU it is c10's device-generic interface, so that
// one source serves wheels with and without CUDA.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/core/StreamGuard.h>

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::engines::torch_plugin {

// Loads the wheel's CUDA library where there is a driver, at the first call, which the engine makes before anything
// else. Errors: kUnsupported (no driver, a wheel without CUDA).
const Result<void>& cuda_support();

// "cpu" or "cuda:N" as a device that is there. On a GPU float32 is then float32: TF32 is switched off for the
// process. Errors: those of cuda_support(); kUnsupported (no such device: says which there are).
Result<c10::Device> open_device(const std::string& name);

at::ScalarType scalar_type(Precision precision);

// A tensor of the host on the device, through pinned memory: nobody waits, and the host's may change at once. On the
// CPU it is the host's own.
at::Tensor brought(const at::Tensor& host, c10::Device device);
at::Tensor brought(const std::vector<float>& values, c10::Device device);
at::Tensor brought(const std::vector<int64_t>& values, c10::Device device);

// A session's place on its device: a stream of its own on a GPU, and pinned memory between that and the host. Used by
// one thread.
class Lane {
 public:
  // priority: LoadOptions::priority.
  Lane(c10::Device device, int priority);

  // Whoever calls ATen holds one: what runs then goes into the lane's stream.
  c10::OptionalStreamGuard guard() const { return c10::OptionalStreamGuard(stream_); }
  // The caller's values as a tensor on the device, whose memory is the same one in every call with no more values than
  // the first. On the CPU it is the caller's memory. The copy may still be under way: what the stream does next comes
  // after it, and the lane is waited for before the next call.
  at::Tensor bring(const float* values, at::IntArrayRef shape);
  at::Tensor bring(const at::Tensor& host);
  // The same of a tensor that is on the device already.
  at::Tensor settled(const at::Tensor& there);
  // Copies results into the caller's buffers, and returns when they are there.
  void fetch(std::span<const at::Tensor> results, std::span<float* const> outputs,
             const std::vector<TensorInfo>& shapes);
  // Returns when all that was given to the stream is done.
  void wait() const;
  // The same after a failure, whose cause goes before what the waiting itself may fail with.
  void settle() const noexcept;

  const std::optional<c10::Stream>& stream() const { return stream_; }
  c10::Device device() const { return stream_ ? stream_->device() : c10::Device(c10::DeviceType::CPU); }

 private:
  at::Tensor own_memory(const at::Tensor& like);
  std::optional<c10::Stream> stream_;
  at::Tensor pinned_input_, device_input_;
  std::vector<at::Tensor> pinned_outputs_;
};

// Durations of kernels that run one after the other on a lane: by the host's clock on the CPU; on a GPU, where a call
// returns before its work is done, between two events of the device in the lane's stream. Nothing is waited for.
class KernelClock {
 public:
  explicit KernelClock(const Lane& lane) : lane_(lane) {}
  void restart();  // forgets what a run that failed had left
  void begin();
  void end(size_t kernel);
  // To be asked when the lane has been waited for.
  std::vector<KernelTime> take();

 private:
  struct Span {
    size_t kernel = 0;
    c10::Event begin, end;
  };
  const Lane& lane_;
  std::chrono::steady_clock::time_point begin_;
  std::optional<c10::Event> begin_event_;
  std::vector<Span> spans_;
  std::vector<KernelTime> times_;
};

// Returns when the work that this thread gave to its current stream is done: after loading, which has no lane. Not when
// the whole device is idle: CUDA refuses that wait while any thread captures a graph, and voids the capture.
void wait_for(c10::Device device);

// What torch's caching allocator has of the device. Errors: kUnsupported (the CPU, a wheel before 2.9, an allocator
// that does not tell; nothing ran there yet).
Result<DeviceMemory> device_memory(c10::Device device);
Result<void> reset_device_peak(c10::Device device);
// Engine::limit_device_memory; what the user set in PYTORCH_ALLOC_CONF stays. Errors: kUnsupported (a wheel without).
Result<void> limit_device_memory(double share);

// What a network's facts say of its device; empty on the CPU.
std::vector<std::pair<std::string, std::string>> device_facts(c10::Device device);

}  // namespace strobe::engines::torch_plugin
