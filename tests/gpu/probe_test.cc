#include "gpu/probe.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "gpu/cupti_errors.h"
#include "gpu/fake.h"

namespace strobe::gpu {
namespace {

using Variable = testing::Environment;
using testing::Fake;
using testing::fake_library;
using testing::Folder;
using ::testing::HasSubstr;
using ::testing::StartsWith;

TEST(Probe, WorksWithADriverADeviceAndCupti) {
  const Fake fake;
  const Probe result = probe();
  EXPECT_TRUE(result.works) << result.line;
  EXPECT_THAT(result.line, StartsWith("1 device, CUDA 13.0, CUPTI 130001 ("));
  // What it took as a lock it gave back.
  EXPECT_TRUE(probe().works);
}

TEST(Probe, SaysThatThereIsNoDriver) {
  const Variable none("STROBE_CUDA_LIBRARY", "/nowhere/libcuda.so.1");
  const Probe result = probe();
  EXPECT_FALSE(result.works);
  EXPECT_FALSE(result.has_driver);
  EXPECT_THAT(result.line, HasSubstr("/nowhere/libcuda.so.1"));
}

TEST(Probe, SaysWhatTheDriverAnswers) {
  const Fake fake;
  {
    const Variable broken("FAKE_CUDA_INIT", "803");
    EXPECT_THAT(probe().line, HasSubstr("CUDA driver error 803: the driver's parts do not fit together"));
  }
  {
    const Variable empty("FAKE_CUDA_DEVICES", "0");
    EXPECT_THAT(probe().line, HasSubstr("no CUDA device"));
  }
}

TEST(Probe, NamesTheOtherClient) {
  const Fake fake;
  const Variable other("FAKE_CUPTI_OTHER_CLIENT", "CUPTI for Kineto");
  const Probe result = probe();
  EXPECT_FALSE(result.works);
  EXPECT_THAT(result.line, StartsWith("another CUPTI client: CUPTI for Kineto"));
}

TEST(Probe, SaysThatPermissionIsMissing) {
  const Fake fake;
  const Variable refused("FAKE_CUPTI_SUBSCRIBE", "35");
  EXPECT_THAT(probe().line, HasSubstr("CUPTI error 35: no permission"));
}

TEST(Probe, ALibraryThatIsNoCuptiIsRefused) {
  const Fake fake;
  const Variable other("STROBE_CUPTI_LIBRARY", "libm.so.6");
  EXPECT_THAT(probe().line, HasSubstr("it lacks cuptiActivityRegisterCallbacks"));
}

TEST(Probe, MissingFunctionsOnlySwitchFeaturesOff) {
  const Fake fake("libstrobe_fake_gpu_old.so");
  const auto cupti = Cupti::load();
  ASSERT_TRUE(cupti);
  EXPECT_EQ(cupti->subscribe_v2, nullptr);
  EXPECT_EQ(cupti->callback_name, nullptr);
  EXPECT_NE(cupti->flush_all, nullptr);
  EXPECT_TRUE(probe().works);
}

TEST(Library, TheLoadedOneIsUsedAgain) {
  const LibrarySearch search{"STROBE_NO_SUCH_VARIABLE", {fake_library()}};
  const auto first = Library::open(search), second = Library::open(search);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->symbol("cuInit"), second->symbol("cuInit"));
  EXPECT_EQ(first->symbol("no_such_function"), nullptr);
}

TEST(Library, AFileThatIsNoLibraryIsNamed) {
  const Folder folder;
  const auto path = folder.path() / "libcupti.so.13";
  std::ofstream(path) << "no library";
  const auto opened = Library::open({"STROBE_NO_SUCH_VARIABLE", {"libno-such-thing.so", path.string()}});
  ASSERT_FALSE(opened);
  EXPECT_THAT(opened.error().to_string(), HasSubstr(path.string()));
  const auto absent = Library::open({"STROBE_NO_SUCH_VARIABLE", {"libno-such-thing.so.1"}});
  EXPECT_EQ(absent.error().to_string(), "no libno-such-thing.so.1");
}

TEST(CuptiErrors, EveryCodeHasALine) {
  EXPECT_THAT(cupti_error(39), HasSubstr("another CUPTI client"));
  EXPECT_THAT(cupti_error(999), HasSubstr("without an NVIDIA driver every call gives it"));
  EXPECT_THAT(cupti_error(12345), HasSubstr("not in our table"));
  EXPECT_THAT(driver_error(100), HasSubstr("no CUDA device"));
}

TEST(CounterRestriction, IsReadFromTheDriversParameters) {
  const Folder folder;
  const auto file = (folder.path() / "params").string();
  std::ofstream(file) << "ResmanDebugLevel: 4294967295\nRmProfilingAdminOnly: 1\n";
  EXPECT_EQ(counter_restriction(file), "only administrators");
  std::ofstream(file) << "RmProfilingAdminOnly: 0\n";
  EXPECT_EQ(counter_restriction(file), "");
  EXPECT_EQ(counter_restriction("/nowhere"), "");
}

}  // namespace
}  // namespace strobe::gpu
