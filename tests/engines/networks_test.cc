// Whole networks: real weights on a real picture, and the engines against each other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engines/engine_case.h"
#include "engines/loader.h"
#include "models/detection.h"
#include "models/model.h"
#include "models/yolo.h"
#include "support/test_data.h"

#ifdef STROBE_TEST_OPENCV
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#endif

namespace strobe::engines {
namespace {

using test::GraphPtr;
using test::Values;

class Networks : public test::EachEngine {};

TEST(EachOther, EnginesAgreeOnYolov4Tiny) {
  auto opened = models::open_graph("yolov4-tiny", {});
  ASSERT_TRUE(opened) << opened.error().to_string();
  const auto graph = std::make_shared<const models::Graph>(*std::move(opened));
  auto input = test::random_values(graph->input_shape().elements(), 11);
  for (float& value : input) value = (value + 1) / 2;
  std::string first;
  std::vector<Values> expected;
  for (const auto& spec : test::engine_specs()) {
    const auto engine = open_engine(spec);
    if (!engine) continue;
    const auto network = (*engine)->load(graph, {});
    ASSERT_TRUE(network) << network.error().to_string();
    auto outputs = test::run_once(**network, input);
    ASSERT_TRUE(outputs) << outputs.error().to_string();
    if (first.empty()) {
      first = spec;
      expected = *std::move(outputs);
      continue;
    }
    const double found = test::difference(*outputs, expected);
    EXPECT_LE(found, 1e-4) << spec << " against " << first;
    std::string name = spec + "_against_" + first;
    for (char& c : name) c = c == ':' ? '_' : c;
    RecordProperty(name, std::to_string(found * 1e6) + "e-6");
  }
  if (first.empty()) GTEST_SKIP() << "no engine is built";
}

#ifdef STROBE_TEST_OPENCV

struct Box {
  std::string label;
  float score;
  float x, y, width, height;
};

Values network_input(const cv::Mat& picture, const models::Shape& shape) {
  cv::Mat small;
  cv::resize(picture, small, cv::Size(static_cast<int>(shape.width), static_cast<int>(shape.height)));
  Values values;
  for (int channel = 2; channel >= 0; --channel) {  // BGR to RGB planes
    for (int y = 0; y < small.rows; ++y) {
      for (int x = 0; x < small.cols; ++x) values.push_back(small.at<cv::Vec3b>(y, x)[channel] / 255.0F);
    }
  }
  return values;
}

// The pictures go through the network as one batch. Boxes: the data's README, found by OpenCV 4.11's DetectionModel.
TEST_P(Networks, FindTheObjectsOnRealPictures) {
  const std::map<std::string, std::vector<Box>> known = {
      {"dog.jpg",
       {{"dog", 0.958F, 114, 189, 271, 347},
        {"bicycle", 0.894F, 113, 127, 460, 370},
        {"car", 0.841F, 450, 78, 234, 84}}},
      {"giraffe.jpg", {{"giraffe", 0.995F, 156, 14, 270, 418}, {"zebra", 0.943F, 300, 213, 112, 224}}},
      {"eagle.jpg", {{"bird", 0.993F, 144, 78, 426, 376}}}};
  const auto cfg = test::shared_data("models/yolo-fastest-1.1-xl.cfg");
  STROBE_REQUIRE_DATA(cfg);
  auto opened = models::open_graph(cfg.string(), {.weights = test::shared_data("models/yolo-fastest-1.1-xl.weights")});
  ASSERT_TRUE(opened) << opened.error().to_string();
  const auto graph = std::make_shared<const models::Graph>(*std::move(opened));
  Values input;
  std::vector<cv::Mat> pictures;
  for (const auto& [name, boxes] : known) {
    const auto file = test::shared_data("samples/" + name);
    STROBE_REQUIRE_DATA(file);
    pictures.push_back(cv::imread(file.string()));
    ASSERT_FALSE(pictures.back().empty()) << file;
    const auto values = network_input(pictures.back(), graph->input_shape());
    input.insert(input.end(), values.begin(), values.end());
  }
  const auto network = engine().load(graph, {.batch = static_cast<int64_t>(pictures.size())});
  ASSERT_TRUE(network) << network.error().to_string();
  const auto outputs = test::run_once(**network, input);
  ASSERT_TRUE(outputs) << outputs.error().to_string();
  const double found = test::difference(*outputs, test::reference_outputs(*graph, input));
  EXPECT_LE(found, 1e-4);
  RecordProperty("largest_difference", std::to_string(found * 1e6) + "e-6");

  const auto decoder = models::YoloDecoder::create(*graph, {});
  ASSERT_TRUE(decoder);
  size_t item = 0;
  for (const auto& [name, boxes] : known) {
    SCOPED_TRACE(name);
    std::vector<const float*> heads;
    for (const auto& output : *outputs) heads.push_back(output.data() + item * (output.size() / pictures.size()));
    const auto& shape = graph->input_shape();
    const auto detections =
        decoder->decode(heads, {0, 0, static_cast<float>(shape.width), static_cast<float>(shape.height),
                                pictures[item].cols, pictures[item].rows});
    ++item;
    EXPECT_EQ(detections.size(), boxes.size());
    for (const Box& box : boxes) {
      const models::Detection wanted{0, 0, box.x, box.y, box.width, box.height};
      const bool matched = std::any_of(detections.begin(), detections.end(), [&](const models::Detection& one) {
        return graph->labels[static_cast<size_t>(one.class_id)] == box.label && models::iou(one, wanted) >= 0.9F &&
               std::abs(one.score - box.score) <= 0.02F;
      });
      EXPECT_TRUE(matched) << box.label << " " << box.score;
    }
  }
}
STROBE_FOR_EACH_ENGINE(Networks);

#endif

}  // namespace
}  // namespace strobe::engines
