// DDS between our own participants and against PyPI's cyclonedds, an implementation of its own, in both directions.
// Everything stays on this host; each test process has a domain of its own.
#include "sensors/dds.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/sha256.h"
#include "sensors/dds_replay.h"
#include "sensors/ros_messages.h"
#include "sensors/weather_test_data.h"

namespace strobe::sensors {
namespace {

using namespace std::chrono_literals;
using ::testing::HasSubstr;

int test_domain() {
  return 1 + ::getpid() % 100;  // ports of higher domains lie among those that the system hands out
}

DdsOptions on_test_domain(DdsTransport transport = DdsTransport::kAll) {
  DdsOptions options;
  options.domain = test_domain();
  options.transport = transport;
  return options;
}

DdsTopic cloud_topic(const std::string& name) {
  const char* type = ros::type_name<ros::PointCloud2>();
  return {name, type, std::string(ros::find_message_type(type)->rihs01), {}};
}

ros::PointCloud2 make_cloud(int number, std::span<const uint8_t> data) {
  ros::PointCloud2 cloud;
  cloud.header.stamp.sec = 100 + number;
  cloud.header.stamp.nanosec = 7;
  cloud.header.frame_id = "from c++ " + std::to_string(number);
  cloud.width = static_cast<uint32_t>(data.size() / 20);
  cloud.fields = {{"x", 0, 7, 1}, {"intensity", 12, 7, 1}};
  cloud.point_step = 20;
  cloud.row_step = static_cast<uint32_t>(data.size());
  cloud.data = data;
  return cloud;
}

#define STROBE_REQUIRE_DDS(participant, options)                             \
  auto participant = join_dds(options);                                      \
  if (!participant && participant.error().kind() == ErrorKind::kUnsupported) \
    GTEST_SKIP() << "DDS is not built: " << participant.error().to_string(); \
  ASSERT_TRUE(participant) << participant.error().to_string()

// cyclonedds takes an interface of its own choice that knows multicast.
bool has_multicast() {
  struct if_nameindex* all = ::if_nameindex();
  bool found = false;
  for (auto* i = all; i != nullptr && i->if_index != 0; ++i) {
    const auto flags = read_file(std::string("/sys/class/net/") + i->if_name + "/flags");
    if (!flags) continue;
    const auto bits = std::stoul(*flags, nullptr, 16);
    found |= (bits & IFF_UP) != 0 && (bits & IFF_MULTICAST) != 0;
  }
  ::if_freenameindex(all);
  return found;
}

// A process of tests/sensors/dds_peer.py.
class Peer {
 public:
  Peer(const std::string& word, const std::string& topic, int count) {
    const std::string command = std::string(STROBE_TEST_PYTHON) + " " + STROBE_SENSORS_TESTS + "/dds_peer.py " + word +
                                " " + std::to_string(test_domain()) + " rt" + topic + " " + std::to_string(count) +
                                " 2>&1";
    pipe_ = ::popen(command.c_str(), "r");
  }
  ~Peer() { finish(); }
  std::string line() {
    char buffer[4096];
    return std::fgets(buffer, sizeof buffer, pipe_) != nullptr ? std::string(buffer) : std::string();
  }
  int finish() {
    if (pipe_ == nullptr) return 0;
    const int status = ::pclose(pipe_);
    pipe_ = nullptr;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  static bool is_there() {
    const std::string command = std::string(STROBE_TEST_PYTHON) + " -c 'import cyclonedds' 2>/dev/null";
    return std::string(STROBE_TEST_PYTHON) != "" && std::system(command.c_str()) == 0;
  }

 private:
  FILE* pipe_ = nullptr;
};

#define STROBE_REQUIRE_PEER()                                           \
  if (!Peer::is_there()) GTEST_SKIP() << "PyPI's cyclonedds is absent"; \
  if (!has_multicast()) GTEST_SKIP() << "no network interface with multicast is up"

TEST(Dds, NamesAreThoseOfRos2) {
  EXPECT_EQ(*dds_topic_name("/lidar/points"), "rt/lidar/points");
  EXPECT_EQ(*dds_topic_name("lidar_data"), "rt/lidar_data");
  EXPECT_EQ(*dds_type_name("sensor_msgs/msg/PointCloud2"), "sensor_msgs::msg::dds_::PointCloud2_");
  EXPECT_EQ(*dds_type_name("std_msgs/String"), "std_msgs::msg::dds_::String_");
  for (const char* bad : {"", "/", "a//b", "/a b", "/1a", "/a/", "/a-b"}) EXPECT_FALSE(dds_topic_name(bad)) << bad;
  for (const char* bad : {"", "String", "a/b/c", "a/msg/", "a/msg/b/c"}) EXPECT_FALSE(dds_type_name(bad)) << bad;
}

TEST(Dds, DomainIsThatOfRos2) {
  ::setenv("ROS_DOMAIN_ID", "42", 1);
  EXPECT_EQ(*dds_domain({}), 42);
  DdsOptions options;
  options.domain = 3;
  EXPECT_EQ(*dds_domain(options), 3);
  options.domain = 233;
  EXPECT_FALSE(dds_domain(options));
  for (const char* bad : {"-1", "233", "7x", "home"}) {
    ::setenv("ROS_DOMAIN_ID", bad, 1);
    EXPECT_FALSE(dds_domain({})) << bad;
  }
  ::setenv("ROS_DOMAIN_ID", "", 1);
  EXPECT_EQ(*dds_domain({}), 0);
  ::unsetenv("ROS_DOMAIN_ID");
}

class DdsTransports : public testing::TestWithParam<DdsTransport> {};

TEST_P(DdsTransports, LargeMessagesArriveWholeAndInOrder) {
  STROBE_REQUIRE_DDS(sender, on_test_domain(GetParam()));
  STROBE_REQUIRE_DDS(receiver, on_test_domain(GetParam()));
  const auto publisher = *(*sender)->create_publisher(cloud_topic("/large"));
  const auto subscriber = *(*receiver)->create_subscriber(cloud_topic("/large"));
  ASSERT_TRUE(publisher->wait_for_readers(1, 10s));
  ASSERT_TRUE(subscriber->wait_for_writers(1, 10s));
  CdrWriter writer;
  DdsSample sample;
  for (int i = 0; i < 20; ++i) {
    std::vector<uint8_t> data(20 * (i % 2 == 0 ? 34'688 : 1 + static_cast<size_t>(i)));
    for (size_t k = 0; k < data.size(); ++k) data[k] = static_cast<uint8_t>(k * 31 + static_cast<size_t>(i));
    const Bytes cdr = ros::encode(make_cloud(i, data), writer);
    ASSERT_TRUE(publisher->publish(cdr));
    const auto got = subscriber->take(sample, 10s);
    ASSERT_TRUE(got && *got) << "message " << i;
    ASSERT_EQ(sample.cdr.size(), cdr.size());
    EXPECT_TRUE(std::equal(cdr.begin(), cdr.end(), sample.cdr.begin()));
    EXPECT_GT(sample.source_time_ns, 1'000'000'000'000'000'000);  // Unix time
  }
  EXPECT_FALSE(*subscriber->take(sample, 1ms));
  EXPECT_FALSE(publisher->publish(std::vector<uint8_t>{0, 1}));
}

INSTANTIATE_TEST_SUITE_P(Each, DdsTransports,
                         testing::Values(DdsTransport::kAll, DdsTransport::kUdp, DdsTransport::kSharedMemory));

TEST(Dds, LateReaderGetsWhatIsTransientLocal) {
  STROBE_REQUIRE_DDS(participant, on_test_domain());
  DdsTopic topic = cloud_topic("/tf_like");
  topic.qos = ros::kTfStaticQos;
  const auto publisher = *(*participant)->create_publisher(topic);
  CdrWriter writer;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(publisher->publish(ros::encode(make_cloud(i, {}), writer)));
  STROBE_REQUIRE_DDS(other, on_test_domain());
  const auto subscriber = *(*other)->create_subscriber(topic);
  DdsSample sample;
  ASSERT_TRUE(*subscriber->take(sample, 10s));
  EXPECT_EQ(ros::decode<ros::PointCloud2>(sample.cdr)->header.stamp.sec, 102);  // the last one alone
  EXPECT_FALSE(*subscriber->take(sample, 100ms));
}

TEST(Dds, ATopicHasOneType) {
  STROBE_REQUIRE_DDS(participant, on_test_domain());
  const auto publisher = *(*participant)->create_publisher(cloud_topic("/one_type"));
  const auto other = (*participant)->create_publisher({"/one_type", "std_msgs/msg/String", "", {}});
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().to_string(), HasSubstr("/one_type"));
  EXPECT_FALSE((*participant)->create_publisher({"/a b", "std_msgs/msg/String", "", {}}));
}

TEST(DdsPeer, CycloneReadsWhatWeWrite) {
  STROBE_REQUIRE_PEER();
  STROBE_REQUIRE_DDS(participant, on_test_domain());
  const auto path = strobe::test::shared_data(test::kRealSweep);
  const std::string sweep = std::filesystem::exists(path) ? *read_file(path) : std::string(693'760, 'x');
  const std::span<const uint8_t> data(reinterpret_cast<const uint8_t*>(sweep.data()), sweep.size());
  const auto publisher = *(*participant)->create_publisher(cloud_topic("/to_python"));
  Peer peer("read", "/to_python", 5);
  // Each side finds the other by itself: that the writer knows the reader does not say that the reader knows the
  // writer, and cyclonedds passes over what was written before that.
  ASSERT_EQ(peer.line(), "matched\n");
  ASSERT_TRUE(publisher->wait_for_readers(1, 15s));
  CdrWriter writer;
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(publisher->publish(ros::encode(make_cloud(i, data), writer)));
  for (int i = 0; i < 5; ++i) {
    const auto cloud = nlohmann::json::parse(peer.line(), nullptr, false);
    ASSERT_TRUE(cloud.is_object()) << "message " << i;
    EXPECT_EQ(cloud["sec"], 100 + i);
    EXPECT_EQ(cloud["nanosec"], 7);
    EXPECT_EQ(cloud["frame_id"], "from c++ " + std::to_string(i));
    EXPECT_EQ(cloud["width"], sweep.size() / 20);
    EXPECT_EQ(cloud["fields"], nlohmann::json::parse(R"([["x",0,7,1],["intensity",12,7,1]])"));
    EXPECT_EQ(cloud["is_dense"], true);
    EXPECT_EQ(cloud["sha256"], sha256(sweep));
  }
  EXPECT_EQ(peer.finish(), 0);
}

TEST(DdsPeer, WeReadWhatCycloneWrites) {
  STROBE_REQUIRE_PEER();
  STROBE_REQUIRE_DDS(participant, on_test_domain());
  Peer peer("write", "/from_python", 6);
  auto subscriber = *(*participant)->create_subscriber(cloud_topic("/from_python"));
  DdsSample sample;
  for (uint32_t i = 0; i < 6; ++i) {
    ASSERT_TRUE(*subscriber->take(sample, 15s)) << "message " << i;
    const auto cloud = ros::decode<ros::PointCloud2>(sample.cdr);
    ASSERT_TRUE(cloud) << cloud.error().to_string();
    EXPECT_EQ(cloud->header.stamp.sec, static_cast<int32_t>(100 + i));
    EXPECT_EQ(cloud->header.frame_id, "from python " + std::to_string(i));
    ASSERT_EQ(cloud->data.size(), 20 * (11 + i));
    for (uint32_t k = 0; k < cloud->data.size(); ++k) ASSERT_EQ(cloud->data[k], (7 * k + i) % 256);
    EXPECT_TRUE(cloud->is_dense);
  }
  subscriber.reset();
  EXPECT_EQ(peer.finish(), 0);
}

TEST(DdsPeer, TypeHashIsInTheUserData) {
  STROBE_REQUIRE_PEER();
  STROBE_REQUIRE_DDS(participant, on_test_domain());
  const auto publisher = *(*participant)->create_publisher(cloud_topic("/hashed"));
  Peer peer("hash", "/hashed", 1);
  ASSERT_EQ(peer.line(), "ready\n");
  const auto told = nlohmann::json::parse(peer.line(), nullptr, false);
  ASSERT_TRUE(told.is_object());
  EXPECT_EQ(told["type"], "sensor_msgs::msg::dds_::PointCloud2_");
  EXPECT_EQ(told["user_data"], "typehash=RIHS01_9198cabf7da3796ae6fe19c4cb3bdd3525492988c70522628af5daa124bae2b5;");
}

// Clouds at fixed times, for the replay.
class Clouds : public MessageSource {
 public:
  Clouds(const std::string& name, int count, int64_t period_ns)
      : topics_{cloud_topic(name)}, count_(count), period_(period_ns) {}
  const std::vector<DdsTopic>& topics() const override { return topics_; }
  Result<bool> next(PacedMessage& message) override {
    if (at_ == count_) return false;
    message.topic = 0;
    message.time_ns = 1'600'000'000'000'000'000 + at_ * period_;
    message.cdr = ros::encode(make_cloud(at_++, {}), writer_);
    return true;
  }
  Result<void> rewind() override {
    at_ = 0;
    return {};
  }

 private:
  std::vector<DdsTopic> topics_;
  int count_, at_ = 0;
  int64_t period_;
  CdrWriter writer_;
};

TEST(DdsReplay, KeepsThePaceAndNeverRunsAhead) {
  STROBE_REQUIRE_DDS(participant, on_test_domain());
  Clouds clouds("/paced", 21, 20'000'000);  // 0.4 s
  ReplayOptions options;
  options.rate = 2;
  options.wait = 0ms;
  std::atomic<bool> stop{false};
  const auto begin = std::chrono::steady_clock::now();
  const auto summary = replay(clouds, **participant, options, stop, [](const std::string&) {});
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  ASSERT_TRUE(summary);
  EXPECT_EQ(summary->messages, 21U);
  EXPECT_EQ(summary->rounds, 1U);
  EXPECT_GE(took.count(), 0.2);  // no message before its time
  EXPECT_GE(summary->late_max_ms, summary->late_p99_ms);
  EXPECT_GE(summary->late_p99_ms, summary->late_p50_ms);
}

TEST(DdsReplay, LoopsUntilStopped) {
  STROBE_REQUIRE_DDS(participant, on_test_domain());
  Clouds clouds("/looped", 4, 1'000'000);
  ReplayOptions options;
  options.loop = true;
  options.clock = true;
  options.wait = 0ms;
  std::atomic<bool> stop{false};
  const auto subscriber = *(*participant)->create_subscriber(cloud_topic("/looped"));
  std::jthread stopper([&] {
    DdsSample sample;
    for (int i = 0; i < 10; ++i)
      if (!*subscriber->take(sample, 10s)) break;
    stop = true;
  });
  const auto summary = replay(clouds, **participant, options, stop, [](const std::string&) {});
  ASSERT_TRUE(summary);
  EXPECT_TRUE(summary->stopped);
  EXPECT_GE(summary->rounds, 3U);
  EXPECT_GE(summary->messages, 10U);
}

TEST(DdsReplay, GoesOnWhenAPeerVanishes) {
  STROBE_REQUIRE_PEER();
  STROBE_REQUIRE_DDS(participant, on_test_domain());
  Clouds clouds("/vanishing", 100, 5'000'000);
  ReplayOptions options;
  options.loop = true;
  options.wait = 15s;
  std::atomic<bool> stop{false};
  std::vector<std::string> told;
  Peer peer("vanish", "/vanishing", 3);
  // Ended without a goodbye: the lease of 10 s has to run out.
  std::jthread limit([&](const std::stop_token& over) {
    for (int i = 0; i < 400 && !over.stop_requested(); ++i) ::usleep(100'000);
    stop = true;
  });
  const auto summary = replay(clouds, **participant, options, stop, [&](const std::string& sentence) {
    told.push_back(sentence);
    limit.request_stop();
  });
  ASSERT_TRUE(summary);
  EXPECT_THAT(told, testing::ElementsAre("a reader of /vanishing is gone; sending goes on"));
  EXPECT_EQ(summary->topics[0].readers_gone, 1);
  EXPECT_EQ(peer.line(), "matched\n");
  EXPECT_EQ(peer.finish(), 0);
}

TEST(DdsReplay, RefusesARateOfNothing) {
  STROBE_REQUIRE_DDS(participant, on_test_domain());
  Clouds clouds("/none", 0, 1);
  std::atomic<bool> stop{false};
  ReplayOptions options;
  options.wait = 0ms;
  EXPECT_FALSE(replay(clouds, **participant, options, stop, [](const std::string&) {}));
  options.rate = 0;
  EXPECT_FALSE(replay(clouds, **participant, options, stop, [](const std::string&) {}));
}

TEST(DdsReplay, OfferedQosOfBags) {
  using R = ros::Qos::Reliability;
  using D = ros::Qos::Durability;
  const auto rosbag2 = parse_offered_qos(
      "- history: 3\n  depth: 0\n  reliability: 2\n  durability: 2\n  deadline:\n    sec: 9223372036\n    nsec: "
      "854775807\n");
  EXPECT_EQ(rosbag2.reliability, R::kBestEffort);
  EXPECT_EQ(rosbag2.durability, D::kVolatile);
  EXPECT_EQ(rosbag2.depth, 10U);
  const auto named =
      parse_offered_qos("- history: keep_last\n  depth: 1\n  reliability: reliable\n  durability: transient_local\n");
  EXPECT_EQ(named.reliability, R::kReliable);
  EXPECT_EQ(named.durability, D::kTransientLocal);
  EXPECT_EQ(named.depth, 1U);
  const auto two = parse_offered_qos("[{\"depth\": 7, \"reliability\": 2}, {\"depth\": 3, \"reliability\": 1}]");
  EXPECT_EQ(two.reliability, R::kReliable);
  EXPECT_EQ(two.depth, 7U);
  const auto none = parse_offered_qos("");
  EXPECT_EQ(none.reliability, R::kReliable);
  EXPECT_EQ(none.depth, 10U);
  // What we write into bags ourselves.
  for (const ros::Qos& qos : {ros::kSensorQos, ros::kTfQos, ros::kTfStaticQos, ros::Qos{}}) {
    const ros::Qos again = parse_offered_qos(ros::qos_yaml(qos));
    EXPECT_EQ(again.depth, qos.depth);
    EXPECT_EQ(again.reliability, qos.reliability);
    EXPECT_EQ(again.durability, qos.durability);
  }
}

}  // namespace
}  // namespace strobe::sensors
