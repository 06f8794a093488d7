// Preprocessing as an ONNX network, run by ONNX Runtime, against media::preprocess; what is smoothed before, against
// FFmpeg's filter. TensorRT for RTX has the parser of TensorRT and compiles without a GPU.
#include "engines/tensorrt/prep_onnx.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/file.h"
#include "engines/onnx_file.h"
#include "media/filter.h"
#include "media/media_test.h"
#include "media/preprocess.h"

namespace strobe::engines::tensorrt_plugin {
namespace {

using media::Frame;
using media::InputFormat;

int noise(int c, int x, int y) {
  return (37 * x + 59 * y + 83 * c + 11 * x * y) % 256;
}

// Pictures with what is expected of them, in a folder as the scripts see it.
class Folder {
 public:
  void add(const std::string& name, const Frame& frame, const InputFormat& format, double sigma, const Frame& judge) {
    const auto picture = media::picture_bytes(frame, format);
    ASSERT_TRUE(picture) << picture.error().to_string();
    const std::string onnx = write_prep_onnx(*picture->sampling, sigma);
    EXPECT_EQ(onnx, write_prep_onnx(*picture->sampling, sigma));
    test::write_bytes(folder_ / (name + ".onnx"), onnx);
    for (size_t p = 0; p < picture->planes.size(); ++p) {
      std::string bytes;
      const PictureSampling::Plane& plane = picture->sampling->planes[p];
      for (int64_t row = 0; row < plane.rows; ++row)
        bytes.append(reinterpret_cast<const char*>(picture->planes[p].data) + row * picture->planes[p].stride,
                     static_cast<size_t>(plane.bytes));
      test::write_bytes(folder_ / (name + "." + kPrepPlane + std::to_string(p)), bytes);
    }
    std::vector<float> wanted(static_cast<size_t>(3 * format.width * format.height), -99);
    const auto done = media::preprocess(judge, format, wanted.data());
    ASSERT_TRUE(done) << done.error().to_string();
    wanted_.emplace_back(name, std::move(wanted));
  }
  void add(const std::string& name, const Frame& frame, const InputFormat& format) {
    add(name, frame, format, 0, frame);
  }

  std::string run(const std::string& modules, const std::string& script) const {
    if (!calls("-c 'import " + modules + "'")) return "no module";
    const bool done = calls(script + " " + folder_.path().string());
    const auto log = read_file(folder_ / "log");
    return (done ? "" : "failed: ") + log.value_or(std::string());
  }
  const std::vector<std::pair<std::string, std::vector<float>>>& wanted() const { return wanted_; }
  std::vector<float> found(const std::string& name) const {
    const auto bytes = read_file(folder_ / (name + ".out"));
    EXPECT_TRUE(bytes) << name;
    std::vector<float> values(bytes ? bytes->size() / sizeof(float) : 0);
    if (bytes) std::memcpy(values.data(), bytes->data(), values.size() * sizeof(float));
    return values;
  }

