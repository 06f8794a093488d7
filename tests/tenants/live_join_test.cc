// Sweeps and pictures of several topics as one stream: published by ourselves, joined as they come.
#include "tenants/live_join.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <atomic>
#include <cstring>
#include <map>
#include <thread>

#include "sensors/cdr.h"
#include "sensors/ros_messages.h"

namespace strobe::tenants {
namespace {

namespace ros = sensors::ros;
using namespace std::chrono_literals;

constexpr StreamNeeds kBoth{.pictures = true, .points = true};
constexpr int64_t kPeriod_ns = 100'000'000, kStart_ns = 1'700'000'000'000'000'000;

int domain() {
  return 1 + (::getpid() + 7) % 100;  // not that of live_stream_test, which may run at the same time
}

std::shared_ptr<sensors::DdsParticipant> join(std::string& why) {
  sensors::DdsOptions options;
  options.domain = domain();
  options.this_host_only = true;
  auto participant = sensors::join_dds(options);
  if (participant) return *participant;
  why = participant.error().to_string();
  return nullptr;
}

SourceSpec source_of(std::vector<std::string> cameras) {
  SourceSpec source;
  source.kind = SourceSpec::Kind::kRos2;
  source.path = "/points";
  source.channels = std::move(cameras);
  source.domain = domain();
  source.reliable = true;
  return source;
}

// A vehicle with a LiDAR and two cameras: one takes its picture 20 ms before each sweep, the other one 30 ms after it.
class Vehicle {
 public:
  explicit Vehicle(std::shared_ptr<sensors::DdsParticipant> participant) : participant_(std::move(participant)) {
    add("/points", ros::type_name<ros::PointCloud2>(), {});
    for (const char* name : {"left", "right"}) {
      add(std::string("/") + name + "/image", ros::type_name<ros::CompressedImage>(), {});
      add(std::string("/") + name + "/camera_info", ros::type_name<ros::CameraInfo>(), {});
    }
    add("/tf_static", ros::type_name<ros::TfMessage>(), ros::kTfStaticQos);
    thread_ = std::thread([this] { drive(); });
  }
  ~Vehicle() {
    over_ = true;
    thread_.join();
  }
  void blind_the_right_eye() { blind_ = true; }

 private:
  void add(const std::string& topic, const char* type, ros::Qos qos) {
    auto publisher = participant_->create_publisher({topic, type, {}, qos});
    ASSERT_TRUE(publisher) << publisher.error().to_string();
    publishers_[topic] = std::move(*publisher);
  }
  template <typename Message>
  void send(const std::string& topic, const Message& message) {
    sensors::CdrWriter writer;
    (void)publishers_[topic]->publish(ros::encode(message, writer));
  }
  void picture(const char* name, int64_t k, int64_t offset_ns) {
    ros::CompressedImage image;
    image.header = {ros::Time::from_ns(kStart_ns + k * kPeriod_ns + offset_ns), name};
    image.format = "jpeg";
    const uint8_t byte = static_cast<uint8_t>(k);
    image.data = {&byte, 1};
    send(std::string("/") + name + "/image", image);
    ros::CameraInfo info;
    info.header = image.header;
    info.width = 100, info.height = 50;
    info.k = {10, 0, 50, 0, 10, 25, 0, 0, 1};
    send(std::string("/") + name + "/camera_info", info);
  }
  void drive() {
    ros::TfMessage places;
    places.transforms.push_back({{ros::Time::from_ns(0), "base"}, "left", {{1, 2, 0}, {}}});
    places.transforms.push_back({{ros::Time::from_ns(0), "base"}, "right", {{1, -2, 0}, {}}});
    places.transforms.push_back({{ros::Time::from_ns(0), "base"}, "lidar", {{0, 0, 3}, {}}});
    send("/tf_static", places);
    for (int64_t k = 0; !over_; ++k) {
      picture("left", k, -20'000'000);
      std::this_thread::sleep_for(10ms);
      ros::PointCloud2 cloud;
      cloud.header = {ros::Time::from_ns(kStart_ns + k * kPeriod_ns), "lidar"};
      uint32_t offset = 0;
      for (const char* name : {"x", "y", "z", "intensity"}) cloud.fields.push_back({name, 4 * offset++});
      uint8_t point[16] = {};
      const auto x = static_cast<float>(k);
      std::memcpy(point, &x, sizeof x);
      cloud.point_step = cloud.row_step = sizeof point;
      cloud.width = 1;
      cloud.data = point;
      send("/points", cloud);
      std::this_thread::sleep_for(10ms);
      if (!blind_) picture("right", k, 30'000'000);
      std::this_thread::sleep_for(80ms);
    }
  }

