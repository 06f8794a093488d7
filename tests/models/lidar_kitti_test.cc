#include "models/lidar_kitti.h"

#include <gmock/gmock.h>

#include <cstring>
#include <numbers>

#include "base/file.h"
#include "support/test_data.h"

namespace strobe::models {
namespace {

using testing::HasSubstr;

constexpr const char* kLine = "Car 0.43 1 -0.71 1137.36 137.54 1223.00 177.88 1.55 1.81 4.39 24.40 -0.13 28.60 -0.01\n";
// A camera that looks along the LiDAR's x, 0.3 m before it and 0.1 m below.
constexpr const char* kCalibration =
    "P2: 700 0 600 0 0 700 180 0 0 0 1 0\nR0_rect: 1 0 0 0 1 0 0 0 1\n"
    "Tr_velo_to_cam: 0 -1 0 0 0 0 -1 -0.1 1 0 0 -0.3\n";

TEST(Kitti, ReadsALabel) {
  const auto labels =
      parse_kitti_labels(std::string(kLine) + "\r\n" + "DontCare -1 -1 -10 1 2 3 4 -1 -1 -1 -1000 -1000 -1000 -10 0.5");
  ASSERT_TRUE(labels) << labels.error().to_string();
  ASSERT_EQ(labels->size(), 2U);
  const KittiLabel& car = labels->front();
  EXPECT_EQ(car.type, "Car");
  EXPECT_FLOAT_EQ(car.truncated, 0.43F);
  EXPECT_EQ(car.occluded, 1);
  EXPECT_FLOAT_EQ(car.box[2], 1223);
  EXPECT_FLOAT_EQ(car.height, 1.55F);
  EXPECT_FLOAT_EQ(car.length, 4.39F);
  EXPECT_FLOAT_EQ(car.z, 28.6F);
  EXPECT_FLOAT_EQ(car.rotation_y, -0.01F);
  EXPECT_FLOAT_EQ((*labels)[1].score, 0.5F);
}

TEST(Kitti, BoxesInTheFrameOfTheLidar) {
  const auto calibration = parse_kitti_calibration(kCalibration);
  ASSERT_TRUE(calibration) << calibration.error().to_string();
  KittiLabel label;
  label.height = 2;
  label.width = 1;
  label.length = 4;
  label.x = 3;   // right
  label.y = 1;   // down, of the bottom
  label.z = 10;  // ahead
  const float pi = std::numbers::pi_v<float>;
  for (const auto& [rotation, yaw] : {std::pair{0.0F, -pi / 2}, {-pi / 2, 0.0F}, {pi / 2, pi}, {1.0F, -1 - pi / 2}}) {
    label.rotation_y = rotation;
    const Box3d box = lidar_box(label, *calibration);
    EXPECT_NEAR(box.x, 10.3F, 1e-5);
    EXPECT_NEAR(box.y, -3, 1e-5);
    EXPECT_NEAR(box.z, -0.1, 1e-5) << "0.1 below the LiDAR: the centre is as high as the camera";
    EXPECT_NEAR(std::abs(wrap_angle(box.yaw - yaw)), 0, 1e-5) << rotation;
    EXPECT_EQ(box.length, 4);
  }
}

TEST(Kitti, SaysWhatIsWrong) {
  const auto refusal = [](std::string_view text) {
    const auto labels = parse_kitti_labels(text);
    return labels ? "accepted" : labels.error().to_string();
  };
  EXPECT_EQ(refusal(""), "accepted");
  EXPECT_THAT(refusal("Car 0 0\n"), HasSubstr("line 1: expected 15 words (a score: 16), found 3"));
  EXPECT_THAT(refusal(std::string(kLine) + "Car 0 0 x 1 2 3 4 1 1 1 0 0 0 0"), HasSubstr("line 2: 'x' is no number"));
  EXPECT_THAT(refusal("Car 0 0 nan 1 2 3 4 1 1 1 0 0 0 0"), HasSubstr("'nan' is no number"));
  EXPECT_THAT(refusal("Car 0 0 0 1 2 3 4 1 -1 1 0 0 0 0"), HasSubstr("a side that is not positive"));
  EXPECT_THAT(refusal("Car 0 1e9 0 1 2 3 4 1 1 1 0 0 0 0"), HasSubstr("an occlusion of '1e9'"));
  const auto calibration_refusal = [](std::string text, const std::string& from, const std::string& to) {
    const size_t at = text.find(from);
    text.replace(at, from.size(), to);
    const auto calibration = parse_kitti_calibration(text);
    return calibration ? "accepted" : calibration.error().to_string();
  };
  EXPECT_EQ(calibration_refusal(kCalibration, "P2:", "P2:"), "accepted");
  EXPECT_THAT(calibration_refusal(kCalibration, "P2:", "P7:"), HasSubstr("no line 'P2:'"));
  EXPECT_THAT(calibration_refusal(kCalibration, "1 0 0 0 1 0 0 0 1", "1 0 0"),
              HasSubstr("R0_rect: has 3 numbers, expected 9"));
  EXPECT_THAT(calibration_refusal(kCalibration, "1 0 0 0 1 0 0 0 1", "2 0 0 0 1 0 0 0 1"),
              HasSubstr("R0_rect is no rotation"));
  EXPECT_THAT(calibration_refusal(kCalibration, "0 -1 0 0 0", "0 -1 0 0 1"),
              HasSubstr("Tr_velo_to_cam has no rotation"));
}

// A label is where its points are: the boxes of a real sweep hold points, and few lie just outside.
TEST(Kitti, RealBoxesHoldTheirPoints) {
  const auto file = test::shared_data("samples/kitti_000134.bin");
  STROBE_REQUIRE_DATA(file);
  const std::string bytes = *read_file(file);
  std::vector<float> points(bytes.size() / sizeof(float));
  std::memcpy(points.data(), bytes.data(), points.size() * sizeof(float));
  const auto labels = parse_kitti_labels(*read_file(test::shared_data("samples/kitti_000134_gt.txt")));
  const auto calibration = parse_kitti_calibration(*read_file(test::shared_data("samples/kitti_000134_calib.txt")));
  ASSERT_TRUE(labels && calibration);
  int objects = 0, well_hit = 0;
  for (const KittiLabel& label : *labels) {
    if (label.type == "DontCare") continue;
    ++objects;
    const Box3d box = lidar_box(label, *calibration);
    int inside = 0, beside = 0;
    for (size_t i = 0; i + 3 < points.size(); i += 4) {
      inside += contains(box, points[i], points[i + 1], points[i + 2]) ? 1 : 0;
      Box3d wide = box;
      wide.length += 0.6F;
      wide.width += 0.6F;
      wide.height -= 0.4F;  // not the ground
      beside += contains(wide, points[i], points[i + 1], points[i + 2]) ? 1 : 0;
    }
    EXPECT_GE(inside, 3) << label.type << " at " << box.x << ", " << box.y;
    // Two cars far to the right, behind others, are hardly hit.
    if (box.y < -15) continue;
    ++well_hit;
    EXPECT_GE(inside, 10) << label.type << " at " << box.x << ", " << box.y;
    EXPECT_GT(inside, 0.6 * beside) << label.type << " at " << box.x << ", " << box.y << ": tight";
  }
  EXPECT_EQ(objects, 15);
  EXPECT_EQ(well_hit, 13);
}

}  // namespace
}  // namespace strobe::models