 private:
  bool calls(const std::string& words) const {
    const std::string python = STROBE_TEST_PYTHON;
    const std::string line = python + " " + words + " > " + (folder_ / "log").string() + " 2>&1";
    return !python.empty() && std::system(line.c_str()) == 0;
  }
  test::ScratchFolder folder_;
  std::vector<std::pair<std::string, std::vector<float>>> wanted_;
};

#define STROBE_RUN_PREP(folder)                                                                    \
  const std::string ran = (folder).run("onnx, onnxruntime", STROBE_TEST_PREP_REFERENCE);           \
  if (ran == "no module") GTEST_SKIP() << "the build's Python cannot import onnx and onnxruntime"; \
  ASSERT_EQ(ran, "")

void add_every_format(Folder& folder) {
  for (const AVPixelFormat format : {AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUV444P,
                                     AV_PIX_FMT_NV12, AV_PIX_FMT_NV21, AV_PIX_FMT_YUYV422, AV_PIX_FMT_RGB24,
                                     AV_PIX_FMT_BGR24, AV_PIX_FMT_RGBA, AV_PIX_FMT_GBRP, AV_PIX_FMT_GRAY8}) {
    const std::string name = av_get_pix_fmt_name(format);
    const Frame frame = media::make_test_frame(format, 61, 47, noise);
    for (const bool letterbox : {false, true}) {
      InputFormat input{.width = 40, .height = 56, .letterbox = letterbox, .bgr = letterbox};
      folder.add(name + (letterbox ? "-placed" : "-stretched"), frame, input);
      input.mean[0] = 0.485F;
      input.deviation[2] = 0.225F;
      folder.add(name + (letterbox ? "-placed-scaled" : "-stretched-scaled"), frame, input);
    }
  }
  for (const auto& [width, height] : {std::pair{1, 1}, {1, 40}, {40, 1}, {8, 6}, {300, 20}})
    for (const bool letterbox : {false, true})
      folder.add(std::to_string(width) + "x" + std::to_string(height) + (letterbox ? "-placed" : "-stretched"),
                 media::pattern_frame(1, width, height), {.width = 32, .height = 16, .letterbox = letterbox});
}

TEST(PrepOnnx, SamplesEveryFormatAsTheCpuDoes) {
  Folder folder;
  add_every_format(folder);
  STROBE_RUN_PREP(folder);
  for (const auto& [name, wanted] : folder.wanted()) {
    SCOPED_TRACE(name);
    const auto found = folder.found(name);
    ASSERT_EQ(found.size(), wanted.size());
    float largest = 0;
    for (size_t i = 0; i < wanted.size(); ++i) largest = std::max(largest, std::abs(found[i] - wanted[i]));
    EXPECT_LT(largest, name.ends_with("scaled") ? 1e-5F : 2e-6F);
  }
}

// FFmpeg's filter rounds to whole values, too: where both are near a half they may differ by one.
TEST(PrepOnnx, SmoothsAsTheLevelMedium) {
  auto filter = media::open_filter(std::string(media::filter_of(media::PrepLevel::kMedium)));
  if (!filter) GTEST_SKIP() << filter.error().to_string();
  const auto sigma = media::smoothing_of(media::PrepLevel::kMedium);
  ASSERT_TRUE(sigma);
  Folder folder, plain;
  for (const AVPixelFormat format : {AV_PIX_FMT_YUV420P, AV_PIX_FMT_NV12, AV_PIX_FMT_RGB24, AV_PIX_FMT_GRAY8}) {
    const Frame frame = media::make_test_frame(format, 64, 48, noise);
    const auto filtered = (*filter)->apply(frame);
    ASSERT_TRUE(filtered) << filtered.error().to_string();
    folder.add(av_get_pix_fmt_name(format), frame, {.width = 64, .height = 48}, *sigma, *filtered);
    plain.add(av_get_pix_fmt_name(format), frame, {.width = 64, .height = 48});
  }
  STROBE_RUN_PREP(folder);
  constexpr float kOneStep = 1.0F / 255;
  for (size_t f = 0; f < folder.wanted().size(); ++f) {
    const auto& [name, wanted] = folder.wanted()[f];
    SCOPED_TRACE(name);
    const auto found = folder.found(name);
    ASSERT_EQ(found.size(), wanted.size());
    size_t differ = 0;
    float change = 0;
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_LT(std::abs(found[i] - wanted[i]), 3.6F * kOneStep);  // one step of luma and one of chroma
      differ += std::abs(found[i] - wanted[i]) > 2e-5F ? 1 : 0;
      change = std::max(change, std::abs(wanted[i] - plain.wanted()[f].second[i]));
    }
    EXPECT_LT(static_cast<double>(differ), 0.002 * static_cast<double>(wanted.size()));
    EXPECT_GT(change, 2 * kOneStep) << "the filter changes the picture";
  }
}

TEST(PrepOnnx, TensorrtForRtxTakesIt) {
  Folder folder;
  add_every_format(folder);
  const Frame frame = media::make_test_frame(AV_PIX_FMT_NV12, 64, 48, noise);
  folder.add("smooth", frame, {.width = 64, .height = 48}, 0.8, frame);
  const std::string said = folder.run("tensorrt_rtx", STROBE_TEST_TENSORRT_REFERENCE);
  if (said == "no module") GTEST_SKIP() << "the build's Python cannot import tensorrt_rtx";
  EXPECT_EQ(said, std::to_string(folder.wanted().size()) + " built\n");
}

}  // namespace
}  // namespace strobe::engines::tensorrt_plugin
