// Decoding by a device: NVDEC through FFmpeg, with a stand-in for NVIDIA's libraries (fake_nvdec.cc).
#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cstdlib>

#include "media/media_test.h"
#include "media/preprocess.h"

namespace strobe::media {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class HwAccel : public ::testing::Test {
 protected:
  void SetUp() override {
    WriterOptions options;
    write_test_video(video_, 8, 128, 100, options);  // H.264 codes 112 rows of it
  }
  void TearDown() override {
    ::unsetenv("FAKE_NVDEC_REFUSES");
    ::unsetenv("FAKE_NVDEC_LOSES");
  }

  // FFmpeg opens NVIDIA's libraries by their names, and a library that is there under that name already is the one.
  static bool load_stand_in() {
#ifdef STROBE_FAKE_NVDEC
    void* const there = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (there != nullptr) return ::dlsym(there, "cuvidMapVideoFrame64") != nullptr;
    for (const char* name : {STROBE_FAKE_NVDEC "/libcuda.so.1", STROBE_FAKE_NVDEC "/libnvcuvid.so.1"}) {
      if (::dlopen(name, RTLD_NOW) == nullptr) return false;
    }
    return true;
#else
    return false;
#endif
  }

  Error refusal(const std::string& input, const std::string& hwaccel) {
    SourceOptions options;
    options.hwaccel = hwaccel;
    auto source = open_source(input, options);
    EXPECT_FALSE(source);
    return source ? Error(ErrorKind::kInternal, "") : source.error();
  }

  const test::ScratchFolder folder_;
  const std::string video_ = (folder_.path() / "v.mp4").string();
};

TEST_F(HwAccel, WhatIsNotThereIsRefused) {
  const Error unknown = refusal(video_, "nvidia");
  EXPECT_EQ(unknown.kind(), ErrorKind::kUsage);
  EXPECT_THAT(unknown.to_string(), AllOf(HasSubstr("v.mp4"), HasSubstr("'nvidia'"), HasSubstr("cuda")));
  // No machine of this project has a hundred of them.
  const Error absent = refusal(video_, "cuda:99");
  EXPECT_EQ(absent.kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(absent.to_string(), AllOf(HasSubstr("v.mp4"), HasSubstr("hwaccel cuda:99: no such device: ")));
}

TEST_F(HwAccel, PicturesAreNotForIt) {
  EXPECT_EQ(refusal("synthetic://64x48/3", "cuda").kind(), ErrorKind::kUsage);
  EXPECT_THAT(refusal((folder_.path() / "one.png").string(), "cuda").to_string(), HasSubstr("videos and streams"));
  EXPECT_THAT(refusal(folder_.path().string(), "cuda").to_string(), HasSubstr("videos and streams"));
}

TEST_F(HwAccel, PicturesOfTheDeviceComeIntoTheHostsMemory) {
  if (!load_stand_in()) GTEST_SKIP() << "no stand-in (libffmpeg-nvenc-dev was not found), or a real driver is here";
  SourceOptions options;
  options.hwaccel = "cuda";
  auto source = open_source(video_, options);
  ASSERT_TRUE(source) << source.error().to_string();
  const Played played = play(**source);
  ASSERT_EQ(played.error, "");
  ASSERT_EQ(played.frames.size(), 8U);
  EXPECT_EQ((*source)->damaged(), 0);
  std::vector<int> decoded;  // which picture of the device each frame is: B frames are decoded out of turn
  for (size_t i = 0; i < played.frames.size(); ++i) {
    const Frame& frame = played.frames[i];
    EXPECT_EQ(frame.index, static_cast<int64_t>(i));
    EXPECT_NEAR(frame.time_s, static_cast<double>(i) / (*source)->info().fps, 1e-3);
    const AVFrame& picture = *frame.picture;
    ASSERT_EQ(picture.format, AV_PIX_FMT_NV12);
    ASSERT_EQ(picture.width, 128);
    ASSERT_EQ(picture.height, 100);
    EXPECT_EQ(picture.hw_frames_ctx, nullptr);
    const std::string pixels = raw_pixels(picture);
    const int first = static_cast<unsigned char>(pixels[0]);
    decoded.push_back((first - 16) / 5);
    for (int y = 0; y < 100; ++y) {
      for (int x = 0; x < 128; ++x) ASSERT_EQ(static_cast<unsigned char>(pixels[y * 128 + x]), first + y % 4);
    }
    for (int y = 0; y < 50; ++y) {
      for (int x = 0; x < 64; ++x) {
        ASSERT_EQ(static_cast<unsigned char>(pixels[128 * 100 + y * 128 + 2 * x]), x % 64);
        ASSERT_EQ(static_cast<unsigned char>(pixels[128 * 100 + y * 128 + 2 * x + 1]), 200);
      }
    }
  }
  EXPECT_THAT(decoded, ::testing::UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(decoded[0], 0);
  // And a network can see them.
  InputFormat format;
  format.width = 32;
  format.height = 32;
  std::vector<float> input(3 * 32 * 32);
  auto done = preprocess(played.frames[0], format, input.data());
  EXPECT_TRUE(done) << done.error().to_string();
}

TEST_F(HwAccel, AStreamThatTheDeviceDoesNotTakeIsNotDecodedElsewhere) {
  if (!load_stand_in()) GTEST_SKIP() << "no stand-in (libffmpeg-nvenc-dev was not found), or a real driver is here";
  ::setenv("FAKE_NVDEC_REFUSES", "1", 1);
  SourceOptions options;
  options.hwaccel = "cuda";
  auto source = open_source(video_, options);
  ASSERT_TRUE(source) << source.error().to_string();
  const Played played = play(**source);
  EXPECT_EQ(played.frames.size(), 0U);
  EXPECT_EQ(played.kind, ErrorKind::kUnsupported);
  EXPECT_THAT(played.error,
              AllOf(HasSubstr("v.mp4"), HasSubstr("hwaccel cuda does not decode this stream (h264, yuv420p)")));
}

TEST_F(HwAccel, WhatTheDeviceLosesIsCounted) {
  if (!load_stand_in()) GTEST_SKIP() << "no stand-in (libffmpeg-nvenc-dev was not found), or a real driver is here";
  ::setenv("FAKE_NVDEC_LOSES", "3", 1);
  SourceOptions options;
  options.hwaccel = "cuda:0";
  auto source = open_source(video_, options);
  ASSERT_TRUE(source) << source.error().to_string();
  const Played played = play(**source);
  EXPECT_EQ(played.frames.size(), 3U);
  EXPECT_EQ((*source)->damaged(), 5);
}

}  // namespace
}  // namespace strobe::media
