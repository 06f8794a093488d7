// Pictures sampled by ATen, on the CPU and on a double of a GPU, against media::preprocess; what is smoothed before,
// against FFmpeg's filter.
#include "engines/torch/preprocess.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "device_double.h"
#include "media/filter.h"
#include "media/media_test.h"
#include "media/preprocess.h"

namespace strobe::engines::torch_plugin {
namespace {

using media::Frame;
using media::InputFormat;
using test::gpu;

const c10::Device kCpu(c10::DeviceType::CPU);

TensorInfo input_of(int64_t batch, const InputFormat& format) {
  return {"input", {batch, 3, format.height, format.width}};
}

// What a session would see, one item after the other.
std::vector<float> values_of(const DeviceInput& input, c10::Device device) {
  Lane session(device, 0);
  const auto stream = session.guard();
  const at::Tensor seen = static_cast<const TorchInput&>(input).seen_by(session);
  std::vector<float> values(static_cast<size_t>(seen.numel()));
  const std::vector<float*> outputs = {values.data()};
  session.fetch(std::vector{seen}, outputs, {{"seen", seen.sizes().vec()}});
  return values;
}

std::vector<float> sampled(const Frame& frame, const InputFormat& format, c10::Device device, double sigma = 0) {
  const auto preprocessor = make_preprocessor(input_of(1, format), device, {.smoothing_sigma = sigma});
  EXPECT_TRUE(preprocessor) << preprocessor.error().to_string();
  const auto input = (*preprocessor)->create_input();
  EXPECT_TRUE(input) << input.error().to_string();
  const auto picture = media::picture_bytes(frame, format);
  EXPECT_TRUE(picture) << picture.error().to_string();
  const auto put = (*preprocessor)->put(*picture, 0, **input);
  EXPECT_TRUE(put) << put.error().to_string();
  return values_of(**input, device);
}

std::vector<float> expected(const Frame& frame, const InputFormat& format) {
  std::vector<float> values(static_cast<size_t>(3 * format.width * format.height), -99);
  const auto done = media::preprocess(frame, format, values.data());
  EXPECT_TRUE(done) << done.error().to_string();
  return values;
}

float largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  EXPECT_EQ(a.size(), b.size());
  float largest = 0;
  for (size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(a[i] - b[i]));
  return largest;
}

// Of values of 0 to 1: the same formula in another order.
constexpr float kTolerance = 2e-6F;
constexpr float kOneStep = 1.0F / 255;

class Preprocess : public testing::TestWithParam<bool> {
 protected:
  void SetUp() override { test::reset_double(); }
  c10::Device device() const { return GetParam() ? test::kDouble : kCpu; }
};

TEST_P(Preprocess, EveryFormatIsSampledAsOnTheCpu) {
  for (const AVPixelFormat format : {AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUV444P,
                                     AV_PIX_FMT_NV12, AV_PIX_FMT_NV21, AV_PIX_FMT_YUYV422, AV_PIX_FMT_RGB24,
                                     AV_PIX_FMT_BGR24, AV_PIX_FMT_RGBA, AV_PIX_FMT_GBRP, AV_PIX_FMT_GRAY8}) {
    SCOPED_TRACE(av_get_pix_fmt_name(format));
    const Frame frame = media::make_test_frame(
        format, 61, 47, [](int c, int x, int y) { return (37 * x + 59 * y + 83 * c + 11 * x * y) % 256; });
    for (const bool letterbox : {false, true}) {
      InputFormat input{.width = 40, .height = 56, .letterbox = letterbox, .bgr = letterbox};
      EXPECT_LT(largest_difference(sampled(frame, input, device()), expected(frame, input)), kTolerance);
      input.mean[0] = 0.485F;
      input.deviation[2] = 0.225F;
      EXPECT_LT(largest_difference(sampled(frame, input, device()), expected(frame, input)), 5 * kTolerance);
    }
  }
}

TEST_P(Preprocess, LargerSmallerAndTinyPictures) {
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 40}, {40, 1}, {8, 6}, {300, 20}}) {
    SCOPED_TRACE(std::to_string(width) + " x " + std::to_string(height));
    const Frame frame = media::pattern_frame(1, width, height);
    for (const bool letterbox : {false, true}) {
      const InputFormat input{.width = 32, .height = 16, .letterbox = letterbox};
      EXPECT_LT(largest_difference(sampled(frame, input, device()), expected(frame, input)), kTolerance);
    }
  }
}

