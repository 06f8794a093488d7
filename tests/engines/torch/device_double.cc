#include "device_double.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/Resize.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace strobe::engines::torch_plugin::test {

void Double::give(std::function<void()> work) {
  ++streams[current].given;
  streams[current].held.push_back(std::move(work));
}
void Double::run_held(c10::StreamId id) {
  for (const auto& work : std::exchange(streams[id].held, {})) work();
}
void Double::wait(c10::StreamId id) {
  if (broken) throw std::runtime_error("the device is gone");
  ++streams[id].waits;
  run_held(id);
}
// Never destroyed, nor are the blocks: what a stream still holds back at the end has memory of both.
Double& gpu() {
  static auto* const one = new Double;
  return *one;
}

namespace {

// What an event knows.
struct Moment {
  int64_t given = 0;
  c10::StreamId stream = 0;
};

struct Guard : public c10::impl::NoOpDeviceGuardImpl<kDoubleType> {
  using Stream = c10::Stream;
  static Stream stream(c10::StreamId id) { return Stream(Stream::UNSAFE, kDouble, id); }
  c10::Device exchangeDevice(c10::Device) const override { return kDouble; }
  c10::Device getDevice() const override { return kDouble; }
  Stream getStream(c10::Device) const noexcept override { return stream(gpu().current); }
  Stream getDefaultStream(c10::Device) const override { return stream(0); }
  Stream getNewStream(c10::Device, int priority) const override {
    const auto id = static_cast<c10::StreamId>(gpu().streams.size() + 1);
    gpu().streams[id].priority = priority;
    return stream(id);
  }
  Stream exchangeStream(Stream next) const noexcept override { return stream(std::exchange(gpu().current, next.id())); }
  void synchronizeStream(const Stream& one) const override { gpu().wait(one.id()); }
  void record(void** event, const Stream& one, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new Moment;
    *static_cast<Moment*>(*event) = {gpu().streams[one.id()].given, one.id()};
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<Moment*>(event); }
  // What was held back when the event was recorded, and more, which is allowed.
  void synchronizeEvent(void* event) const override { gpu().wait(static_cast<Moment*>(event)->stream); }
  void block(void* event, const Stream& one) const override {
    const c10::StreamId before = static_cast<Moment*>(event)->stream;
    gpu().streams[one.id()].held.emplace_back([before] { gpu().run_held(before); });
  }
  bool queryEvent(void*) const override { return true; }
  double elapsedTime(void* from, void* to, c10::DeviceIndex) const override {
    return static_cast<double>(static_cast<Moment*>(to)->given - static_cast<Moment*>(from)->given);
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

// Memory, on the device or pinned on the host.
std::map<const char*, size_t>& pinned_blocks() {
  static auto* const blocks = new std::map<const char*, size_t>;
  return *blocks;
}
bool is_pinned(const void* at) {
  const auto* byte = static_cast<const char*>(at);
  const auto next = pinned_blocks().upper_bound(byte);
  if (next == pinned_blocks().begin()) return false;
  const auto& [begin, size] = *std::prev(next);
  return byte < begin + size;
}

struct Memory : public c10::Allocator {
  explicit Memory(c10::Device of) : device(of) {}
  c10::DataPtr allocate(size_t bytes) override {
    if (!device.is_cpu())
      TORCH_CHECK_WITH(OutOfMemoryError, bytes <= gpu().largest, "CUDA out of memory. Tried to allocate ", bytes,
                       " bytes. GPU 0 has a total capacity of 79.10 GiB of which ", gpu().largest,
                       " bytes is free. If reserved but unallocated memory is large\ntry setting something");
    if (bytes == 0) return {nullptr, device};
    void* const data = std::malloc(bytes);
    if (device.is_cpu()) pinned_blocks()[static_cast<char*>(data)] = bytes;
    return {data, data, raw_deleter(), device};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return device.is_cpu() ? [](void* data) { pinned_blocks().erase(static_cast<char*>(data)), std::free(data); }
                           : &std::free;
  }
  void copy_data(void* to, const void* from, std::size_t count) const override { default_copy_data(to, from, count); }
  c10::Device device;
};
Memory& device_memory() {
  static Memory memory(kDouble);
  return memory;
}
Memory& pinned_memory() {
  static Memory memory{c10::Device(c10::kCPU)};
  return memory;
}

struct Hooks : public at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return &pinned_memory(); }
  bool isPinnedPtr(const void* at) const override { return is_pinned(at); }
  const at::Generator& getDefaultGenerator(c10::DeviceIndex) const override {
    return at::globalContext().defaultGenerator(c10::Device(c10::kCPU));  // of the operators that run here
  }
};

bool is_there(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device() == kDouble;
}

// The same memory as a tensor of the CPU, which an operator may give more of.
at::Tensor seen(const at::Tensor& tensor) {
  if (!is_there(tensor)) return tensor;
  const c10::Storage& own = tensor.storage();
  c10::DataPtr shared(
      own.mutable_data(), new c10::Storage(own), [](void* held) { delete static_cast<c10::Storage*>(held); },
      c10::Device(c10::kCPU));
  const c10::Storage memory(c10::Storage::use_byte_size_t(), own.nbytes(), std::move(shared), c10::GetCPUAllocator(),
                            true);
  return at::empty({0}, tensor.options().device(at::kCPU))
      .set_(memory, tensor.storage_offset(), tensor.sizes(), tensor.strides());
}

// A tensor that the CPU made, as one of the device.
at::Tensor taken_over(const at::Tensor& made) {
  TORCH_CHECK_WITH(OutOfMemoryError, made.nbytes() <= gpu().largest, "CUDA out of memory.");
  return at::for_blob(made.data_ptr(), made.sizes())
      .strides(made.strides())
      .deleter([made](void*) {})
      .options(made.options().device(kDouble))
      .target_device(kDouble)
      .make_tensor();
}

at::Tensor make_empty(at::IntArrayRef shape, std::optional<at::ScalarType> type, std::optional<at::Layout>,
                      std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(shape, &device_memory(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   type.value_or(at::kFloat), format);
}
at::Tensor make_strided(at::IntArrayRef shape, at::IntArrayRef strides, std::optional<at::ScalarType> type,
                        std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(
      shape, strides, &device_memory(), c10::DispatchKeySet(c10::DispatchKey::PrivateUse1), type.value_or(at::kFloat));
}

at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const auto work = [to, from] { seen(to).copy_(seen(from)); };
  const bool within = is_there(to) && is_there(from);
  if (non_blocking && !within && !is_pinned((is_there(to) ? from : to).data_ptr())) {
    ++gpu().unpinned;
    non_blocking = false;
  }
  if (within || non_blocking) {
    gpu().give(work);
  } else {
    gpu().wait(gpu().current);
    work();
  }
  return to;
}

at::Scalar item(const at::Tensor& tensor) {
  gpu().wait(gpu().current);
  return at::_local_scalar_dense(seen(tensor));
}

// Every operator that is not below: the CPU's, on the same memory.
class OnHost {
 public:
  static void call(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
    gpu().run_held(gpu().current);
    ++gpu().streams[gpu().current].given;
    gpu().launched.insert(std::this_thread::get_id());
    OnHost one;
    const size_t arguments = op.schema().arguments().size(), first = stack->size() - arguments;
    for (size_t i = first; i < stack->size(); ++i) (*stack)[i] = one.argument((*stack)[i]);
    op.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
    for (size_t i = stack->size() - op.schema().returns().size(); i < stack->size(); ++i)
      (*stack)[i] = one.result((*stack)[i], op);
    one.follow_resized();
  }

