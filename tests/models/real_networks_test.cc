// Real networks on real pictures, against boxes that OpenCV 4.11's DetectionModel finds with the same files.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>

#include "models/cost.h"
#include "models/model.h"
#include "models/reference_executor.h"
#include "models/yolo.h"
#include "support/test_data.h"

#ifdef STROBE_TEST_OPENCV
#include <opencv2/imgcodecs.hpp>
#include <opencv2/imgproc.hpp>
#include <opencv2/videoio.hpp>
#endif

namespace strobe::models {
namespace {

OpenOptions real_files(const std::string& network) {
  OpenOptions options;
  options.weights = test::shared_data("models/" + network + ".weights");
  return options;
}

TEST(RealNetworks, CostIsWhatTheAuthorsPrint) {
  // README of Yolo-Fastest: 0.252 BFLOPS and 0.725 BFLOPS at 320x320. Darknet counts convolutions, pools and shortcuts;
  // batch norms and activations are ours alone.
  for (const auto& [network, billions] : {std::pair{"yolo-fastest-1.1", 0.252}, {"yolo-fastest-1.1-xl", 0.725}}) {
    const auto cfg = test::shared_data(std::string("models/") + network + ".cfg");
    STROBE_REQUIRE_DATA(cfg);
    const auto graph = open_graph(cfg.string(), real_files(network));
    ASSERT_TRUE(graph) << graph.error().to_string();
    double flop = 0;
    for (LayerId id = 0; id < static_cast<LayerId>(graph->layers.size()); ++id) {
      const Operation& operation = graph->layer(id).operation;
      const bool ours_alone =
          std::holds_alternative<BatchNorm>(operation) || std::holds_alternative<Activation>(operation);
      if (!ours_alone) flop += static_cast<double>(layer_cost(*graph, id).flop);
    }
    EXPECT_NEAR(flop / 1e9, billions, 0.01 * billions) << network;
  }
}

#ifdef STROBE_TEST_OPENCV

struct ReferenceBox {
  std::string label;
  float score;
  float x, y, width, height;
};

struct Case {
  std::string network, picture;
  std::vector<ReferenceBox> boxes;
  bool complete;  // the reference lists every box above 0.3
};
void PrintTo(const Case& test, std::ostream* out) {
  *out << test.network << " on " << test.picture;
}

std::vector<float> network_input(const cv::Mat& picture, const Shape& shape) {
  cv::Mat small;
  cv::resize(picture, small, cv::Size(static_cast<int>(shape.width), static_cast<int>(shape.height)));
  std::vector<float> values;
  for (int channel = 2; channel >= 0; --channel) {  // BGR to RGB planes
    for (int y = 0; y < small.rows; ++y) {
      for (int x = 0; x < small.cols; ++x) values.push_back(small.at<cv::Vec3b>(y, x)[channel] / 255.0F);
    }
  }
  return values;
}

std::vector<Detection> detect(const Graph& graph, const cv::Mat& picture) {
  const auto values = test::run_reference(graph, network_input(picture, graph.input_shape()));
  std::vector<const float*> outputs;
  for (const LayerId id : graph.outputs) outputs.push_back(values[static_cast<size_t>(id)].data());
  const PicturePlacement whole{0,
                               0,
                               static_cast<float>(graph.input_shape().width),
                               static_cast<float>(graph.input_shape().height),
                               picture.cols,
                               picture.rows};
  const auto decoder = YoloDecoder::create(graph, {});
  return decoder->decode(outputs, whole);
}

void expect_boxes(const Graph& graph, const Case& test, const cv::Mat& picture) {
  const auto label = [&](const Detection& d) {
    return graph.labels.empty() ? std::string() : graph.labels[static_cast<size_t>(d.class_id)];
  };
  const std::vector<Detection> found = detect(graph, picture);
  std::string listing;
  for (const Detection& d : found) {
    listing += label(d) + " " + testing::PrintToString(d.score) + " " +
               testing::PrintToString(std::array{d.x, d.y, d.width, d.height}) + "\n";
  }
  if (test.complete) {
    EXPECT_EQ(found.size(), test.boxes.size()) << listing;
  }
  for (const ReferenceBox& box : test.boxes) {
    const Detection wanted{0, 0, box.x, box.y, box.width, box.height};
    const bool matched = std::any_of(found.begin(), found.end(), [&](const Detection& d) {
      return label(d) == box.label && iou(d, wanted) >= 0.9F && std::abs(d.score - box.score) <= 0.02F;
    });
    EXPECT_TRUE(matched) << box.label << " " << box.score << " not among\n" << listing;
  }
}

class ReferenceBoxes : public testing::TestWithParam<Case> {};

TEST_P(ReferenceBoxes, AreFound) {
  const Case& test = GetParam();
  const auto cfg = test::shared_data("models/" + test.network + ".cfg");
  const auto file = test::shared_data("samples/" + test.picture);
  STROBE_REQUIRE_DATA(cfg);
  STROBE_REQUIRE_DATA(file);
  const auto graph = open_graph(cfg.string(), real_files(test.network));
  ASSERT_TRUE(graph) << graph.error().to_string();
  const cv::Mat picture = cv::imread(file.string());
  ASSERT_FALSE(picture.empty());
  expect_boxes(*graph, test, picture);
}

TEST(RealNetworks, FindPeopleInAVideo) {
  const auto cfg = test::shared_data("models/yolo-fastest-1.1_body.cfg");
  const auto file = test::shared_data("video/vtest.avi");
  STROBE_REQUIRE_DATA(cfg);
  STROBE_REQUIRE_DATA(file);
  OpenOptions options = real_files("yolo-fastest-1.1_body");
  options.labels = test::shared_data("models/body.names");
  const auto graph = open_graph(cfg.string(), options);
  ASSERT_TRUE(graph) << graph.error().to_string();
  cv::VideoCapture video(file.string());
  cv::Mat picture;
  for (int frame = 0; frame <= 100; ++frame) {
    if (!video.read(picture)) GTEST_SKIP() << "OpenCV cannot decode " << file;
  }
  const Case test{"yolo-fastest-1.1_body",
                  "frame 100 of vtest.avi",
                  {{"body", 0.979F, 497, 151, 38, 65},
                   {"body", 0.976F, 588, 153, 30, 86},
                   {"body", 0.912F, 346, 197, 28, 77},
                   {"body", 0.835F, 377, 183, 32, 68},
                   {"body", 0.605F, 426, 172, 28, 82},
                   {"body", 0.386F, 219, 56, 15, 39}},
                  true};
  expect_boxes(*graph, test, picture);
}

INSTANTIATE_TEST_SUITE_P(
    OpenCv411, ReferenceBoxes,
    testing::Values(Case{"yolo-fastest-1.1-xl",
                         "dog.jpg",
                         {{"dog", 0.958F, 114, 189, 271, 347},
                          {"bicycle", 0.894F, 113, 127, 460, 370},
                          {"car", 0.841F, 450, 78, 234, 84}},
                         true},
                    Case{"yolo-fastest-1.1-xl",
                         "giraffe.jpg",
                         {{"giraffe", 0.995F, 156, 14, 270, 418}, {"zebra", 0.943F, 300, 213, 112, 224}},
                         true},
                    Case{"yolo-fastest-1.1-xl", "eagle.jpg", {{"bird", 0.993F, 144, 78, 426, 376}}, true},
                    Case{"yolo-fastest-1.1-xl",
                         "horses.jpg",
                         {{"cow", 0.878F, 439, 208, 157, 141},
                          {"horse", 0.820F, 31, 190, 292, 205},
                          {"horse", 0.615F, 240, 171, 179, 201},
                          {"horse", 0.475F, 2, 194, 137, 88},
                          {"cow", 0.458F, 273, 178, 168, 184},
                          {"horse", 0.306F, 33, 180, 123, 70}},
                         true},
                    Case{"yolo-fastest-1.1",
                         "dog.jpg",
                         {{"car", 0.897F, 454, 77, 230, 103},
                          {"dog", 0.654F, 123, 220, 242, 294},
                          {"cat", 0.567F, 113, 212, 256, 304},
                          {"bicycle", 0.529F, 243, 187, 346, 234},
                          {"car", 0.444F, 690, 117, 38, 37}},
                         false},
                    Case{"yolo-fastest-1.1",
                         "giraffe.jpg",
                         {{"giraffe", 0.948F, 162, 0, 253, 453},
                          {"zebra", 0.928F, 311, 213, 101, 225},
                          {"zebra", 0.558F, 255, 288, 55, 141}},
                         true},
                    Case{"yolo-fastest-1.1", "eagle.jpg", {{"bird", 0.876F, 223, 87, 364, 356}}, true}));

#endif

}  // namespace
}  // namespace strobe::models
