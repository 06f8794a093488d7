// Lanes on a double of a GPU (device_double.h).
#include "engines/torch/device.h"

#include <c10/core/CachingDeviceAllocator.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "device_double.h"

namespace strobe::engines::torch_plugin {
namespace {

using test::gpu;
using test::kDouble;
using test::on_double;
using testing::ElementsAre;

class Lanes : public testing::Test {
 protected:
  void SetUp() override { test::reset_double(); }
};

TEST_F(Lanes, InputsMayChangeAsSoonAsTheyAreBrought) {
  Lane lane(kDouble, 0);
  const auto guard = lane.guard();
  std::vector<float> input = {1, 2, 3};
  const at::Tensor brought = lane.bring(input.data(), {3});
  input = {7, 7, 7};
  EXPECT_EQ(gpu().streams.at(1).waits, 0) << "bringing must not wait";
  lane.wait();
  EXPECT_THAT(test::seen_on_double(brought), ElementsAre(1, 2, 3));
}

TEST_F(Lanes, InputsHaveTheSameMemoryInEveryRun) {
  Lane lane(kDouble, 0);
  const auto guard = lane.guard();
  std::vector<float> input = {1, 2, 3};
  const at::Tensor first = lane.bring(input.data(), {3});
  lane.wait();
  const at::Tensor second = lane.bring(input.data(), {3});
  EXPECT_EQ(first.const_data_ptr(), second.const_data_ptr());
}

TEST_F(Lanes, ResultsAreThereWhenFetchReturns) {
  Lane lane(kDouble, 0);
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
  Lane one(kDouble, 0), other(kDouble, 0);
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
  for (const int priority : {-5, 0, 1, 3, 90}) Lane(kDouble, priority);
  std::vector<int> told;
  for (const auto& [id, stream] : gpu().streams) told.push_back(stream.priority);
  EXPECT_THAT(told, ElementsAre(0, 0, -1, -3, -3));
}

TEST_F(Lanes, KernelsAreTimedByTheDeviceWithoutWaiting) {
  Lane lane(kDouble, 0);
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

#ifdef STROBE_TORCH_DEVICE_ALLOCATOR
// Figures as a caching allocator keeps them; memory it gives none.
struct Bookkeeper : public c10::DeviceAllocator {
  c10::CachingDeviceAllocator::DeviceStats stats;
  bool used = false;

  c10::DataPtr allocate(size_t) override { throw std::runtime_error("not asked for"); }
  void copy_data(void*, const void*, size_t) const override {}
  bool initialized() override { return used; }
  void emptyCache(c10::MempoolId_t) override {}
  void recordStream(const c10::DataPtr&, c10::Stream) override {}
  c10::CachingDeviceAllocator::DeviceStats getDeviceStats(c10::DeviceIndex) override { return stats; }
  void resetAccumulatedStats(c10::DeviceIndex) override {}
  void resetPeakStats(c10::DeviceIndex) override {
    for (auto* all : {&stats.allocated_bytes, &stats.reserved_bytes})
      for (auto& one : *all) one.reset_peak();
  }
};

TEST_F(Lanes, MemoryIsThatOfTheDevicesAllocatorInAllItsPools) {
  static Bookkeeper allocator;
  EXPECT_FALSE(device_memory(kDouble)) << "its allocator does not tell";
  const struct Usual {
    c10::Allocator* const allocator = c10::GetAllocator(test::kDoubleType);
    ~Usual() { c10::SetAllocator(test::kDoubleType, allocator); }
  } usual;
  c10::SetAllocator(test::kDoubleType, &allocator);
  EXPECT_FALSE(device_memory(kDouble)) << "nothing ran there yet";
  allocator.used = true;
  const auto all = static_cast<size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto small = static_cast<size_t>(c10::CachingAllocator::StatType::SMALL_POOL);
  allocator.stats.allocated_bytes[all].increase(700);
  allocator.stats.allocated_bytes[all].decrease(200);
  allocator.stats.allocated_bytes[small].increase(1);
  allocator.stats.reserved_bytes[all].increase(2048);
  auto memory = device_memory(kDouble);
  ASSERT_TRUE(memory) << memory.error().to_string();
  EXPECT_EQ(memory->allocated, 500);
  EXPECT_EQ(memory->peak_allocated, 700);
  EXPECT_EQ(memory->reserved, 2048);
  EXPECT_EQ(memory->peak_reserved, 2048);
  ASSERT_TRUE(reset_device_peak(kDouble));
  memory = device_memory(kDouble);
  ASSERT_TRUE(memory);
  EXPECT_EQ(memory->peak_allocated, 500);
}
#endif

TEST_F(Lanes, OfTheCpuNoMemoryIsTold) {
  EXPECT_FALSE(device_memory(c10::Device(c10::DeviceType::CPU)));
  EXPECT_FALSE(reset_device_peak(c10::Device(c10::DeviceType::CPU)));
}

TEST_F(Lanes, AfterAFailureADeadDeviceIsNoSecondOne) {
  const Lane lane(kDouble, 0);
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
