// Lanes on a double of a GPU: a device of ATen's spare kind whose streams hold back what they are given until somebody
// waits for them. What is read too early is then wrong each time, not now and then.
#include "engines/torch/device.h"

#include <ATen/ATen.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/DeviceType.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/library.h>

#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace strobe::engines::torch_plugin {
namespace {

using testing::ElementsAre;

constexpr auto kType = c10::DeviceType::PrivateUse1;
const c10::Device kDevice(kType, 0);

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

  void give(std::function<void()> work) {
    ++streams[current].given;
    streams[current].held.push_back(std::move(work));
  }
  void wait(c10::StreamId id) {
    if (broken) throw std::runtime_error("the device is gone");
    ++streams[id].waits;
    for (const auto& work : std::exchange(streams[id].held, {})) work();
  }
};
Double& gpu() {
  static Double one;
  return one;
}

struct Guard : public c10::impl::NoOpDeviceGuardImpl<kType> {
  using Stream = c10::Stream;
  static Stream stream(c10::StreamId id) { return Stream(Stream::UNSAFE, kDevice, id); }
  c10::Device exchangeDevice(c10::Device) const override { return kDevice; }
  c10::Device getDevice() const override { return kDevice; }
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
    if (*event == nullptr) *event = new int64_t;
    *static_cast<int64_t*>(*event) = gpu().streams[one.id()].given;
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<int64_t*>(event); }
  bool queryEvent(void*) const override { return true; }
  double elapsedTime(void* from, void* to, c10::DeviceIndex) const override {
    return static_cast<double>(*static_cast<int64_t*>(to) - *static_cast<int64_t*>(from));
  }
};
C10_REGISTER_GUARD_IMPL(PrivateUse1, Guard)

struct Hooks : public at::PrivateUse1HooksInterface {
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  c10::Allocator* getPinnedMemoryAllocator() const override { return c10::GetDefaultCPUAllocator(); }
  bool isPinnedPtr(const void*) const override { return true; }
};

at::Tensor on_double(at::IntArrayRef shape) {
  const int64_t count = c10::multiply_integers(shape);
  auto memory = std::make_shared<std::vector<float>>(static_cast<size_t>(count));
  return at::for_blob(memory->data(), shape)
      .deleter([memory](void*) {})
      .options(at::TensorOptions(at::kFloat).device(kDevice))
      .target_device(kDevice)
      .make_tensor();
}

at::Tensor make_empty(at::IntArrayRef shape, std::optional<at::ScalarType>, std::optional<at::Layout>,
                      std::optional<at::Device>, std::optional<bool>, std::optional<at::MemoryFormat>) {
  return on_double(shape);
}

at::Tensor& copy(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  const auto work = [to, from] { std::memcpy(to.data_ptr(), from.const_data_ptr(), to.nbytes()); };
  if (non_blocking) {
    gpu().give(work);
  } else {
    gpu().wait(gpu().current);
    work();
  }
  return to;
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", make_empty);
  library.impl("copy_", copy);
}

class Lanes : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    static Hooks hooks;
    static const bool once = [] {
      at::RegisterPrivateUse1HooksInterface(&hooks);
      c10::register_privateuse1_backend("held");
      return true;
    }();
    (void)once;
  }
  void SetUp() override { gpu() = Double(); }

  static std::vector<float> on_host(const at::Tensor& tensor) {
    const auto* values = static_cast<const float*>(tensor.const_data_ptr());
    return {values, values + tensor.numel()};
  }
};

TEST_F(Lanes, InputsMayChangeAsSoonAsTheyAreBrought) {
  Lane lane(kDevice, 0);
  const auto guard = lane.guard();
  std::vector<float> input = {1, 2, 3};
  const at::Tensor brought = lane.bring(input.data(), {3});
  input = {7, 7, 7};
  EXPECT_EQ(gpu().streams.at(1).waits, 0) << "bringing must not wait";
  lane.wait();
  EXPECT_THAT(on_host(brought), ElementsAre(1, 2, 3));
}

TEST_F(Lanes, InputsHaveTheSameMemoryInEveryRun) {
  Lane lane(kDevice, 0);
  const auto guard = lane.guard();
  std::vector<float> input = {1, 2, 3};
  const at::Tensor first = lane.bring(input.data(), {3});
  lane.wait();
  const at::Tensor second = lane.bring(input.data(), {3});
  EXPECT_EQ(first.const_data_ptr(), second.const_data_ptr());
}

