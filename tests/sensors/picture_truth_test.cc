// Boxes that a camera sees, by hand: it looks along +y of the global frame from the origin, 100 pixels of focal length,
// on a picture of 200 x 100.
#include "sensors/picture_truth.h"

#include <gtest/gtest.h>

#include <fstream>

#include "support/test_data.h"

namespace strobe::sensors {
namespace {

class Street {
 public:
  Street() {
    write("log", R"([{"token":"log","logfile":"l"}])");
    write("map", R"([{"token":"map","log_tokens":["log"]}])");
    write("sensor", R"([{"token":"sensor","channel":"CAM_FRONT","modality":"camera"}])");
    // x right, y down, z forward: a quarter turn about x.
    write("calibrated_sensor", R"([{"token":"cal","sensor_token":"sensor","translation":[0,0,0],)"
                               R"("rotation":[0.7071067811865476,-0.7071067811865476,0,0],)"
                               R"("camera_intrinsic":[[100,0,100],[0,100,50],[0,0,1]]}])");
    write("category", R"([{"token":"car","name":"vehicle.car"}])");
    write("attribute", "[]");
    write("visibility", R"([{"token":"1","level":"v0-40"},{"token":"2","level":"v40-60"},)"
                        R"({"token":"3","level":"v60-80"},{"token":"4","level":"v80-100"}])");
    write(
        "scene",
        R"([{"token":"scene","name":"scene-0103","log_token":"log","first_sample_token":"s","last_sample_token":"s"}])");
    write("sample", R"([{"token":"s","timestamp":1000000,"scene_token":"scene","prev":"","next":""}])");
    write("ego_pose", R"([{"token":"e","timestamp":1000000,"translation":[0,0,0],"rotation":[1,0,0,0]}])");
    write("sample_data", R"([{"token":"d","sample_token":"s","ego_pose_token":"e","calibrated_sensor_token":"cal",)"
                         R"("timestamp":1000000,"filename":"f","is_key_frame":true,"width":200,"height":100}])");
  }
  void write(const std::string& table, const std::string& text) {
    std::filesystem::create_directories(folder_ / "v1.0-mini");
    std::ofstream(folder_ / "v1.0-mini" / (table + ".json")) << text;
  }
  // A cube of 2 m, turned about z by this.
  void car(double x, double y, double z, const std::string& visibility = "4", double yaw = 0) {
    const std::string number = std::to_string(cars_++);
    const Quaternion turn = Quaternion::about_z(yaw);
    const auto text = [](double value) { return std::to_string(value); };
    instances_ += (cars_ > 1 ? "," : "") +
                  (R"({"token":"i)" + number + R"(","category_token":"car","first_annotation_token":"a)" + number +
                   R"(","last_annotation_token":"a)" + number + R"("})");
    annotations_ += (cars_ > 1 ? "," : "") +
                    (R"({"token":"a)" + number + R"(","sample_token":"s","instance_token":"i)" + number +
                     R"(","visibility_token":")" + visibility + R"(","attribute_tokens":[],"translation":[)" + text(x) +
                     "," + text(y) + "," + text(z) + R"(],"size":[2,2,2],"rotation":[)" + text(turn.w) + ",0,0," +
                     text(turn.z) + R"(],"prev":"","next":"","num_lidar_pts":1,"num_radar_pts":1})");
  }
  std::vector<ShownBox> shown() {
    write("instance", "[" + instances_ + "]");
    write("sample_annotation", "[" + annotations_ + "]");
    const auto database = NuScenes::open(folder_.path());
    EXPECT_TRUE(database) << database.error().to_string();
    return database ? shown_boxes(*database, 0, 0) : std::vector<ShownBox>{};
  }

 private:
  test::ScratchFolder folder_;
  std::string instances_, annotations_;
  int cars_ = 0;
};

TEST(PictureTruth, ACubeStraightAhead) {
  Street street;
  street.car(0, 11, 0);  // its near face is 10 m away: 10 pixels to each side
  const auto shown = street.shown();
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown[0].annotation, 0U);
  EXPECT_NEAR(shown[0].x, 90, 1e-6);
  EXPECT_NEAR(shown[0].y, 40, 1e-6);
  EXPECT_NEAR(shown[0].width, 20, 1e-6);
  EXPECT_NEAR(shown[0].height, 20, 1e-6);
}

TEST(PictureTruth, IsCutToThePicture) {
  Street street;
  // Near face from x = 9 to 11 m at 10 m: columns 190 to 210, far face (12 m) from 175 to 191.7.
  street.car(10, 11, 0);
  const auto shown = street.shown();
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_NEAR(shown[0].x, 175, 1e-6);
  EXPECT_NEAR(shown[0].width, 25, 1e-6);
  EXPECT_NEAR(shown[0].y, 40, 1e-6);
  EXPECT_NEAR(shown[0].height, 20, 1e-6);
}

TEST(PictureTruth, WhatIsHardlySeenIsNoTruth) {
  Street street;
  street.car(11.9, 11, 0);    // columns 190.8 to 229: less than a third of the outline is on the picture
  street.car(0, -11, 0);      // behind
  street.car(0, 11, 0, "1");  // covered
  street.car(0, 11, 0, "2");
  street.car(0, 11, 0, "");                      // not told
  street.car(0, 21, 0, "3", 0.785398163397448);  // turned by 45 degrees: its near edge is 21 - sqrt(2) m away
  const auto shown = street.shown();
  ASSERT_EQ(shown.size(), 1U);
  EXPECT_EQ(shown[0].annotation, 5U);
  // The widest are the corners at its sides, at 21 m; the tallest is the near edge.
  EXPECT_NEAR(shown[0].width, 2 * 100 * 1.41421356 / 21, 1e-4);
  EXPECT_NEAR(shown[0].height, 2 * 100 / (21 - 1.41421356), 1e-4);
}

// Corners behind the camera are no part of the outline.
TEST(PictureTruth, PartlyBehind) {
  Street street;
  street.car(0, 0.5, -3);  // 2 to 4 m below the camera: the corners before it lie 1.5 m ahead, below the picture
  EXPECT_TRUE(street.shown().empty());
}

}  // namespace
}  // namespace strobe::sensors
