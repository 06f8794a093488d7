#include "media/filter.h"

#include <gmock/gmock.h>

#include <string_view>

#include "media/media_test.h"

namespace strobe::media {
namespace {

using testing::HasSubstr;

Frame dot(AVPixelFormat format) {
  return make_test_frame(
      format, 64, 48, [](int c, int x, int y) { return c == 0 ? (x == 32 && y == 24 ? 255 : 16) : 128; }, 7);
}

int luma(const Frame& frame, int x, int y) {
  return frame.picture->data[0][y * frame.picture->linesize[0] + x];
}

TEST(Filter, LevelsChangeThePictureAndNothingElse) {
  const Frame frame = dot(AV_PIX_FMT_YUV420P);
  EXPECT_EQ(filter_of(PrepLevel::kSimple), "");
  for (const PrepLevel level : {PrepLevel::kMedium, PrepLevel::kComplex}) {
    auto filter = open_filter(std::string(filter_of(level)));
    ASSERT_TRUE(filter) << filter.error().to_string();
    for (int round = 0; round < 3; ++round) {
      const auto filtered = (*filter)->apply(frame);
      ASSERT_TRUE(filtered) << filtered.error().to_string();
      EXPECT_EQ(filtered->index, 7);
      EXPECT_EQ(filtered->width, 64);
      EXPECT_EQ(filtered->height, 48);
      EXPECT_EQ(filtered->picture->format, AV_PIX_FMT_YUV420P);
      EXPECT_NE(filtered->picture->data[0], frame.picture->data[0]);
    }
  }
  EXPECT_EQ(luma(frame, 32, 24), 255);  // the source's own picture stays as it was
  EXPECT_EQ(luma(frame, 33, 24), 16);
}

TEST(Filter, ABlurSpreadsADot) {
  const Frame frame = dot(AV_PIX_FMT_YUV420P);
  auto filter = open_filter("gblur=sigma=1");
  ASSERT_TRUE(filter) << filter.error().to_string();
  const auto filtered = (*filter)->apply(frame);
  ASSERT_TRUE(filtered) << filtered.error().to_string();
  EXPECT_LT(luma(*filtered, 32, 24), 120);
  EXPECT_GT(luma(*filtered, 33, 24), 20);
  EXPECT_EQ(luma(*filtered, 33, 24), luma(*filtered, 31, 24));
}

TEST(Filter, FollowsSizeAndFormatOfThePictures) {
  auto filter = open_filter("hue=s=1.2");
  ASSERT_TRUE(filter) << filter.error().to_string();
  for (const AVPixelFormat format : {AV_PIX_FMT_YUV420P, AV_PIX_FMT_RGB24, AV_PIX_FMT_YUVJ420P}) {
    const auto filtered = (*filter)->apply(dot(format));
    ASSERT_TRUE(filtered) << filtered.error().to_string();
    EXPECT_EQ(filtered->picture->format, format);
  }
}

TEST(Filter, WhatIsNoFilterIsRefusedBeforeAnyPicture) {
  for (const char* text : {"nosuchfilter", "gblur=nosuchoption=1", "gblur=sigma=many", "gblur,", "split", "overlay"}) {
    constexpr unsigned kTakesACommaAtTheEnd = 59;  // libavutil of FFmpeg 7
    if (std::string_view(text) == "gblur," && avutil_version() >> 16 >= kTakesACommaAtTheEnd) continue;
    const auto filter = open_filter(text);
    ASSERT_FALSE(filter) << text;
    EXPECT_THAT(filter.error().to_string(), HasSubstr(std::string("filter '") + text + "'"));
    EXPECT_EQ(filter.error().to_string().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace strobe::media
