#include "device.h"

#include <ATen/ATen.h>
#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <algorithm>
#include <cmath>
#include <utility>

#ifdef STROBE_TORCH_MEMORY_FRACTION
#include <c10/core/AllocatorConfig.h>
#endif

#include "error.h"

namespace strobe::engines::torch_plugin {
namespace {

// ATen asks once for its CUDA part and remembers the answer, so this must come before anything that may ask. A driver
// is looked for first: the wheel's library costs a start a second, and gigabytes of mapped files.
Result<void> load_cuda() {
  if (::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) == nullptr)
    return unsupported("no NVIDIA driver here (" + one_line(::dlerror()) + ")");
  // It stands beside the plugin's other libraries, and registers what it has when it is loaded.
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_LOCAL) == nullptr) {
    const std::string why = ::dlerror();
    if (why.find("libtorch_cuda.so: cannot open shared object file") != std::string::npos)
      return unsupported("this torch (" TORCH_VERSION
                         ") was built without CUDA: install a CUDA wheel of it and build again");
    return unsupported("torch's CUDA library cannot be loaded: " + one_line(why));
  }
  if (!c10::impl::hasDeviceGuardImpl(c10::DeviceType::CUDA))
    return unsupported("torch's CUDA library was loaded, but is not one of torch " TORCH_VERSION);
  return {};
}

}  // namespace

const Result<void>& cuda_support() {
  static const Result<void> loaded = load_cuda();
  return loaded;
}

Result<c10::Device> open_device(const std::string& name) {
  if (name == "cpu") return c10::Device(c10::DeviceType::CPU);
  const Result<void>& loaded = cuda_support();
  if (!loaded) return Error(loaded.error()).at("device " + name);
  return guarded(ErrorKind::kUnsupported, [&]() -> Result<c10::Device> {
    const c10::Device device(name);
    const int count = c10::impl::VirtualGuardImpl(device.type()).deviceCount();
    if (device.index() >= count)
      return unsupported(
          "device " + name + ": " +
          (count == 0
               ? std::string("there is a driver, but CUDA sees no GPU (CUDA_VISIBLE_DEVICES, or a driver too old?)")
               : "CUDA sees " + std::to_string(count) +
                     (count == 1 ? " GPU, cuda:0" : " GPUs, up to cuda:" + std::to_string(count - 1))));
    at::globalContext().setAllowTF32CuDNN(false);
    at::globalContext().setAllowTF32CuBLAS(false);
    return device;
  });
}

at::ScalarType scalar_type(Precision precision) {
  switch (precision) {
    case Precision::kBf16:
      return at::kBFloat16;
    case Precision::kF16:
      return at::kHalf;
    case Precision::kF32:
    case Precision::kInt8:
      break;
  }
  return at::kFloat;
}

at::Tensor brought(const at::Tensor& host, c10::Device device) {
  if (device.is_cpu()) return host;
  // ATen keeps the pinned memory until the copy is done.
  at::Tensor pinned = at::empty(host.sizes(), host.options().pinned_memory(true));
  pinned.copy_(host);
  at::Tensor there = at::empty(host.sizes(), host.options().device(device));
  return there.copy_(pinned, /*non_blocking=*/true);
}

at::Tensor brought(const std::vector<float>& values, c10::Device device) {
  return brought(at::tensor(values), device);
}

at::Tensor brought(const std::vector<int64_t>& values, c10::Device device) {
  return brought(at::tensor(values, at::kLong), device);
}

Lane::Lane(c10::Device device, int priority) {
  if (device.is_cpu()) return;
  // CUDA counts down from 0; devices tell a few levels apart.
  constexpr int kLevels = 3;
  stream_ = c10::impl::VirtualGuardImpl(device.type()).getNewStream(device, -std::clamp(priority, 0, kLevels));
}

at::Tensor Lane::bring(const float* values, at::IntArrayRef shape) {
  return bring(at::from_blob(const_cast<float*>(values), shape, at::kFloat));
}

at::Tensor Lane::own_memory(const at::Tensor& like) {
  if (!device_input_.defined() || device_input_.numel() < like.numel())
    device_input_ = at::empty({like.numel()}, at::TensorOptions(at::kFloat).device(stream_->device()));
  return device_input_.narrow(0, 0, like.numel()).view(like.sizes());
}

at::Tensor Lane::settled(const at::Tensor& there) {
  return stream_ ? own_memory(there).copy_(there) : there;
}

at::Tensor Lane::bring(const at::Tensor& host) {
  if (!stream_) return host;
  if (!pinned_input_.defined() || pinned_input_.numel() < host.numel())
    pinned_input_ = at::empty({host.numel()}, at::TensorOptions(at::kFloat).pinned_memory(true));
  const at::Tensor staged = pinned_input_.narrow(0, 0, host.numel()).view(host.sizes());
  staged.copy_(host);
  return own_memory(host).copy_(staged, /*non_blocking=*/true);
}

