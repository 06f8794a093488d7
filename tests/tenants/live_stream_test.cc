// Tenants fed by a ROS 2 topic: what is published meanwhile is what they get, and silence is told.
#include "tenants/live_stream.h"

#include <gmock/gmock.h>

#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include "analyze/tenant_tables.h"
#include "base/file.h"
#include "sensors/ros_messages.h"
#include "support/test_data.h"
#include "tenants/cell_run.h"
#include "trace/spool_import.h"

namespace strobe::tenants {
namespace {

using namespace std::chrono_literals;

int domain() {
  return 1 + ::getpid() % 100;  // ports of higher domains lie among those that the system hands out
}

// Publishes a picture at a rate, from its making until it is told to be silent.
class Camera {
 public:
  Camera(std::shared_ptr<sensors::DdsParticipant> participant, const std::string& topic, std::string picture)
      : participant_(std::move(participant)), picture_(std::move(picture)) {
    auto publisher = participant_->create_publisher({topic, "sensor_msgs/msg/CompressedImage", {}, {}});
    if (!publisher) return;
    publisher_ = std::move(*publisher);
    thread_ = std::thread([this] {
      sensors::ros::CompressedImage image;
      image.format = "jpeg";
      image.data = {reinterpret_cast<const uint8_t*>(picture_.data()), picture_.size()};
      sensors::CdrWriter writer;
      for (int k = 0; !over_; ++k, std::this_thread::sleep_for(50ms)) {
        if (silent_) continue;
        image.header.stamp = {1'700'000'000 + k, 5};
        const auto bytes = sensors::ros::encode(image, writer);
        if (publisher_->publish(bytes)) ++sent_;
      }
    });
  }
  ~Camera() {
    over_ = true;
    if (thread_.joinable()) thread_.join();
  }
  void be_silent() { silent_ = true; }
  int sent() const { return sent_; }

 private:
  std::shared_ptr<sensors::DdsParticipant> participant_;
  std::unique_ptr<sensors::DdsPublisher> publisher_;
  std::string picture_;
  std::thread thread_;
  std::atomic<bool> over_ = false, silent_ = false;
  std::atomic<int> sent_ = 0;
};

std::shared_ptr<sensors::DdsParticipant> join(std::string& why) {
  sensors::DdsOptions options;
  options.domain = domain();
  options.this_host_only = true;
  auto participant = sensors::join_dds(options);
  if (participant) return *participant;
  why = participant.error().to_string();
  return nullptr;
}

SourceSpec topic_source(const std::string& topic) {
  SourceSpec source;
  source.kind = SourceSpec::Kind::kRos2;
  source.path = topic;
  source.domain = domain();
  source.reliable = true;
  return source;
}

TEST(LiveStream, ATopicThatNobodyWritesIsToldAsSuch) {
  std::string why;
  if (!join(why)) GTEST_SKIP() << why;
  const auto stream = LiveStream::open(topic_source("/nobody"), {.pictures = true, .points = false}, 300ms);
  ASSERT_FALSE(stream);
  EXPECT_EQ(stream.error().to_string(),
            "topic /nobody: no message of type sensor_msgs/msg/CompressedImage came within 0.3 s (nobody writes it)");
  EXPECT_FALSE(LiveStream::open(topic_source("/nobody"), {.pictures = true, .points = true}, 1ms));
  EXPECT_FALSE(LiveStream::open(topic_source("bad name"), {.pictures = true, .points = false}, 1ms));
}

TEST(LiveStream, FramesAreThoseThatWerePublishedWithTheirWayHere) {
  const auto picture = test::shared_data("samples/dog.jpg");
  STROBE_REQUIRE_DATA(picture);
  std::string why;
  const auto participant = join(why);
  if (!participant) GTEST_SKIP() << why;
  const std::string bytes = *read_file(picture);
  const Camera camera(participant, "/front/image", bytes);
  auto stream = LiveStream::open(topic_source("/front/image"), {.pictures = true, .points = false}, 20s);
  ASSERT_TRUE(stream) << stream.error().to_string();
  ASSERT_NE((*stream)->live(), nullptr);
  int64_t last = (*stream)->frame(0).stamp_ns;
  for (int k = 0; k < 5; ++k) {
    auto came = (*stream)->live()->wait(20s);
    ASSERT_TRUE(came) << came.error().to_string();
    ASSERT_TRUE(*came);
    const SensorFrame& frame = (*came)->frame;
    EXPECT_EQ(frame.stamp_ns, last + 1'000'000'000);  // none is missing
    last = frame.stamp_ns;
    EXPECT_EQ(frame.token, "front/image-" + std::to_string(last));
    ASSERT_EQ(frame.pictures.size(), 1u);
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), frame.pictures[0]->bytes.begin(), frame.pictures[0]->bytes.end(),
                           [](char a, uint8_t b) { return static_cast<uint8_t>(a) == b; }));
    EXPECT_GT((*came)->comm_ns, 0);
    EXPECT_LT((*came)->comm_ns, 20'000'000'000);
  }
}

TEST(LiveStream, ATenantOfATopicIsOnTheTimelineAndSilenceIsMissed) {
  const auto picture = test::shared_data("samples/dog.jpg");
  STROBE_REQUIRE_DATA(picture);
  std::string why;
  const auto participant = join(why);
  if (!participant) GTEST_SKIP() << why;
  Camera camera(participant, "/cam", *read_file(picture));
  CellSpec cell;
  cell.duration_s = 4;
  cell.warmup_s = 0;
  cell.hang_s = 60;
  TenantSpec tenant;
  tenant.name = "eye";
  tenant.model = "person-tiny";
  tenant.rate_hz = 20;
  tenant.source = topic_source("/cam");
  cell.tenants = {tenant};
  const test::ScratchFolder folder;
  std::filesystem::create_directories(folder / "spool");
  std::filesystem::create_directories(folder / "predictions");
  CellOptions options{.spool = folder / "spool", .predictions = folder / "predictions"};
  options.on_progress = [&camera](double seconds, double) {
    if (seconds >= 2) camera.be_silent();
  };
  auto outcome = run_cell(cell, options);
  ASSERT_TRUE(outcome) << outcome.error().to_string();
  const std::string& message = outcome->tenants[0].end;
  if (message.find("not built") != std::string::npos) GTEST_SKIP() << message;
  ASSERT_TRUE(outcome->succeeded()) << message;
  auto timeline = trace::import_spool(folder / "spool");
  ASSERT_TRUE(timeline) << timeline.error().to_string();
  auto trace = analyze::tenant_trace(*timeline);
  ASSERT_TRUE(trace) << trace.error().to_string();
  std::set<int64_t> stamps;
  for (size_t i = 0; i < trace->frames.size(); ++i) {
    const analyze::TenantFrame& frame = trace->frames[i];
    EXPECT_GE(frame.arrival_ns, frame.stamp_ns);
    EXPECT_EQ(frame.sensor_stamp_ns % 1'000'000'000, 5);
    EXPECT_TRUE(stamps.insert(frame.sensor_stamp_ns).second) << "given twice";
  }
  EXPECT_GT(trace->frames.size(), 10u);
  EXPECT_GT(trace->tenants[0].not_sent, 10u);
  EXPECT_GE(trace->frames.size() + trace->tenants[0].not_sent, 65u);  // 80 were due in 4 s
}

}  // namespace
}  // namespace strobe::tenants