 private:
  c10::IValue argument(const c10::IValue& value) {
    if (value.isTensor()) return tensor(value.toTensor());
    if (value.isDevice()) return c10::Device(c10::kCPU);
    if (value.isTensorList()) {
      c10::List<at::Tensor> all;
      for (const at::Tensor& one : value.toTensorVector()) all.push_back(tensor(one));
      return all;
    }
    if (value.isOptionalTensorList()) {
      c10::List<std::optional<at::Tensor>> all;
      for (const std::optional<at::Tensor>& one : value.toOptionalTensorVector())
        all.push_back(one ? std::optional(tensor(*one)) : std::nullopt);
      return all;
    }
    return value;
  }
  at::Tensor tensor(const at::Tensor& one) {
    if (!is_there(one)) return one;
    pairs_.emplace_back(one, seen(one));
    return pairs_.back().second;
  }
  c10::IValue result(const c10::IValue& value, const c10::OperatorHandle& op) {
    if (value.isTensor()) return there(value.toTensor(), op);
    if (!value.isTensorList()) return value;
    c10::List<at::Tensor> all;
    for (const at::Tensor& one : value.toTensorVector()) all.push_back(there(one, op));
    return all;
  }
  at::Tensor there(const at::Tensor& made, const c10::OperatorHandle& op) {
    if (!made.defined()) return made;
    for (const auto& [original, alias] : pairs_) {
      if (alias.is_same(made)) return original;
      TORCH_CHECK(!alias.storage().is_alias_of(made.storage()), "the double lacks the view ",
                  toString(op.operator_name()));
    }
    return taken_over(made);
  }
  // An out= of another size got memory of its own.
  void follow_resized() const {
    for (const auto& [original, alias] : pairs_) {
      if (alias.data_ptr() == original.data_ptr() && alias.sizes() == original.sizes()) continue;
      const at::Tensor moved = taken_over(alias);
      auto* impl = original.unsafeGetTensorImpl();
      impl->set_storage_keep_dtype(moved.storage());
      impl->set_sizes_and_strides(moved.sizes(), moved.strides(), moved.storage_offset());
    }
  }
  std::vector<std::pair<at::Tensor, at::Tensor>> pairs_;
};

at::Tensor convolution(const at::Tensor& x, const at::Tensor& weight, const std::optional<at::Tensor>& bias,
                       c10::SymIntArrayRef stride, c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation,
                       bool transposed, c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  gpu().run_held(gpu().current);
  return taken_over(at::convolution_symint(seen(x), seen(weight), bias ? std::optional(seen(*bias)) : std::nullopt,
                                           stride, padding, dilation, transposed, output_padding, std::move(groups)));
}
std::tuple<at::Tensor, at::Tensor, at::Tensor> convolution_backward(
    const at::Tensor& gradient, const at::Tensor& x, const at::Tensor& weight, c10::SymIntArrayRef stride,
    c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed, c10::SymIntArrayRef output_padding,
    c10::SymInt groups, std::array<bool, 3> wanted) {
  gpu().run_held(gpu().current);
  std::vector<c10::SymInt> bias_sizes = {transposed ? weight.sym_size(1) * groups : weight.sym_size(0)};
  const auto made = at::convolution_backward_symint(seen(gradient), seen(x), seen(weight), bias_sizes, stride, padding,
                                                    dilation, transposed, output_padding, std::move(groups), wanted);
  const auto there = [](const at::Tensor& one) { return one.defined() ? taken_over(one) : one; };
  return {there(std::get<0>(made)), there(std::get<1>(made)), there(std::get<2>(made))};
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&OnHost::call>());
}
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFallthrough());
}
TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", make_empty);
  library.impl("empty_strided", make_strided);
  library.impl("copy_", copy);
  library.impl("_local_scalar_dense", item);
  library.impl("view", at::native::view);
  library.impl("_reshape_alias", at::native::_reshape_alias);
  library.impl("as_strided", at::native::as_strided_tensorimpl);
  library.impl("convolution_overrideable", convolution);
  library.impl("convolution_backward_overrideable", convolution_backward);
}

}  // namespace

struct Quiet : public c10::WarningHandler {
  void process(const c10::Warning&) override {}
};

void reset_double() {
  static Hooks hooks;
  static const bool once = [] {
    at::RegisterPrivateUse1HooksInterface(&hooks);
    c10::register_privateuse1_backend("held");
    c10::SetAllocator(kDoubleType, &device_memory());
    // An out= that CPU operators find too small is said each time.
    static Quiet quiet;
    c10::WarningUtils::set_warning_handler(&quiet);
    return true;
  }();
  (void)once;
  gpu() = Double();
}

at::Tensor on_double(at::IntArrayRef shape) {
  return at::empty(shape, at::TensorOptions(at::kFloat).device(kDouble));
}

std::vector<float> seen_on_double(const at::Tensor& tensor) {
  const auto* values = static_cast<const float*>(tensor.const_data_ptr());
  return {values, values + tensor.numel()};
}

}  // namespace strobe::engines::torch_plugin::test