TEST_P(Preprocess, RealPicturesAndVideos) {
  for (const char* name : {"samples/dog.jpg", "video/test-lowres.mp4"}) {
    const auto path = strobe::test::shared_data(name);
    STROBE_REQUIRE_DATA(path);
    auto source = media::open_source(path.string(), {});
    ASSERT_TRUE(source) << source.error().to_string();
    const auto frame = (*source)->next();
    ASSERT_TRUE(frame && *frame);
    for (const bool letterbox : {false, true}) {
      const InputFormat input{.width = 416, .height = 416, .letterbox = letterbox};
      EXPECT_LT(largest_difference(sampled(**frame, input, device()), expected(**frame, input)), kTolerance);
    }
  }
}

// FFmpeg's filter rounds to whole values, too: where both are near a half they may differ by one.
TEST_P(Preprocess, SmoothsAsTheLevelMedium) {
  auto filter = media::open_filter(std::string(media::filter_of(media::PrepLevel::kMedium)));
  if (!filter) GTEST_SKIP() << filter.error().to_string();
  const auto sigma = media::smoothing_of(media::PrepLevel::kMedium);
  ASSERT_TRUE(sigma);
  std::vector<Frame> frames;
  for (const AVPixelFormat format : {AV_PIX_FMT_YUV420P, AV_PIX_FMT_NV12, AV_PIX_FMT_RGB24, AV_PIX_FMT_GRAY8})
    frames.push_back(media::make_test_frame(
        format, 64, 48, [](int c, int x, int y) { return (37 * x + 59 * y + 83 * c + 11 * x * y) % 256; }));
  if (const auto dog = strobe::test::shared_data("samples/dog.jpg"); std::filesystem::exists(dog)) {
    auto source = media::open_source(dog.string(), {});
    ASSERT_TRUE(source);
    frames.push_back(**(*source)->next());
  }
  for (const Frame& frame : frames) {
    SCOPED_TRACE(av_get_pix_fmt_name(static_cast<AVPixelFormat>(frame.picture->format)));
    const InputFormat input{.width = frame.width, .height = frame.height};
    const auto filtered = (*filter)->apply(frame);
    ASSERT_TRUE(filtered) << filtered.error().to_string();
    const auto wanted = expected(*filtered, input), found = sampled(frame, input, device(), *sigma);
    // One step of luma and one of chroma, as they come into a colour.
    EXPECT_LT(largest_difference(found, wanted), 3.6F * kOneStep);
    const auto off = [&](size_t i) { return std::abs(found[i] - wanted[i]) > 10 * kTolerance; };
    size_t differ = 0;
    for (size_t i = 0; i < wanted.size(); ++i) differ += off(i) ? 1 : 0;
    EXPECT_LT(static_cast<double>(differ), 0.002 * static_cast<double>(wanted.size()));
    EXPECT_GT(largest_difference(expected(frame, input), wanted), 2 * kOneStep) << "the filter changes the picture";
  }
}

TEST_P(Preprocess, ABatchHasItsPicturesInTheirPlaces) {
  const InputFormat format{.width = 24, .height = 24, .letterbox = true};
  const auto preprocessor = make_preprocessor(input_of(3, format), device(), {});
  ASSERT_TRUE(preprocessor);
  const auto first = (*preprocessor)->create_input(), second = (*preprocessor)->create_input();
  ASSERT_TRUE(first && second);
  std::vector<float> wanted;
  for (int i = 0; i < 3; ++i) {
    for (const auto& input : {&*first, &*second}) {  // sizes differ, and more pictures than places to leave from
      const Frame frame = media::pattern_frame(i + (input == &*second ? 9 : 0), 40 + i, 30);
      const auto picture = media::picture_bytes(frame, format);
      ASSERT_TRUE(picture && (*preprocessor)->put(*picture, i, **input));
      if (input == &*second) {
        const auto one = expected(frame, format);
        wanted.insert(wanted.end(), one.begin(), one.end());
      }
    }
  }
  EXPECT_LT(largest_difference(values_of(**second, device()), wanted), kTolerance);
}

