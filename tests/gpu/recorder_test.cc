// record::Options::gpu: collection as a part of a recording.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/collector.h"
#include "gpu/fake.h"
#include "gpu/log_file.h"
#include "gpu/timeline/open.h"
#include "record/gpu_collection.h"
#include "strobe/record/annotate.h"

namespace strobe::gpu {
namespace {

using Variable = testing::Environment;
using testing::Fake;
using testing::Folder;
using ::testing::HasSubstr;

trace::Timeline recorded(const Folder& folder, const Fake& fake, bool gpu) {
  provide_to_recorder();
  EXPECT_TRUE(record::start({.folder = folder.path(), .gpu = gpu}));
  EXPECT_TRUE(record::recording());
  {
    STROBE_RANGE("step", 3);
    fake.kernel("k", 1000, 10);
  }
  EXPECT_TRUE(record::stop());
  EXPECT_FALSE(collecting());
  auto timeline = open_trace(folder.path());
  EXPECT_TRUE(timeline);
  return std::move(*timeline);
}
std::string fact(const trace::Timeline& timeline, const std::string& key) {
  const auto found = timeline.facts.find(key);
  return found == timeline.facts.end() ? "" : found->second;
}

TEST(RecorderWithGpu, AKernelIsUnderTheRangeOfItsCall) {
  const Fake fake;
  const Folder folder;
  const trace::Timeline timeline = recorded(folder, fake, true);
  ASSERT_EQ(timeline.device_ops.size(), 1U);
  const int32_t launch = timeline.device_ops[0].launch;
  ASSERT_NE(launch, trace::kNone);
  const int32_t around = timeline.ranges.parent[static_cast<size_t>(launch)];
  ASSERT_NE(around, trace::kNone);
  EXPECT_EQ(timeline.strings[timeline.ranges.name[static_cast<size_t>(around)]], "step");
  EXPECT_EQ(fact(timeline, "gpu.collection"), "on");
  EXPECT_EQ(fact(timeline, "gpu.causality.before_their_call"), "0");
}

TEST(RecorderWithGpu, NobodyAskedForIt) {
  const Fake fake;
  const Folder folder;
  EXPECT_TRUE(recorded(folder, fake, false).device_ops.empty());
  EXPECT_TRUE(log_files(folder.path()).empty());
}

TEST(RecorderWithGpu, WithoutADriverNothingIsSaid) {
  const Fake fake;
  const Variable none("STROBE_CUDA_LIBRARY", "/nowhere/libcuda.so.1");
  const Folder folder;
  EXPECT_EQ(fact(recorded(folder, fake, true), "gpu.collection"), "");
  EXPECT_TRUE(log_files(folder.path()).empty());
}

TEST(RecorderWithGpu, WhatIsInTheWayIsAFact) {
  const Fake fake;
  const Variable other("FAKE_CUPTI_OTHER_CLIENT", "Kineto");
  const Folder folder;
  EXPECT_THAT(fact(recorded(folder, fake, true), "gpu.collection"), HasSubstr("off: another CUPTI client: Kineto"));
}

TEST(RecorderWithGpu, NotWhereStrobeRecordCollectsAlready) {
  const Fake fake;
  const Folder folder;
  {
    const Variable injected("CUDA_INJECTION64_PATH", "/usr/lib/strobe/libstrobe_inject.so");
    EXPECT_THAT(fact(recorded(folder, fake, true), "gpu.collection"), HasSubstr("`strobe record`"));
  }
  // Another tool's library does not keep us from trying.
  const Folder second;
  const Variable injected("CUDA_INJECTION64_PATH", "/opt/other.so");
  EXPECT_EQ(fact(recorded(second, fake, true), "gpu.collection"), "on");
}

TEST(RecorderWithGpu, OneRecordingAfterTheOther) {
  const Fake fake;
  for (int i = 0; i < 3; ++i) {
    const Folder folder;
    EXPECT_EQ(recorded(folder, fake, true).device_ops.size(), 1U) << i;
  }
}

}  // namespace
}  // namespace strobe::gpu