void Lane::fetch(std::span<const at::Tensor> results, std::span<float* const> outputs,
                 const std::vector<TensorInfo>& shapes) {
  const auto host = [&](size_t i) { return at::from_blob(outputs[i], shapes[i].shape, at::kFloat); };
  if (!stream_) {
    for (size_t i = 0; i < outputs.size(); ++i) host(i).copy_(results[i]);
    return;
  }
  pinned_outputs_.resize(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (!pinned_outputs_[i].defined())
      pinned_outputs_[i] = at::empty(shapes[i].shape, at::TensorOptions(at::kFloat).pinned_memory(true));
    // Converted on the device, so that the copy is one of plain memory.
    pinned_outputs_[i].copy_(results[i].to(at::kFloat).contiguous(), /*non_blocking=*/true);
  }
  wait();
  for (size_t i = 0; i < outputs.size(); ++i) host(i).copy_(pinned_outputs_[i]);
}

void Lane::wait() const {
  if (stream_) stream_->synchronize();
}

void Lane::settle() const noexcept {
  try {
    wait();
  } catch (const std::exception&) {
    // Of a device that is broken; the run has said why already.
  }
}

void KernelClock::restart() {
  spans_.clear();
  times_.clear();
}

void KernelClock::begin() {
  if (!lane_.stream()) {
    begin_ = std::chrono::steady_clock::now();
    return;
  }
  begin_event_.emplace(lane_.stream()->device_type(), c10::EventFlag::BACKEND_DEFAULT);  // with times
  begin_event_->record(*lane_.stream());
}

void KernelClock::end(size_t kernel) {
  if (!lane_.stream()) {
    const auto spent = std::chrono::steady_clock::now() - begin_;
    times_.push_back({kernel, std::chrono::duration_cast<std::chrono::nanoseconds>(spent).count()});
    return;
  }
  c10::Event done(lane_.stream()->device_type(), c10::EventFlag::BACKEND_DEFAULT);
  done.record(*lane_.stream());
  spans_.push_back({kernel, std::move(*begin_event_), std::move(done)});
}

std::vector<KernelTime> KernelClock::take() {
  constexpr double kNsPerMs = 1e6;
  for (const Span& span : spans_)
    times_.push_back({span.kernel, std::llround(span.begin.elapsedTime(span.end) * kNsPerMs)});
  spans_.clear();
  return std::exchange(times_, {});
}

void wait_for(c10::Device device) {
  if (!device.is_cpu()) c10::impl::VirtualGuardImpl(device.type()).getStream(device).synchronize();
}

#ifdef STROBE_TORCH_DEVICE_ALLOCATOR
namespace {

Result<c10::DeviceAllocator*> allocator_of(c10::Device device) {
  if (device.is_cpu()) return unsupported("the CPU has no allocator of its own");
  auto* const allocator = dynamic_cast<c10::DeviceAllocator*>(c10::GetAllocator(device.type()));
  if (allocator == nullptr) return unsupported("torch's allocator of " + device.str() + " does not tell its memory");
  if (!allocator->initialized()) return unsupported("torch has not used " + device.str() + " yet");
  return allocator;
}

}  // namespace

Result<DeviceMemory> device_memory(c10::Device device) {
  return guarded(ErrorKind::kUnsupported, [&]() -> Result<DeviceMemory> {
    STROBE_ASSIGN(c10::DeviceAllocator* const allocator, allocator_of(device));
    const auto stats = allocator->getDeviceStats(device.index());
    const auto all = [](const c10::CachingAllocator::StatArray& array) {
      return array[static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE)];
    };
    const auto allocated = all(stats.allocated_bytes), reserved = all(stats.reserved_bytes);
    return DeviceMemory{allocated.current, reserved.current, allocated.peak, reserved.peak};
  });
}

Result<void> reset_device_peak(c10::Device device) {
  return guarded(ErrorKind::kUnsupported, [&]() -> Result<void> {
    STROBE_ASSIGN(c10::DeviceAllocator* const allocator, allocator_of(device));
    allocator->resetPeakStats(device.index());
    return {};
  });
}
#else
Result<DeviceMemory> device_memory(c10::Device) {
  return unsupported("torch " TORCH_VERSION " does not tell what its allocator holds: 2.9 and newer do");
}
Result<void> reset_device_peak(c10::Device device) {
  return Error(device_memory(device).error());
}
#endif

Result<void> limit_device_memory(double share) {
#ifdef STROBE_TORCH_MEMORY_FRACTION
  STROBE_TRY(cuda_support());
  // Read by the allocator of each device when that is made, which is at its first use.
  return guarded(ErrorKind::kUnsupported, [&]() -> Result<void> {
    const std::string given = c10::CachingAllocator::getAllocatorSettings();
    c10::CachingAllocator::setAllocatorSettings((given.empty() ? "" : given + ",") +
                                                "per_process_memory_fraction:" + std::to_string(share));
    return {};
  });
#else
  (void)share;
  return unsupported("torch " TORCH_VERSION " has no limit of memory that can be set from here");
#endif
}

std::vector<std::pair<std::string, std::string>> device_facts(c10::Device device) {
  if (device.is_cpu()) return {};
  return {{"device", device.str()}, {"tf32", "off"}};
}

}  // namespace strobe::engines::torch_plugin
