#include "measure/child.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

#include "measure/memory.h"
#include "support/test_data.h"

namespace strobe::measure {
namespace {

TEST(Child, Answers) {
  const auto end = run_in_child([] { return std::string(100'000, 'x'); }, {});
  ASSERT_TRUE(end) << end.error().to_string();
  EXPECT_EQ(end->how, ChildEnd::How::kAnswered);
  EXPECT_EQ(end->answer, std::string(100'000, 'x'));
  EXPECT_GT(end->peak_bytes, 0);
}

TEST(Child, ItsDeathIsToldWithItsLastWords) {
  const test::ScratchFolder folder;
  ChildOptions options;
  options.log = folder / "log.txt";
  const auto end = run_in_child(
      []() -> std::string {
        std::fputs("first\nlast words\n", stderr);
        std::signal(SIGSEGV, SIG_DFL);  // sanitizers would catch it
        std::raise(SIGSEGV);
        return "";
      },
      options);
  ASSERT_TRUE(end);
  EXPECT_EQ(end->how, ChildEnd::How::kKilled);
  EXPECT_EQ(end->to_string(), "stopped by signal 11 (Segmentation fault)");
  EXPECT_EQ(end->last_line, "last words");

  const auto thrown = run_in_child([]() -> std::string { throw std::runtime_error("planted"); }, options);
  ASSERT_TRUE(thrown);
  EXPECT_EQ(thrown->how, ChildEnd::How::kExited);
  EXPECT_EQ(thrown->last_line, "planted");
}

TEST(Child, IsEndedWhenItsTimeIsOverOrItIsToStop) {
  const auto sleep = [] {
    std::this_thread::sleep_for(std::chrono::minutes(5));
    return std::string();
  };
  ChildOptions options;
  options.timeout_s = 0.2;
  EXPECT_EQ(run_in_child(sleep, options)->how, ChildEnd::How::kTimeout);
  const std::atomic<bool> stop{true};
  options.timeout_s = 600;
  options.stop = &stop;
  EXPECT_EQ(run_in_child(sleep, options)->how, ChildEnd::How::kStopped);
}

// Figures of memory are asked of a child: what other tests took does not matter there.
std::string in_mib(const std::function<Result<double>()>& work) {
  const auto end = run_in_child(
      [&] {
        const auto value = work();
        return value ? std::to_string(*value) : "!" + value.error().to_string();
      },
      {});
  return end ? end->answer : end.error().to_string();
}

constexpr double kMib = 1 << 20;

TEST(Memory, APeakThatIsOverIsSeenUntilReset) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers keep freed memory";
#endif
  const auto grow = [](size_t mib) {
    auto bytes = std::make_unique<char[]>(mib << 20);
    std::memset(bytes.get(), 1, mib << 20);
    asm volatile("" : : "r"(bytes.get()) : "memory");  // it is read
  };
  const std::string seen = in_mib([&]() -> Result<double> {
    STROBE_ASSIGN(const ResidentMemory before, resident_memory());
    STROBE_TRY(reset_peak());
    grow(100);
    STROBE_ASSIGN(const ResidentMemory after, resident_memory());
    return static_cast<double>(after.peak_bytes - before.now_bytes) / kMib;
  });
  EXPECT_NEAR(std::stod(seen), 100, 2) << seen;
  const std::string reset = in_mib([&]() -> Result<double> {
    grow(100);
    STROBE_ASSIGN(const ResidentMemory before, resident_memory());
    STROBE_TRY(reset_peak());
    grow(10);
    STROBE_ASSIGN(const ResidentMemory after, resident_memory());
    return static_cast<double>(after.peak_bytes - before.now_bytes) / kMib;
  });
  EXPECT_NEAR(std::stod(reset), 10, 2) << reset;
}

TEST(Memory, BeyondTheLimitNothingIsGiven) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers have allocators of their own";
#endif
  const std::string given = in_mib([]() -> Result<double> {
    STROBE_TRY(limit_growth(int64_t{200} << 20));
    double mib = 0;
    for (;; mib += 10) {
      void* more = ::operator new (size_t{10} << 20, std::nothrow);
      if (more == nullptr) return mib;
      std::memset(more, 1, size_t{10} << 20);
    }
  });
  EXPECT_NEAR(std::stod(given), 190, 11) << given;
}

TEST(Memory, MessagesOfAllocators) {
  for (const char* message :
       {"[enforce fail at alloc_cpu.cpp:118] err == 0. DefaultCPUAllocator: can't allocate memory: you tried to "
        "allocate 9437184000 bytes. Error code 12 (Cannot allocate memory)",
        "CUDA out of memory. Tried to allocate 2.00 GiB.", "CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `h`",
        "std::bad_alloc", "OpenCV(4.6.0) alloc.cpp:73: error: (-4:Insufficient memory) Failed to allocate 1 bytes"})
    EXPECT_TRUE(tells_of_memory(message)) << message;
  EXPECT_FALSE(tells_of_memory("Unsupported operation of type: Softmax"));
}

}  // namespace
}  // namespace strobe::measure
