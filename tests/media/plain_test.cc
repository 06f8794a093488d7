// The media plugin of a build without FFmpeg, opened here beside the other one, which judges it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "base/file.h"
#include "base/plugin.h"
#include "media/backend.h"
#include "media/common/ppm.h"
#include "media/common/synthetic.h"
#include "support/picture_sampling.h"
#include "support/test_data.h"

namespace strobe::media {
namespace {

Backend& plain() {
  static Backend* const opened = [] {
    const auto create = load_plugin("libstrobe_media_plain.so", "strobe_media_create");
    if (!create) {
      ADD_FAILURE() << create.error().to_string();
      std::abort();
    }
    return reinterpret_cast<strobe_media_create_fn>(*create)();
  }();
  return *opened;
}

Frame first_of(Backend& by, const std::string& input) {
  auto source = by.open_source(input, {});
  EXPECT_TRUE(source) << source.error().to_string();
  auto frame = (*source)->next();
  EXPECT_TRUE(frame && *frame);
  return **frame;
}

std::vector<float> network_input(Backend& by, const Frame& frame, const InputFormat& format) {
  std::vector<float> values(3UL * static_cast<size_t>(format.width) * static_cast<size_t>(format.height), -9);
  EXPECT_TRUE(by.preprocess(frame, format, values.data()));
  return values;
}

TEST(PlainMedia, PreprocessesAsTheOtherPluginDoes) {
  const auto ffmpeg = backend();
  ASSERT_TRUE(ffmpeg);
  if (*ffmpeg == &plain()) GTEST_SKIP() << "this build is without FFmpeg";
  InputFormat stretched, boxed;
  stretched.width = 96, stretched.height = 64;
  boxed.width = 128, boxed.height = 160, boxed.letterbox = boxed.bgr = true;
  for (int c = 0; c < 3; ++c) boxed.mean[c] = 0.4F + 0.05F * static_cast<float>(c), boxed.deviation[c] = 0.25F;
  for (const char* input : {"synthetic://160x120/1", "synthetic://31x17/1", "synthetic://1x1/1"}) {
    for (const InputFormat& format : {stretched, boxed}) {
      const auto ours = network_input(plain(), first_of(plain(), input), format);
      const auto theirs = network_input(**ffmpeg, first_of(**ffmpeg, input), format);
      // The other one rounds the weights of rows to 1/128: less than a step of 8 bits.
      const float most = 1.0F / 255 / format.deviation[0];
      for (size_t i = 0; i < ours.size(); ++i) ASSERT_NEAR(ours[i], theirs[i], most) << input << " at " << i;
    }
  }
}

TEST(PlainMedia, SaysInNumbersWhatItDoesToPictures) {
  const auto ffmpeg = backend();
  ASSERT_TRUE(ffmpeg);
  InputFormat stretched, boxed;
  stretched.width = 96, stretched.height = 64;
  boxed.width = 128, boxed.height = 160, boxed.letterbox = boxed.bgr = true;
  boxed.mean[0] = 0.4F, boxed.deviation[2] = 0.25F;
  for (Backend* const by : {&plain(), *ffmpeg}) {
    for (const char* input : {"synthetic://160x120/1", "synthetic://31x17/1", "synthetic://1x1/1"}) {
      for (const InputFormat& format : {stretched, boxed}) {
        const Frame frame = first_of(*by, input);
        const auto bytes = by->picture_bytes(frame, format);
        ASSERT_TRUE(bytes) << bytes.error().to_string();
        const auto done = network_input(*by, frame, format), said = test::sample(*bytes);
        ASSERT_EQ(said.size(), done.size());
        for (size_t i = 0; i < done.size(); ++i) ASSERT_NEAR(said[i], done[i], 1e-5) << input << " at " << i;
        const auto again = by->picture_bytes(first_of(*by, input), format);
        ASSERT_TRUE(again);
        EXPECT_EQ(again->sampling, bytes->sampling) << "pictures alike";
      }
    }
  }
  EXPECT_FALSE(plain().picture_bytes(Frame(), stretched));
  EXPECT_FALSE(plain().picture_bytes(first_of(plain(), "synthetic://8x8/1"), InputFormat()));
}

TEST(PlainMedia, SyntheticSourcesGiveWhatTheirNameSays) {
  auto source = plain().open_source("synthetic://64x48@25/7", {});
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_EQ((*source)->info().frames, 7);
  EXPECT_EQ((*source)->info().kind, "synthetic");
  std::vector<Frame> frames;
  for (;;) {
    auto next = (*source)->next();
    ASSERT_TRUE(next);
    if (!*next) break;
    frames.push_back(std::move(**next));
  }
  ASSERT_EQ(frames.size(), 7U);
  EXPECT_DOUBLE_EQ(frames[6].time_s, 6 / 25.0);
  EXPECT_EQ(frames[6].index, 6);
  InputFormat format;
  format.width = 64, format.height = 48;
  EXPECT_NE(network_input(plain(), frames[0], format), network_input(plain(), frames[1], format)) << "nothing moves";
}

TEST(PlainMedia, WrongSyntheticSourcesAreRefused) {
  for (const char* input :
       {"synthetic://", "synthetic://64", "synthetic://0x4", "synthetic://64x48x2", "synthetic://64x48@0",
        "synthetic://64x48@x", "synthetic://64x48/0", "synthetic://64x48/1.5", "synthetic://64x48@nan",
        "synthetic://99999x2", "synthetic://4294967360x64/3", "synthetic://64x64/99999999999999999999999",
        "synthetic://64x48@1e-300/3", "synthetic://+64x+64/+2", "synthetic://64x 48/ 3", "synthetic://64x48@0x1p3",
        "synthetic://16384x16384/1"}) {
    const auto parsed = parse_synthetic(input);
    ASSERT_FALSE(parsed) << input;
    EXPECT_EQ(parsed.error().kind(), ErrorKind::kUsage);
    EXPECT_NE(parsed.error().to_string().find("synthetic://WIDTHxHEIGHT"), std::string::npos);
  }
  EXPECT_TRUE(parse_synthetic("SYNTHETIC://64x64/2"));
  const auto whole = parse_synthetic("synthetic://640x360@29.97/12");
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->width, 640);
  EXPECT_EQ(whole->height, 360);
  EXPECT_DOUBLE_EQ(whole->fps, 29.97);
  EXPECT_EQ(whole->frames, 12);
}

TEST(PlainMedia, PpmPicturesComeBack) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_file(folder / "2.ppm", "P6\n# a comment\n2 1\n255\nabcdef"));
  ASSERT_TRUE(write_file(folder / "10.ppm", "P6 2 1 255\nABCDEF"));
  ASSERT_TRUE(write_file(folder / "3.ppm", "P6 2 1 255\nABC"));
  auto source = plain().open_source(folder.path().string(), {});
  ASSERT_TRUE(source) << source.error().to_string();
  std::string seen;
  for (;;) {
    auto next = (*source)->next();
    ASSERT_TRUE(next);
    if (!*next) break;
    ASSERT_TRUE(plain().write_picture(folder / "copy.ppm", **next, {}));
    const auto bytes = read_file(folder / "copy.ppm");
    ASSERT_TRUE(bytes);
    seen += bytes->substr(bytes->size() - 6) + ";";
  }
  EXPECT_EQ(seen, "abcdef;ABCDEF;");
  EXPECT_EQ((*source)->damaged(), 1);
  const auto alone = plain().open_source((folder / "3.ppm").string(), {});
  ASSERT_FALSE(alone);
  EXPECT_EQ(alone.error().kind(), ErrorKind::kBadData);
  EXPECT_NE(alone.error().to_string().find("3.ppm: the PPM picture breaks off"), std::string::npos);
}

