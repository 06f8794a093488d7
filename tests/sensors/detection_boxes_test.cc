#include "sensors/detection_boxes.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <numbers>

#include "support/test_data.h"

namespace strobe::sensors {
namespace {

DetectionBox box_of(std::string text, double& z, int64_t& points, std::string& fault) {
  text += std::string(16, '\0');  // what a cursor wants behind its text
  std::deque<std::string> unescaped;
  JsonCursor in(std::string_view(text).substr(0, text.size() - 16), unescaped);
  DetectionBox box;
  read_detection_box(in, "t", box, z, points);
  fault = in.ok() ? "" : in.status().error().message();
  return box;
}

// Real boxes as pPerf writes them, against another JSON reader.
TEST(DetectionBoxes, ReadsPperfsPredictions) {
  const auto path = test::shared_data("pperf/lidar_pred_excerpt.json");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "the shared data are absent";
  std::ifstream file(path);
  const auto whole = nlohmann::json::parse(file);
  size_t boxes = 0;
  for (const auto& [token, list] : whole.at("results").items()) {
    for (nlohmann::json one : list) {
      EXPECT_EQ(one["sample_token"], token);
      one["sample_token"] = "t";
      double z = 0;
      int64_t points = -1;
      std::string fault;
      const DetectionBox box = box_of(one.dump(), z, points, fault);
      ASSERT_EQ(fault, "");
      EXPECT_EQ(box.x, one["translation"][0]);
      EXPECT_EQ(box.y, one["translation"][1]);
      EXPECT_EQ(z, one["translation"][2]);
      EXPECT_EQ(box.width, one["size"][0]);
      EXPECT_EQ(box.length, one["size"][1]);
      EXPECT_EQ(box.vx, one["velocity"][0]);
      EXPECT_EQ(box.score, one["detection_score"]);
      EXPECT_EQ(kDetectionClassTable[box.cls].name, one["detection_name"].get<std::string>());
      EXPECT_EQ(box.attribute, detection_attribute_of(""));
      EXPECT_EQ(points, -1);
      // The two other parts are small: the sweep lies nearly level.
      const double w = one["rotation"][0], turned = one["rotation"][3];
      EXPECT_NEAR(std::remainder(box.yaw - 2 * std::atan2(turned, w), 2 * std::numbers::pi), 0, 0.01);
      ++boxes;
    }
  }
  EXPECT_EQ(boxes, 3U);
}

TEST(DetectionBoxes, SaysWhatABoxLacks) {
  double z = 0;
  int64_t points = -1;
  std::string fault;
  box_of(R"({"sample_token":"t","translation":[1,2,3],"size":[1,2,3],"rotation":[1,0,0,0],"velocity":[0,0],)"
         R"("detection_name":"car","detection_score":0.5})",
         z, points, fault);
  EXPECT_NE(fault.find("attribute_name"), std::string::npos) << fault;
  box_of(R"({"sample_token":"t","detection_name":"cat"})", z, points, fault);
  EXPECT_NE(fault.find("cat"), std::string::npos) << fault;
}

// Ranges by class, boxes without points, cycles in racks: in this order.
TEST(DetectionBoxes, FiltersInOrder) {
  const DetectionPlace place{100, 50, {{{{110, 50, 1}, {}}, 4, 4, 2}}};
  FilterCounts counts;
  DetectionBox box;
  box.cls = static_cast<uint8_t>(detection_class_of("vehicle.bicycle"));
  box.y = 50;
  box.x = 141;  // a bicycle counts to 40 m
  EXPECT_FALSE(passes_filters(box, 1, 5, place, counts));
  box.x = 139;
  EXPECT_FALSE(passes_filters(box, 1, 0, place, counts));
  EXPECT_TRUE(passes_filters(box, 1, -1, place, counts));  // not told
  box.x = 110;
  EXPECT_FALSE(passes_filters(box, 1, 5, place, counts));
  box.cls = static_cast<uint8_t>(detection_class_of("vehicle.car"));
  EXPECT_TRUE(passes_filters(box, 1, 5, place, counts));
  EXPECT_EQ(counts.boxes, 5U);
  EXPECT_EQ(counts.in_range, 4U);
  EXPECT_EQ(counts.with_points, 3U);
  EXPECT_EQ(counts.kept, 2U);
}

}  // namespace
}  // namespace strobe::sensors
