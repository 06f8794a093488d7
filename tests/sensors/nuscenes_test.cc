#include "sensors/nuscenes.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "sensors/lidar_sweep.h"
#include "sensors/nuscenes_splits.h"
#include "support/test_data.h"

namespace strobe::sensors {
namespace {

using testing::HasSubstr;

// Two key frames, 0.5 s apart, of one moving car, a sweep between them, and a cone that only the second one has.
class SmallDatabase {
 public:
  SmallDatabase() {
    write("log", R"([{"token":"log","logfile":"l"}])");
    write("map", R"([{"token":"map","log_tokens":["log"]}])");
    write("sensor", R"([{"token":"sensor","channel":"LIDAR_TOP","modality":"lidar"}])");
    write(
        "calibrated_sensor",
        R"([{"token":"cal","sensor_token":"sensor","translation":[1,2,3],"rotation":[1,0,0,0],"camera_intrinsic":[]}])");
    write("category", R"([{"token":"car","name":"vehicle.car"},{"token":"cone","name":"movable_object.trafficcone"}])");
    write("attribute", R"([{"token":"moving","name":"vehicle.moving"}])");
    write("visibility", R"([{"token":"1","level":"v0-40"}])");
    write(
        "scene",
        R"([{"token":"scene","name":"scene-0103","log_token":"log","first_sample_token":"s0","last_sample_token":"s1"}])");
    write("sample", R"([{"token":"s0","timestamp":1000000,"scene_token":"scene","prev":"","next":"s1"},)"
                    R"({"token":"s1","timestamp":1500000,"scene_token":"scene","prev":"s0","next":""}])");
    write("ego_pose", R"([{"token":"e","timestamp":1000000,"translation":[10,20,0],"rotation":[1,0,0,0]}])");
    write("sample_data", "[" + data("d1", "s1", 1500000, true) + "," + data("d0", "s0", 1000000, true) + "," +
                             data("sweep", "s1", 1200000, false) + "]");
    write("instance",
          R"([{"token":"i","category_token":"car","first_annotation_token":"a0","last_annotation_token":"a1"},)"
          R"({"token":"j","category_token":"cone","first_annotation_token":"b","last_annotation_token":"b"}])");
    write("sample_annotation",
          "[" + annotation("a1", "s1", "i", "5.5,0,0", "0.7071067811865476,0,0,0.7071067811865476", "a0", "") + "," +
              annotation("a0", "s0", "i", "5,1,0", "1,0,0,0", "", "a1") + "," +
              annotation("b", "s1", "j", "9,9,9", "1,0,0,0", "", "") + "]");
  }

  void write(const std::string& table, const std::string& text) {
    std::filesystem::create_directories(folder_ / "v1.0-mini");
    std::ofstream(folder_ / "v1.0-mini" / (table + ".json")) << text;
  }
  Result<NuScenes> open(nuscenes::Detail detail = nuscenes::Detail::kAll) {
    return NuScenes::open(folder_.path(), "", detail);
  }
  const test::ScratchFolder& folder() const { return folder_; }

  static std::string data(const std::string& token, const std::string& sample, int64_t time, bool key) {
    return R"({"token":")" + token + R"(","sample_token":")" + sample +
           R"(","ego_pose_token":"e","calibrated_sensor_token":"cal","timestamp":)" + std::to_string(time) +
           R"(,"filename":"f","is_key_frame":)" + (key ? "true}" : "false}");
  }
  static std::string annotation(const std::string& token, const std::string& sample, const std::string& instance,
                                const std::string& place, const std::string& turn, const std::string& before,
                                const std::string& after) {
    return R"({"attribute_tokens":["moving"],"token":")" + token + R"(","sample_token":")" + sample +
           R"(","instance_token":")" + instance + R"(","visibility_token":"1","translation":[)" + place +
           R"(],"size":[2,4,1.5],"rotation":[)" + turn + R"(],"prev":")" + before + R"(","next":")" + after +
           R"(","num_lidar_pts":3,"num_radar_pts":1})";
  }

 private:
  test::ScratchFolder folder_;
};

TEST(NuScenes, RowsAreLinked) {
  SmallDatabase small;
  const auto database = small.open();
  ASSERT_TRUE(database) << database.error().to_string();
  EXPECT_EQ(database->version(), "v1.0-mini");
  const uint32_t a0 = database->find_annotation("a0"), a1 = database->find_annotation("a1");
  EXPECT_EQ(database->annotations[a0].next, a1);
  EXPECT_EQ(database->annotations[a1].previous, a0);
  EXPECT_EQ(database->annotations[a0].width, 2);
  EXPECT_EQ(database->annotations[a0].length, 4);
  EXPECT_EQ(database->category_of(database->annotations[a0]), "vehicle.car");
  EXPECT_EQ(database->annotations[a0].attribute_count, 1U);
  EXPECT_EQ(database->instances[0].first_annotation, a0);
  EXPECT_EQ(database->samples[database->find_sample("s0")].next, database->find_sample("s1"));
  EXPECT_EQ(database->scenes[0].last_sample, database->find_sample("s1"));
  EXPECT_EQ(database->annotations_of(database->find_sample("s1")).size(), 2U);
  EXPECT_EQ(database->key_data(0, "LIDAR_TOP"), database->find_sample_data("d0"));
  EXPECT_EQ(database->key_data(0, "CAM_FRONT"), nuscenes::kNone);
}