TEST(PlainMedia, BoxesAreDrawnOnACopy) {
  const Frame frame = first_of(plain(), "synthetic://40x30/1");
  const Annotation boxes[] = {{10, 8, 20, 10, "label", 0x102030}, {-5, -5, 400, 3, "", 0xff0000}};
  const auto drawn = plain().draw(frame, boxes);
  ASSERT_TRUE(drawn);
  InputFormat same;
  same.width = 40, same.height = 30, same.scale = 1;
  const auto before = network_input(plain(), frame, same), after = network_input(plain(), *drawn, same);
  const auto at = [](const std::vector<float>& values, size_t c, size_t x, size_t y) {
    return values[(c * 30 + y) * 40 + x];
  };
  EXPECT_EQ(at(after, 0, 10, 8), 0x10);
  EXPECT_EQ(at(after, 2, 29, 17), 0x30);
  EXPECT_EQ(at(after, 1, 15, 12), at(before, 1, 15, 12)) << "the box is filled";
  EXPECT_EQ(at(after, 0, 30, 18), at(before, 0, 30, 18));
  EXPECT_EQ(before, network_input(plain(), first_of(plain(), "synthetic://40x30/1"), same)) << "the frame was drawn on";
}

TEST(PlainMedia, WhatNeedsFfmpegSaysSoInOneLine) {
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_file(folder / "video.mp4", "x"));
  std::vector<Error> errors;
  const auto collect = [&errors](auto result) {
    ASSERT_FALSE(result);
    errors.push_back(result.error());
  };
  collect(plain().open_source((folder / "video.mp4").string(), {}));
  collect(plain().open_source(folder.path().string() + "/", {}));
  collect(plain().open_source("rtsp://camera/1", {}));
  collect(plain().make_picture_decoder());
  collect(plain().open_video_writer(folder / "out.mp4", 64, 48, {}));
  ASSERT_EQ(errors.size(), 5U);
  errors.erase(errors.begin() + 1);  // a folder without pictures is another matter
  for (const Error& error : errors) {
    EXPECT_EQ(error.kind(), ErrorKind::kUnsupported) << error.to_string();
    EXPECT_NE(error.to_string().find("needs FFmpeg"), std::string::npos) << error.to_string();
    EXPECT_EQ(error.to_string().find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace strobe::media
