#include "tenants/bag_stream.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>

#include "sensors/cdr.h"
#include "sensors/mcap_writer.h"
#include "sensors/ros_messages.h"
#include "support/test_data.h"
#include "tenants/transform_tree.h"

namespace strobe::tenants {
namespace {

namespace ros = sensors::ros;
constexpr StreamNeeds kBoth{.pictures = true, .points = true};

TEST(TransformTree, ChainsAndTimes) {
  TransformTree tree;
  EXPECT_FALSE(tree.place("map", 0));
  // The vehicle drives from x = 10 to 20 m in a second and turns by 90 degrees; its camera sits 2 m before it.
  const auto quarter = sensors::Quaternion::about_z(std::acos(0.0));
  ros::TfMessage moving;
  moving.transforms.push_back({{ros::Time::from_ns(1'000'000'000), "map"}, "base_link", {{10, 0, 0}, {}}});
  moving.transforms.push_back({{ros::Time::from_ns(2'000'000'000), "map"}, "base_link", {{20, 0, 0}, quarter}});
  tree.add(moving, false);
  ros::TfMessage fixed;
  fixed.transforms.push_back({{ros::Time::from_ns(5), "/base_link"}, "camera", {{2, 0, 0}, {}}});
  tree.add(fixed, true);

  const auto at = [&](int64_t ns) {
    const auto place = tree.place("camera", ns);
    EXPECT_TRUE(place && place->root == "map");
    return place ? place->pose.translation : sensors::Vector3{};
  };
  EXPECT_NEAR(at(0).x, 12, 1e-12);  // before the first stamp
  EXPECT_NEAR(at(1'000'000'000).x, 12, 1e-12);
  EXPECT_NEAR(at(2'000'000'000).x, 20, 1e-12);  // turned: the camera is now at its side
  EXPECT_NEAR(at(2'000'000'000).y, 2, 1e-12);
  EXPECT_NEAR(at(9'000'000'000).y, 2, 1e-12);
  // Half way, by 45 degrees: 15 + 2 cos 45, 2 sin 45.
  EXPECT_NEAR(at(1'500'000'000).x, 15 + std::sqrt(2.0), 1e-9);
  EXPECT_NEAR(at(1'500'000'000).y, std::sqrt(2.0), 1e-9);
  EXPECT_EQ(tree.place("map", 0)->root, "map");
  EXPECT_FALSE(tree.place("elsewhere", 0));

  // From fixed to moving: the earlier place holds no more.
  ros::TfMessage loose;
  loose.transforms.push_back({{ros::Time::from_ns(1'000'000'000), "base_link"}, "camera", {{7, 0, 0}, {}}});
  tree.add(loose, false);
  EXPECT_NEAR(at(0).x, 17, 1e-12);

  ros::TfMessage circle;
  circle.transforms.push_back({{ros::Time::from_ns(1), "camera"}, "map", {}});
  tree.add(circle, true);
  EXPECT_FALSE(tree.place("camera", 0));
}

// The bag was made from the same key frame of nuScenes by another program.
TEST(BagStream, JoinsWhatNuScenesJoins) {
  const auto root = test::shared_data("sensors/nuscenes"),
             bag = test::shared_data("sensors/mcap/nuscenes_sample_lz4.mcap");
  if (!std::filesystem::exists(root) || !std::filesystem::exists(bag)) GTEST_SKIP() << "the shared data are absent";
  SourceSpec from_root, from_bag;
  from_root.kind = SourceSpec::Kind::kNuscenes, from_root.path = root.string();
  from_bag.kind = SourceSpec::Kind::kMcap, from_bag.path = bag.string();
  const auto expected = open_stream(from_root, kBoth, 1), found = open_stream(from_bag, kBoth, 1);
  ASSERT_TRUE(expected) << expected.error().to_string();
  ASSERT_TRUE(found) << found.error().to_string();
  ASSERT_EQ((*found)->size(), (*expected)->size());
  const SensorFrame a = (*expected)->frame(0), b = (*found)->frame(0);
  EXPECT_EQ(a.stamp_ns, b.stamp_ns);
  ASSERT_TRUE(a.pose && b.pose);
  EXPECT_NEAR(a.pose->translation.x, b.pose->translation.x, 1e-6);
  EXPECT_NEAR(a.pose->translation.z, b.pose->translation.z, 1e-6);
  EXPECT_NEAR(a.pose->rotation.yaw(), b.pose->rotation.yaw(), 1e-9);
  ASSERT_EQ(a.points->count(), b.points->count());
  for (size_t i = 0; i < a.points->count(); ++i)
    for (size_t k = 0; k < 4; ++k)
      ASSERT_EQ(a.points->values[i * static_cast<size_t>(a.points->columns) + k],
                b.points->values[i * static_cast<size_t>(b.points->columns) + k]);
  ASSERT_EQ(a.pictures.size(), 6U);
  ASSERT_EQ(b.pictures.size(), 6U);
  for (const auto& picture : a.pictures) {
    const auto same = std::ranges::find_if(
        b.pictures, [&](const auto& one) { return one->channel.starts_with("/" + picture->channel + "/"); });
    ASSERT_NE(same, b.pictures.end()) << picture->channel;
    EXPECT_EQ((*same)->bytes, picture->bytes);
    ASSERT_TRUE(picture->camera && (*same)->camera);
    EXPECT_EQ((*same)->camera->width, picture->camera->width);
    for (size_t i = 0; i < 9; ++i) EXPECT_NEAR((*same)->camera->intrinsic[i], picture->camera->intrinsic[i], 1e-3);
    for (size_t i = 0; i < 12; ++i) EXPECT_NEAR((*same)->camera->to_vehicle[i], picture->camera->to_vehicle[i], 1e-4);
  }
}

// A bag of sweeps every 100 ms and of pictures by one camera at other times.
class MadeBag : public testing::Test {
 protected:
  template <typename Message>
  void write(const std::string& topic, int64_t at_ns, const Message& message) {
    if (!channels_.contains(topic)) {
      const auto schema = writer_->add_schema({0, ros::type_name<Message>(), "ros2msg", ""});
      ASSERT_TRUE(schema);
      channels_[topic] = writer_->add_channel({0, *schema, topic, "cdr", {}}).value();
    }
    sensors::CdrWriter cdr;
    const auto time = static_cast<uint64_t>(at_ns);
    ASSERT_TRUE(writer_->write({channels_[topic], 0, time, time, ros::encode(message, cdr)}));
  }

  void begin() { writer_.emplace(sensors::McapWriter::create(path_, {}).value()); }
  std::string finish() {
    EXPECT_TRUE(writer_->close());
    writer_.reset();
    return path_.string();
  }

  void sweep(int64_t ms) {
    ros::PointCloud2 cloud;
    cloud.header = {ros::Time::from_ns(ms * 1'000'000), "lidar"};
    uint32_t offset = 0;
    for (const char* name : {"x", "y", "z", "intensity"}) cloud.fields.push_back({name, 4 * offset++});
    cloud.point_step = 16, cloud.width = 1, cloud.row_step = 16;
    bytes_.assign(16, 0);
    const float x = static_cast<float>(ms);
    std::memcpy(bytes_.data(), &x, sizeof x);
    cloud.data = bytes_;
    write("/points", ms * 1'000'000, cloud);
  }
  void picture(int64_t ms) {
    ros::CompressedImage image;
    image.header = {ros::Time::from_ns(ms * 1'000'000), "camera"};
    image.format = "jpeg";
    bytes_.assign(1, static_cast<uint8_t>(ms / 10));
    image.data = bytes_;
    write("/cam/image", ms * 1'000'000, image);
  }
  void camera_info() {
    ros::CameraInfo info;
    info.header = {ros::Time::from_ns(0), "camera"};
    info.width = 100, info.height = 50;
    info.k = {10, 0, 50, 0, 10, 25, 0, 0, 1};
    write("/cam/camera_info", 0, info);
  }
  void transforms() {
    ros::TfMessage message;
    message.transforms.push_back({{ros::Time::from_ns(0), "base"}, "camera", {{1, 0, 0}, {}}});
    message.transforms.push_back({{ros::Time::from_ns(0), "base"}, "lidar", {{0, 0, 2}, {}}});
    write("/tf_static", 0, message);
  }
  Result<std::unique_ptr<FrameStream>> open(int64_t most = 0) {
    SourceSpec source;
    source.kind = SourceSpec::Kind::kMcap;
    source.path = path_.string();
    source.most_frames = most;
    return open_bag(source, kBoth, 1);
  }

  test::ScratchFolder folder_;
  std::filesystem::path path_ = folder_ / "made.mcap";
  std::optional<sensors::McapWriter> writer_;
  std::map<std::string, uint16_t> channels_;
  std::vector<uint8_t> bytes_;
};

TEST_F(MadeBag, TheNearestPictureIsTakenWithinTheLimit) {
  begin();
  camera_info();
  transforms();
  for (const int64_t ms : {1000, 1100, 1200, 1300, 1400, 1500}) sweep(ms);
  for (const int64_t ms : {950, 1090, 1160, 1290}) picture(ms);
  finish();
  const auto stream = open();
  ASSERT_TRUE(stream) << stream.error().to_string();
  // 1400 would have to take one 110 ms away, 1500 one 210 ms away.
  ASSERT_EQ((*stream)->size(), 4);
  const std::vector<int> nearest = {95, 109, 116, 129};
  for (int64_t i = 0; i < 4; ++i) {
    const SensorFrame frame = (*stream)->frame(i);
    EXPECT_EQ(frame.stamp_ns, (1000 + 100 * i) * 1'000'000);
    ASSERT_EQ(frame.pictures.size(), 1U);
    EXPECT_EQ(frame.pictures[0]->bytes[0], nearest[static_cast<size_t>(i)]);
    ASSERT_TRUE(frame.pictures[0]->camera);
    // The camera seen from the LiDAR: 1 m before and 2 m below it.
    EXPECT_FLOAT_EQ(frame.pictures[0]->camera->to_vehicle[3], 1);
    EXPECT_FLOAT_EQ(frame.pictures[0]->camera->to_vehicle[11], -2);
    EXPECT_FLOAT_EQ(frame.pictures[0]->camera->intrinsic[2], 50);
  }
  ASSERT_FALSE((*stream)->notes().empty());
  EXPECT_NE((*stream)->notes()[0].find("2 of 6 sweeps have no picture of /cam/image"), std::string::npos);
  EXPECT_EQ((*open(2))->size(), 2);
}

// Frames are counted when they are whole; a topic may have channels of other kinds.
TEST_F(MadeBag, CamerasThatBeginLate) {
  begin();
  const uint16_t odd = writer_->add_channel({0, 0, "/tf_static", "cdr", {}}).value();
  ASSERT_TRUE(writer_->write({odd, 0, 1, 1, {}}));
  camera_info();
  transforms();
  for (int64_t k = 0; k < 10; ++k) {
    sweep(1000 + 100 * k);
    if (k >= 4) picture(1000 + 100 * k);
  }
  finish();
  const auto stream = open(3);
  ASSERT_TRUE(stream) << stream.error().to_string();
  ASSERT_EQ((*stream)->size(), 3);
  // The picture of 1400 ms is near enough for the sweep of 1300 ms.
  for (int64_t k = 0; k < 3; ++k) EXPECT_EQ((*stream)->frame(k).stamp_ns, (1300 + 100 * k) * 1'000'000);
}

TEST_F(MadeBag, SaysWhatIsMissing) {
  const auto refused = [&](const char* why) {
    finish();
    const auto stream = open();
    ASSERT_FALSE(stream);
    EXPECT_NE(stream.error().to_string().find(why), std::string::npos) << stream.error().to_string();
    EXPECT_NE(stream.error().to_string().find(path_.string()), std::string::npos) << stream.error().to_string();
    channels_.clear();
  };
  begin();
  transforms();
  sweep(1000);
  picture(1000);
  refused("/cam/image: no CameraInfo tells the camera of frame \"camera\"");
  begin();
  camera_info();
  sweep(1000);
  picture(1000);
  refused("no transform leads from /points (frame \"lidar\")");
  begin();
  camera_info();
  transforms();
  sweep(1000);
  refused("no frame that the model could take");
}

}  // namespace
}  // namespace strobe::tenants