TEST_F(Lanes, ResultsAreThereWhenFetchReturns) {
  Lane lane(kDevice, 0);
  const auto guard = lane.guard();
  const std::vector<TensorInfo> shapes = {{"a", {2}}, {"b", {1}}};
  for (const float run : {1.0F, 2.0F}) {  // the second one finds the buffers of the first
    const std::vector<at::Tensor> results = {on_double({2}), on_double({1})};
    gpu().give([results, run] {
      auto* a = static_cast<float*>(results[0].data_ptr());
      a[0] = run;
      a[1] = 10 * run;
      *static_cast<float*>(results[1].data_ptr()) = 100 * run;
    });
    std::vector<float> a(2, -1), b(1, -1);
    const std::vector<float*> outputs = {a.data(), b.data()};
    lane.fetch(results, outputs, shapes);
    EXPECT_THAT(a, ElementsAre(run, 10 * run));
    EXPECT_THAT(b, ElementsAre(100 * run));
  }
  EXPECT_EQ(gpu().streams.at(1).waits, 2) << "once a run, however many outputs";
}

TEST_F(Lanes, EachHasAStreamOfItsOwnAndWaitsForThatAlone) {
  Lane one(kDevice, 0), other(kDevice, 0);
  bool one_ran = false, other_ran = false;
  {
    const auto guard = one.guard();
    gpu().give([&] { one_ran = true; });
    {
      const auto inner = other.guard();
      gpu().give([&] { other_ran = true; });
    }
    EXPECT_EQ(gpu().current, one.stream()->id());
  }
  EXPECT_EQ(gpu().current, 0);
  other.wait();
  EXPECT_TRUE(other_ran);
  EXPECT_FALSE(one_ran);
}

TEST_F(Lanes, GreaterPrioritiesAreCudasSmallerOnes) {
  for (const int priority : {-5, 0, 1, 3, 90}) Lane(kDevice, priority);
  std::vector<int> told;
  for (const auto& [id, stream] : gpu().streams) told.push_back(stream.priority);
  EXPECT_THAT(told, ElementsAre(0, 0, -1, -3, -3));
}

TEST_F(Lanes, KernelsAreTimedByTheDeviceWithoutWaiting) {
  Lane lane(kDevice, 0);
  const auto guard = lane.guard();
  KernelClock clock(lane);
  clock.begin();  // of a run that failed
  clock.end(9);
  clock.restart();
  for (const size_t kernel : {size_t{4}, size_t{2}}) {
    clock.begin();
    for (size_t i = 0; i < kernel; ++i) gpu().give([] {});
    clock.end(kernel);
  }
  EXPECT_EQ(gpu().streams.at(1).waits, 0);
  const auto times = clock.take();
  ASSERT_EQ(times.size(), 2u);
  EXPECT_EQ(times[0].kernel, 4u);
  EXPECT_EQ(times[0].duration_ns, 4'000'000);
  EXPECT_EQ(times[1].kernel, 2u);
  EXPECT_EQ(times[1].duration_ns, 2'000'000);
  EXPECT_TRUE(clock.take().empty());
}

TEST_F(Lanes, AfterAFailureADeadDeviceIsNoSecondOne) {
  const Lane lane(kDevice, 0);
  lane.settle();
  EXPECT_EQ(gpu().streams.at(1).waits, 1);
  gpu().broken = true;
  EXPECT_ANY_THROW(lane.wait());
  EXPECT_NO_THROW(lane.settle());
}

TEST_F(Lanes, OnTheCpuNothingIsCopiedTwiceAndNothingIsWaitedFor) {
  Lane lane(c10::Device(c10::DeviceType::CPU), 3);
  EXPECT_FALSE(lane.stream());
  const std::vector<float> input = {1, 2};
  const at::Tensor brought = lane.bring(input.data(), {2});
  EXPECT_EQ(brought.const_data_ptr(), input.data());
  std::vector<float> output(2);
  const std::vector<float*> outputs = {output.data()};
  lane.fetch(std::vector{brought}, outputs, {{"a", {2}}});
  EXPECT_THAT(output, ElementsAre(1, 2));
  lane.wait();
  EXPECT_TRUE(gpu().streams.empty());
}

}  // namespace
}  // namespace strobe::engines::torch_plugin