TEST(NuScenes, StreamsAreInTheOrderOfTime) {
  SmallDatabase small;
  const auto database = small.open();
  ASSERT_TRUE(database);
  const auto tokens = [&](bool sweeps) {
    std::vector<std::string> out;
    const auto rows = database->data_of(0, {}, sweeps);
    for (const uint32_t row : *rows) out.emplace_back(database->sample_data[row].token);
    return out;
  };
  EXPECT_THAT(tokens(false), testing::ElementsAre("d0", "d1"));
  EXPECT_THAT(tokens(true), testing::ElementsAre("d0", "sweep", "d1"));
  EXPECT_THAT(database->data_of(0, {"RADAR"}, true).error().to_string(), HasSubstr("LIDAR_TOP"));
  const auto keys = small.open(nuscenes::Detail::kKeyFrames);
  ASSERT_TRUE(keys);
  EXPECT_EQ(keys->sample_data.size(), 2U);
}

TEST(NuScenes, VelocityIsTheWayOverTheTime) {
  SmallDatabase small;
  const auto database = small.open();
  ASSERT_TRUE(database);
  const Vector3 v = database->velocity(database->find_annotation("a0"));
  EXPECT_NEAR(v.x, 1, 1e-9);  // 0.5 m in 0.5 s
  EXPECT_NEAR(v.y, -2, 1e-9);
  EXPECT_TRUE(std::isnan(database->velocity(database->find_annotation("b")).x));
}

TEST(NuScenes, VelocityOverALongGapIsUnknown) {
  SmallDatabase small;
  small.write("sample", R"([{"token":"s0","timestamp":1000000,"scene_token":"scene","prev":"","next":"s1"},)"
                        R"({"token":"s1","timestamp":2500001,"scene_token":"scene","prev":"s0","next":""}])");
  const auto database = small.open();
  ASSERT_TRUE(database);
  EXPECT_TRUE(std::isnan(database->velocity(database->find_annotation("a0")).x));
}

TEST(NuScenes, BoxesBetweenKeyFrames) {
  SmallDatabase small;
  const auto database = small.open();
  ASSERT_TRUE(database);
  // The sweep is 0.2 of 0.5 s behind the first key frame.
  const auto boxes = database->boxes_at(database->sample_data[database->find_sample_data("sweep")]);
  ASSERT_EQ(boxes.size(), 2U);
  EXPECT_EQ(boxes[0].annotation, database->find_annotation("a1"));
  EXPECT_NEAR(boxes[0].box.pose.translation.x, 5.2, 1e-12);
  EXPECT_NEAR(boxes[0].box.pose.translation.y, 0.6, 1e-12);
  EXPECT_NEAR(boxes[0].box.pose.rotation.yaw(), 0.4 * M_PI / 2, 1e-12);
  EXPECT_NEAR(boxes[1].box.pose.translation.x, 9, 1e-12);  // was not there before
  const auto at = database->boxes_at(0, 1200000);
  ASSERT_EQ(at.size(), 1U);
  EXPECT_NEAR(at[0].box.pose.translation.x, 5.2, 1e-12);
  EXPECT_EQ(database->boxes_at(0, 0).size(), 1U);
  EXPECT_EQ(database->boxes_at(0, 9'000'000).size(), 2U);
}

TEST(NuScenes, ErrorsNameFileRowAndField) {
  const auto fault = [](const std::string& table, const std::string& text) {
    SmallDatabase small;
    small.write(table, text);
    const auto opened = small.open();
    return opened ? std::string("opened") : opened.error().to_string();
  };
  EXPECT_THAT(fault("log", "{}"), testing::AllOf(HasSubstr("log.json"), HasSubstr("line 1"), HasSubstr("an array")));
  EXPECT_THAT(fault("log", R"([{"token":"log"}])"), HasSubstr("row 0 has no \"logfile\""));
  EXPECT_THAT(fault("sample", "[\n{\"token\":\"s0\",\n\"timestamp\":\"x\"}]"),
              HasSubstr("line 3: expected an integer"));
  EXPECT_THAT(fault("sensor", "[]"),
              testing::AllOf(HasSubstr("calibrated_sensor.json"), HasSubstr("no row of sensor.json")));
  EXPECT_THAT(fault("ego_pose", "[]"), testing::AllOf(HasSubstr("sample_data.json"), HasSubstr("ego_pose.json")));
  EXPECT_THAT(fault("category", R"([{"token":"car","name":"a"},{"token":"car","name":"b"}])"),
              HasSubstr("earlier row"));
  EXPECT_THAT(fault("calibrated_sensor",
                    R"([{"token":"cal","sensor_token":"sensor","translation":[1,2],"rotation":[1,0,0,0]}])"),
              HasSubstr("an array of 3 numbers, it has 2"));
}

