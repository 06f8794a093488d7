#include "engines/request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <fstream>
#include <thread>

#include "engines/engine_case.h"
#include "support/test_data.h"

namespace strobe::engines {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// Says of itself what a test needs; loads nothing.
class Plain : public Engine {
 public:
  std::string name() const override { return "plain"; }
  std::string version() const override { return "1"; }
  std::vector<std::string> variants() const override { return {"slow", "fast"}; }
  std::vector<Precision> precisions() const override { return {Precision::kF32, Precision::kBf16}; }
  std::vector<std::string> file_formats() const override { return {".onnx"}; }
  Result<std::unique_ptr<Network>> load(const ModelSource&, const LoadOptions&) override {
    return internal_error("not asked for");
  }
};

test::GraphPtr small_graph() {
  test::Sketch sketch({2, 3, 4});
  sketch.add(models::Activation{models::ActivationKind::kRelu});
  return sketch.finish();
}

std::string failure(const ModelSource& source, const LoadOptions& options, ErrorKind kind) {
  const auto checked = check_request(Plain(), source, options);
  if (checked) return "accepted";
  EXPECT_EQ(checked.error().kind(), kind) << checked.error().to_string();
  return checked.error().to_string();
}

TEST(Request, WhatTheEngineHasIsAccepted) {
  const auto checked = check_request(Plain(), small_graph(), {.variant = "fast", .precision = Precision::kBf16});
  EXPECT_TRUE(checked) << checked.error().to_string();
}

TEST(Request, NumbersAreInRange) {
  EXPECT_THAT(failure(small_graph(), {.batch = 0}, ErrorKind::kUsage), HasSubstr("batch 0: must be at least 1"));
  EXPECT_THAT(failure(small_graph(), {.batch = -3}, ErrorKind::kUsage), HasSubstr("batch -3"));
  EXPECT_THAT(failure(small_graph(), {.sessions = 0}, ErrorKind::kUsage), HasSubstr("sessions 0"));
  EXPECT_THAT(failure(small_graph(), {.threads_per_session = -1}, ErrorKind::kUsage), HasSubstr("threads -1"));
}

TEST(Request, SaysWhatTheEngineHasInstead) {
  EXPECT_THAT(failure(small_graph(), {.variant = "quick"}, ErrorKind::kUsage),
              AllOf(HasSubstr("'quick'"), HasSubstr("slow, fast")));
  EXPECT_THAT(failure(small_graph(), {.precision = Precision::kInt8}, ErrorKind::kUnsupported),
              AllOf(HasSubstr("plain does not run i8"), HasSubstr("f32, bf16")));
  EXPECT_THAT(failure(std::filesystem::path("model.pt"), {}, ErrorKind::kUnsupported),
              AllOf(HasSubstr("model.pt"), HasSubstr(".onnx")));
}

TEST(Request, ADeviceIsTheCpuOrNumbered) {
  for (const char* wrong :
       {"gpu", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda0", "cuda:100", "cuda:01", "cuda:1 ", "CUDA:0", "cpu:0", ""})
    EXPECT_THAT(failure(small_graph(), {.device = wrong}, ErrorKind::kUsage),
                AllOf(HasSubstr("'" + std::string(wrong) + "'"), HasSubstr("expected cpu, or cuda:N")));
  EXPECT_THAT(failure(small_graph(), {.device = "cuda:0"}, ErrorKind::kUnsupported),
              AllOf(HasSubstr("device cuda:0: engine plain runs on the CPU only"), HasSubstr("torch")));
}

TEST(Request, PrecisionsAreThoseOfTheDevice) {
  class OnOneGpu : public Plain {
   public:
    Result<std::vector<Precision>> precisions_on(const std::string& device) const override {
      if (device != "cuda:3") return unsupported("there is only cuda:3");
      return std::vector<Precision>{Precision::kF16};
    }
  };
  EXPECT_TRUE(check_request(OnOneGpu(), small_graph(), {.precision = Precision::kF16, .device = "cuda:3"}));
  EXPECT_FALSE(check_request(OnOneGpu(), small_graph(), {.precision = Precision::kF16}));
  const auto precision = check_request(OnOneGpu(), small_graph(), {.device = "cuda:3"});
  ASSERT_FALSE(precision);
  EXPECT_THAT(precision.error().to_string(), HasSubstr("does not run f32 on cuda:3; it runs f16"));
  const auto device = check_request(OnOneGpu(), small_graph(), {.precision = Precision::kF16, .device = "cuda:12"});
  ASSERT_FALSE(device);
  EXPECT_THAT(device.error().to_string(), HasSubstr("there is only cuda:3"));
}

TEST(Request, AFileMustBeThere) {
  const test::ScratchFolder scratch;
  EXPECT_THAT(failure(scratch / "none.onnx", {}, ErrorKind::kNotFound), HasSubstr("none.onnx: no such file"));
  std::filesystem::create_directory(scratch / "folder.onnx");
  EXPECT_THAT(failure(scratch / "folder.onnx", {}, ErrorKind::kBadData), HasSubstr("folder.onnx: not a file"));
  std::ofstream(scratch / "there.onnx") << "something";
  EXPECT_TRUE(check_request(Plain(), scratch / "there.onnx", {}));
}

TEST(Request, AGraphHasItsOwnShape) {
  EXPECT_THAT(failure(small_graph(), {.input_shape = {2, 3, 4}}, ErrorKind::kUsage), HasSubstr("2x3x4"));
  EXPECT_THAT(failure(std::filesystem::path("any.onnx"), {.input_shape = {3, 0, 4}}, ErrorKind::kUsage),
              HasSubstr("extent of 0"));
  failure(test::GraphPtr(), {}, ErrorKind::kInternal);
}

TEST(Request, ThreadsAreSharedOutAmongSessions) {
  EXPECT_EQ(session_threads({.sessions = 4, .threads_per_session = 3}), 3);
  EXPECT_EQ(session_threads({.sessions = 1}), allowed_cores());
  EXPECT_EQ(session_threads({.sessions = 1'000'000}), 1) << "never none";
}

TEST(Request, AllowedCoresFollowTheAffinityMask) {
  std::thread([] {
    cpu_set_t set;
    ASSERT_EQ(::sched_getaffinity(0, sizeof(set), &set), 0);
    int first = 0;
    while (!CPU_ISSET(first, &set)) ++first;
    CPU_ZERO(&set);
    CPU_SET(first, &set);
    ASSERT_EQ(::sched_setaffinity(0, sizeof(set), &set), 0);
    EXPECT_EQ(allowed_cores(), 1);
  }).join();
}

TEST(Request, EndsAreFourExtentsWithTheBatchFirst) {
  const Ends ends = ends_of(*small_graph(), 5);
  ASSERT_EQ(ends.inputs.size(), 1U);
  EXPECT_THAT(ends.inputs[0].shape, testing::ElementsAre(5, 2, 3, 4));
  EXPECT_EQ(ends.inputs[0].elements(), 120);
  ASSERT_EQ(ends.outputs.size(), 1U);
  EXPECT_EQ(ends.outputs[0].name, small_graph()->layers.back().name);
}

TEST(Request, ForeignMessagesBecomeOneLine) {
  EXPECT_EQ(one_line("  a\n\tb \r\n c\n"), "a b c");
  EXPECT_EQ(one_line(""), "");
  EXPECT_EQ(one_line("abcdef", 3), "abc...");
}

}  // namespace
}  // namespace strobe::engines