  std::shared_ptr<sensors::DdsParticipant> participant_;
  std::map<std::string, std::unique_ptr<sensors::DdsPublisher>> publishers_;
  std::atomic<bool> over_ = false, blind_ = false;
  std::thread thread_;
};

TEST(LiveJoin, EachSweepHasThePicturesOfItsMoment) {
  std::string why;
  const auto participant = join(why);
  if (!participant) GTEST_SKIP() << why;
  Vehicle vehicle(participant);
  auto stream = LiveStream::open(source_of({"/left/image", "/right/image"}), kBoth, 30s);
  ASSERT_TRUE(stream) << stream.error().to_string();
  LiveStream* live = (*stream)->live();
  ASSERT_NE(live, nullptr);
  ASSERT_EQ((*stream)->frame(0).pictures.size(), 2U);
  int64_t last = -1;
  for (int i = 0; i < 5; ++i) {
    auto came = live->wait(20s);
    ASSERT_TRUE(came) << came.error().to_string();
    ASSERT_TRUE(*came);
    const SensorFrame& frame = (*came)->frame;
    const int64_t k = (frame.stamp_ns - kStart_ns) / kPeriod_ns;
    EXPECT_EQ(static_cast<int64_t>(frame.points->values[0]), k);
    EXPECT_GT(k, last);
    last = k;
    ASSERT_EQ(frame.pictures.size(), 2U);
    for (const auto& picture : frame.pictures) {
      EXPECT_EQ(picture->bytes[0], static_cast<uint8_t>(k)) << picture->channel;
      ASSERT_TRUE(picture->camera);
      EXPECT_FLOAT_EQ(picture->camera->to_vehicle[3], 1);
      EXPECT_FLOAT_EQ(picture->camera->to_vehicle[7], picture->channel == "/left/image" ? 2 : -2);
      EXPECT_FLOAT_EQ(picture->camera->to_vehicle[11], -3);
    }
    ASSERT_TRUE(frame.pose);
    EXPECT_DOUBLE_EQ(frame.pose->translation.z, 3);
    EXPECT_GT((*came)->comm_ns, 0);
  }
  // Without one camera sweeps are left out; what was complete before may still come.
  vehicle.blind_the_right_eye();
  bool quiet = false;
  for (int i = 0; i < 50 && !quiet; ++i) {
    auto came = live->wait(400ms);
    ASSERT_TRUE(came) << came.error().to_string();
    quiet = !*came;
  }
  EXPECT_TRUE(quiet);
}

TEST(LiveJoin, SaysWhatDoesNotCome) {
  std::string why;
  const auto participant = join(why);
  if (!participant) GTEST_SKIP() << why;
  const auto fault = [](const SourceSpec& source, std::chrono::milliseconds limit) {
    const auto stream = LiveStream::open(source, kBoth, limit);
    EXPECT_FALSE(stream);
    return stream ? "" : stream.error().to_string();
  };
  EXPECT_NE(fault(source_of({}), 100ms).find("topic /points: a model that needs pictures, too: say with `channels`"),
            std::string::npos);
  EXPECT_NE(fault(source_of({"/left/image"}), 300ms).find("(nobody writes /points)"), std::string::npos);
  const Vehicle vehicle(participant);
  EXPECT_NE(fault(source_of({"/left/image", "/back/image"}), 5s).find("(no picture came on /back/image)"),
            std::string::npos);
}

}  // namespace
}  // namespace strobe::tenants
