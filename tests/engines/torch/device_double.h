// A double of a GPU: a device of ATen's spare kind, in host memory, whose streams hold back copies until somebody waits
// for them or the next operator of that stream runs. What is read or overwritten too early is then wrong each time, not
// now and then. Operators are the CPU's own.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Device.h>
#include <c10/core/DeviceType.h>
#include <c10/core/Stream.h>

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <vector>

namespace strobe::engines::torch_plugin::test {

constexpr auto kDoubleType = c10::DeviceType::PrivateUse1;
inline const c10::Device kDouble(kDoubleType, 0);

struct Double {
  struct Stream {
    int priority = 0;
    int waits = 0;
    int64_t given = 0;  // pieces of work so far: the device's clock, a millisecond each
    std::vector<std::function<void()>> held;
  };
  std::map<c10::StreamId, Stream> streams;
  c10::StreamId current = 0;
  bool broken = false;
  size_t largest = SIZE_MAX;           // no more bytes than these at once
  int64_t unpinned = 0;                // copies that were to be asynchronous, from or to plain memory
  std::set<std::thread::id> launched;  // the threads that gave it operators

  void give(std::function<void()> work);
  void run_held(c10::StreamId id);
  void wait(c10::StreamId id);
};
Double& gpu();

// Registers the device with ATen, once; then a fresh Double.
void reset_double();

at::Tensor on_double(at::IntArrayRef shape);  // float32
std::vector<float> seen_on_double(const at::Tensor& tensor);

}  // namespace strobe::engines::torch_plugin::test