TEST_P(Preprocess, RefusesWhatIsNotItsOwn) {
  const InputFormat format{.width = 24, .height = 24};
  const auto preprocessor = make_preprocessor(input_of(2, format), device(), {}),
             other = make_preprocessor(input_of(3, format), device(), {});
  ASSERT_TRUE(preprocessor && other);
  const auto input = (*other)->create_input(), own = (*preprocessor)->create_input();
  const auto picture = media::picture_bytes(media::pattern_frame(0, 8, 8), format);
  ASSERT_TRUE(input && own && picture);
  EXPECT_FALSE((*preprocessor)->put(*picture, 0, **input));
  EXPECT_FALSE((*preprocessor)->put(*picture, 2, **own));
  EXPECT_FALSE(make_preprocessor({"input", {1, 4, 8, 8}}, device(), {}));
  const Ends ends{{input_of(2, format)}, {}};
  EXPECT_TRUE(own_input(**own, ends, device(), {}));
  EXPECT_FALSE(own_input(**input, ends, device(), {}));
}

INSTANTIATE_TEST_SUITE_P(Devices, Preprocess, testing::Bool(),
                         [](const auto& of) { return std::string(of.param ? "Double" : "Cpu"); });

class PreprocessDouble : public testing::Test {
 protected:
  void SetUp() override { test::reset_double(); }
};

TEST_F(PreprocessDouble, PuttingDoesNotWaitAndASessionWaitsForIt) {
  const InputFormat format{.width = 24, .height = 24};
  const auto preprocessor = make_preprocessor(input_of(1, format), test::kDouble, {});
  ASSERT_TRUE(preprocessor);
  const auto input = (*preprocessor)->create_input();
  ASSERT_TRUE(input);
  std::vector<float> wanted;
  {
    const Frame frame = media::pattern_frame(4, 40, 30);
    wanted = expected(frame, format);
    const auto picture = media::picture_bytes(frame, format);
    ASSERT_TRUE(picture);
    gpu().unpinned = 0;
    for (auto& [id, stream] : gpu().streams) stream.waits = 0;
    ASSERT_TRUE((*preprocessor)->put(*picture, 0, **input));
  }  // the picture may go
  for (const auto& [id, stream] : gpu().streams) EXPECT_EQ(stream.waits, 0) << "stream " << id;
  EXPECT_EQ(gpu().unpinned, 0);
  EXPECT_EQ(gpu().streams[0].given, 0);
  EXPECT_EQ(gpu().current, 0);
  EXPECT_LT(largest_difference(values_of(**input, test::kDouble), wanted), kTolerance);
}

TEST_F(PreprocessDouble, IsAFewPicturesAheadOfTheDeviceAtMost) {
  const InputFormat format{.width = 24, .height = 24};
  const auto preprocessor = make_preprocessor(input_of(1, format), test::kDouble, {});
  const auto input = (*preprocessor)->create_input();
  const auto picture = media::picture_bytes(media::pattern_frame(4, 40, 30), format);
  ASSERT_TRUE(preprocessor && input && picture);
  for (int i = 0; i < 4; ++i) ASSERT_TRUE((*preprocessor)->put(*picture, 0, **input));
  EXPECT_EQ(gpu().streams[1].waits, 0);
  ASSERT_TRUE((*preprocessor)->put(*picture, 0, **input));
  EXPECT_EQ(gpu().streams[1].waits, 1);
}

TEST_F(PreprocessDouble, AFullDeviceIsOneLine) {
  const InputFormat format{.width = 24, .height = 24};
  const auto preprocessor = make_preprocessor(input_of(1, format), test::kDouble, {});
  ASSERT_TRUE(preprocessor);
  gpu().largest = 64;
  const auto input = (*preprocessor)->create_input();
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().kind(), ErrorKind::kUnsupported);
}

}  // namespace
}  // namespace strobe::engines::torch_plugin