TEST(NuScenes, FoldersThatAreNone) {
  test::ScratchFolder folder;
  EXPECT_THAT(NuScenes::open(folder / "nothing").error().to_string(), HasSubstr("no such folder"));
  EXPECT_THAT(NuScenes::open(folder.path()).error().to_string(), HasSubstr("v1.0-*"));
  std::filesystem::create_directories(folder / "v1.0-mini");
  EXPECT_THAT(NuScenes::open(folder.path()).error().to_string(), HasSubstr("log.json: no such file"));
  std::filesystem::create_directories(folder / "v1.0-test");
  EXPECT_THAT(NuScenes::open(folder.path()).error().to_string(), HasSubstr("--version"));
}

TEST(NuScenes, RealKeyFrame) {
  const auto root = test::shared_data("sensors/nuscenes");
  STROBE_REQUIRE_DATA(root);
  const auto database = NuScenes::open(root);
  ASSERT_TRUE(database) << database.error().to_string();
  EXPECT_EQ(database->annotations.size(), 69U);
  EXPECT_EQ(database->sample_data.size(), 7U);
  EXPECT_EQ(database->ego_poses[0].pose.translation.x, 411.3039245605469);
  const auto scene = database->find_scene("scene-0061");
  ASSERT_TRUE(scene);
  EXPECT_EQ(*database->find_scene("cc8c0bf57f984915a77078b10eb33198"), *scene);
  EXPECT_THAT(database->find_scene("scene-0062").error().to_string(), HasSubstr("scene-0061"));
  const auto lidar = database->data_of(*scene, {"LIDAR_TOP"}, true);
  ASSERT_TRUE(lidar);
  ASSERT_EQ(lidar->size(), 1U);
  const auto sweep = read_lidar_sweep(database->file_of(database->sample_data[lidar->front()]));
  ASSERT_TRUE(sweep);
  EXPECT_EQ(sweep->points(), 34688U);
  const auto splits = nuscenes_splits(*database);
  ASSERT_TRUE(splits);
  ASSERT_EQ(splits->size(), 2U);
  EXPECT_EQ((*splits)[0].name, "mini_train");
}

// The count that each annotation carries is that of LiDAR points inside its box: calibration, poses and box geometry
// must all be right for it to come out.
TEST(NuScenes, PointsInBoxesOfTheRealKeyFrame) {
  const auto root = test::shared_data("sensors/nuscenes");
  STROBE_REQUIRE_DATA(root);
  const auto database = NuScenes::open(root);
  ASSERT_TRUE(database);
  const uint32_t row = database->key_data(0, "LIDAR_TOP");
  const auto& data = database->sample_data[row];
  const auto sweep = read_lidar_sweep(database->file_of(data));
  ASSERT_TRUE(sweep);
  const Pose to_global =
      database->ego_poses[data.ego_pose].pose * database->calibrated_sensors[data.calibrated_sensor].pose;
  std::vector<Vector3> points;
  for (uint32_t i = 0; i < sweep->points(); ++i) {
    float p[3];
    std::memcpy(p, sweep->bytes.data() + i * kLidarPointBytes, sizeof p);
    points.push_back(to_global.apply({p[0], p[1], p[2]}));
  }
  size_t equal = 0, near = 0, all = 0;
  for (const uint32_t annotation : database->annotations_of(0)) {
    const Box box = database->annotations[annotation].box();
    const auto inside = std::ranges::count_if(points, [&box](const Vector3& p) { return box.contains(p); });
    const int64_t said = database->annotations[annotation].lidar_points;
    equal += inside == said ? 1 : 0;
    near += std::abs(inside - said) <= 2 + said / 10 ? 1 : 0;
    ++all;
  }
  EXPECT_EQ(near, all);
  EXPECT_GE(equal * 10, all * 8);
}

TEST(LidarSweep, CutFilesAreRefused) {
  test::ScratchFolder folder;
  std::ofstream(folder / "a.pcd.bin") << std::string(30, 'x');
  EXPECT_THAT(read_lidar_sweep(folder / "a.pcd.bin").error().to_string(), HasSubstr("30 bytes"));
}

}  // namespace
}  // namespace strobe::sensors
