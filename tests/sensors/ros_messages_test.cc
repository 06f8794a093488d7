// Messages and schemas against real bags; sensors against the bag that PyPI's rosbags made of nuScenes' key frame.
#include "sensors/ros_messages.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "sensors/dds.h"
#include "sensors/mcap_reader.h"
#include "sensors/ros_definitions.h"
#include "sensors/ros_schema.h"
#include "support/test_data.h"

namespace strobe::sensors::ros {
namespace {

using testing::HasSubstr;

// Calls what(schema, bytes) for each message of a bag.
template <typename What>
void each_message(const std::filesystem::path& path, What&& what) {
  auto reader = McapReader::open(path);
  ASSERT_TRUE(reader) << reader.error().to_string();
  McapMessages messages = reader->messages();
  McapMessageView message;
  for (;;) {
    auto more = messages.next(message);
    ASSERT_TRUE(more) << more.error().to_string();
    if (!*more) break;
    what(*message.schema, message.data);
  }
}

// Decoded and encoded again, it is the same bytes.
template <typename Message>
bool same(Bytes bytes) {
  auto message = decode<Message>(bytes);
  if (!message) return false;
  CdrWriter writer;
  const Bytes again = encode(*message, writer);
  return std::ranges::equal(again, bytes);
}

bool same_bytes(const std::string& type, Bytes bytes) {
  if (type == type_name<PointCloud2>()) return same<PointCloud2>(bytes);
  if (type == type_name<Image>()) return same<Image>(bytes);
  if (type == type_name<CompressedImage>()) return same<CompressedImage>(bytes);
  if (type == type_name<CameraInfo>()) return same<CameraInfo>(bytes);
  if (type == type_name<Imu>()) return same<Imu>(bytes);
  if (type == type_name<NavSatFix>()) return same<NavSatFix>(bytes);
  if (type == type_name<TfMessage>()) return same<TfMessage>(bytes);
  if (type == type_name<PoseStamped>()) return same<PoseStamped>(bytes);
  if (type == type_name<Detection3DArray>()) return same<Detection3DArray>(bytes);
  if (type == type_name<String>()) return same<String>(bytes);
  ADD_FAILURE() << type;
  return false;
}

constexpr const char* kFrame = "sensors/mcap/nuscenes_sample_zstd.mcap";
constexpr const char* kManyTypes = "sensors/mcap/bags/rosbags_rs_test_bag.mcap";

TEST(RosMessages, RealFrameIsTheSameBytesAgain) {
  STROBE_REQUIRE_DATA(test::shared_data(kFrame));
  size_t messages = 0;
  each_message(test::shared_data(kFrame), [&messages](const McapSchema& schema, ByteView data) {
    EXPECT_TRUE(same_bytes(schema.name, data)) << schema.name;
    const auto text = schema_text(schema.name);
    ASSERT_TRUE(text);
    EXPECT_EQ(*text, schema.data);  // rosbags' own text
    ++messages;
  });
  EXPECT_EQ(messages, 22U);
}

TEST(RosMessages, OtherSoftwaresMessagesAreTheSameBytesAgain) {
  STROBE_REQUIRE_DATA(test::shared_data(kManyTypes));
  std::set<std::string> seen;
  each_message(test::shared_data(kManyTypes), [&seen](const McapSchema& schema, ByteView data) {
    if (!find_message_type(schema.name)) return;
    EXPECT_TRUE(same_bytes(schema.name, data)) << schema.name;
    seen.insert(schema.name);
  });
  EXPECT_GE(seen.size(), 8U);
}

TEST(RosMessages, FieldsOfTheRealFrame) {
  STROBE_REQUIRE_DATA(test::shared_data(kFrame));
  each_message(test::shared_data(kFrame), [](const McapSchema& schema, ByteView data) {
    if (schema.name == type_name<PointCloud2>()) {
      const auto cloud = decode<PointCloud2>(data);
      ASSERT_TRUE(cloud);
      EXPECT_EQ(cloud->width, 34688U);
      EXPECT_EQ(cloud->point_step, 20U);
      EXPECT_EQ(cloud->data.size(), 693760U);
      EXPECT_EQ(cloud->header.stamp.ns(), 1532402927647951000);
      ASSERT_EQ(cloud->fields.size(), 5U);
      EXPECT_EQ(cloud->fields[4].name, "ring");
    } else if (schema.name == type_name<Detection3DArray>()) {
      const auto boxes = decode<Detection3DArray>(data);
      ASSERT_TRUE(boxes);
      ASSERT_EQ(boxes->detections.size(), 69U);
      EXPECT_EQ(boxes->detections[0].results[0].class_id, "human.pedestrian.adult");
      EXPECT_EQ(boxes->detections[0].size, (Vector3{0.669, 0.621, 1.642}));
    }
  });
}

TEST(RosMessages, CutMessagesAreRefusedAndNamed) {
  STROBE_REQUIRE_DATA(test::shared_data(kFrame));
  each_message(test::shared_data(kFrame), [](const McapSchema& schema, ByteView data) {
    if (schema.name != type_name<CameraInfo>()) return;
    for (size_t size = 0; size < data.size(); ++size) {
      const auto info = decode<CameraInfo>(data.subspan(0, size));
      // The last byte of a CameraInfo is a bool: without it, the message is cut, too.
      ASSERT_FALSE(info) << size;
      EXPECT_THAT(info.error().to_string(), HasSubstr("sensor_msgs/msg/CameraInfo"));
    }
  });
}

TEST(RosMessages, Detection2DByHand) {
  Detection2DArray message{{Time{1, 2}, "cam"}, {}};
  message.detections.push_back({message.header, {{"car", 0.5, {}, {}}}, 10, 20, 0.1, 30, 40, "7"});
  CdrWriter writer;
  const auto again = decode<Detection2DArray>(encode(message, writer));
  ASSERT_TRUE(again) << again.error().to_string();
  ASSERT_EQ(again->detections.size(), 1U);
  EXPECT_EQ(again->detections[0].size_x, 30);
  EXPECT_EQ(again->detections[0].id, "7");
  // header 8 + 4 + "cam\0" = 16, count 4, header 16, count 4, "car\0" with length 8, score 8, pose 56, covariance 288,
  // box 40, id 4 + 2.
  EXPECT_EQ(writer.message().size(), 4U + 16 + 4 + 16 + 4 + 8 + 8 + 56 + 288 + 40 + 6);
  const auto schema = Schema::parse(type_name<Detection2DArray>(), *schema_text(type_name<Detection2DArray>()));
  ASSERT_TRUE(schema);
  const auto json = nlohmann::json::parse(*schema->print(writer.message()));
  EXPECT_EQ(json["detections"][0]["bbox"]["center"]["position"]["y"], 20);
  EXPECT_EQ(json["detections"][0]["results"][0]["hypothesis"]["class_id"], "car");
}

TEST(RosMessages, TimesBeforeTheEpoch) {
  EXPECT_EQ(Time::from_ns(-1), (Time{-1, 999'999'999}));
  EXPECT_EQ(Time::from_ns(-1).ns(), -1);
}

TEST(RosDefinitions, Names) {
  EXPECT_EQ(*dds_type_name("sensor_msgs/msg/PointCloud2"), "sensor_msgs::msg::dds_::PointCloud2_");
  EXPECT_EQ(*dds_topic_name("/a/b"), "rt/a/b");
  EXPECT_EQ(*dds_topic_name("lidar_data"), "rt/lidar_data");
  for (const MessageType& type : message_types()) EXPECT_TRUE(schema_text(type.name)) << type.name;
  EXPECT_FALSE(schema_text("std_msgs/msg/Nothing"));
}

TEST(RosSchema, PrintsEveryMessageOfABagOf94Types) {
  STROBE_REQUIRE_DATA(test::shared_data(kManyTypes));
  size_t printed = 0;
  each_message(test::shared_data(kManyTypes), [&printed](const McapSchema& schema, ByteView data) {
    const auto parsed = Schema::parse(schema.name, schema.data);
    ASSERT_TRUE(parsed) << schema.name << ": " << parsed.error().to_string();
    const auto text = parsed->print(data);
    ASSERT_TRUE(text) << schema.name << ": " << text.error().to_string();
    ASSERT_FALSE(nlohmann::json::parse(*text, nullptr, false).is_discarded()) << *text;
    if (schema.name == type_name<Imu>()) {
      const auto imu = decode<Imu>(data);
      const auto json = nlohmann::json::parse(*text);
      EXPECT_EQ(json["angular_velocity"]["z"], imu->angular_velocity.z);
      EXPECT_EQ(json["linear_acceleration_covariance"].size(), 9U);
    }
    ++printed;
  });
  EXPECT_EQ(printed, 188U);
}

TEST(RosSchema, EveryKindOfField) {
  const std::string line(80, '=');
  const auto schema = Schema::parse("a/msg/B",
                                    "# comment\n"
                                    "int8 LIMIT=-3  # a constant\n"
                                    "string NAME=\"a # b\"\n"
                                    "bool[2] flags\n"
                                    "string<=5 text \"x=y\"\n"
                                    "int64 big\n"
                                    "C[<=3] some\n"
                                    "float32[] numbers\n"
                                    "Empty nothing\n" +
                                        line + "\nMSG: a/C\nuint16 v 7\n" + line + "\nMSG: a/Empty\n");
  ASSERT_TRUE(schema) << schema.error().to_string();
  CdrWriter out;
  out.value(true);
  out.value(false);
  out.string("h\"\xFF");
  out.value(int64_t{-9007199254740993});
  out.value<uint32_t>(2);
  out.value<uint16_t>(5);
  out.value<uint16_t>(6);
  out.value<uint32_t>(3);
  out.value(1.5F);
  out.value(std::nanf(""));
  out.value(-std::numeric_limits<float>::infinity());
  out.value<uint8_t>(0);
  EXPECT_EQ(*schema->print(out.message()),
            R"({"flags":[true,false],"text":"h\"�","big":-9007199254740993,"some":[{"v":5},{"v":6}],)"
            R"("numbers":[1.5,"nan","-inf"],"nothing":{}})");
  EXPECT_EQ(*schema->print(out.message(), {.most_elements = 1}),
            R"({"flags":[true,"... 1 more"],"text":"h\"�","big":-9007199254740993,"some":[{"v":5},"... 1 more"],)"
            R"("numbers":[1.5,"... 2 more"],"nothing":{}})");
  const auto cut = schema->print(out.message().subspan(0, 40));
  ASSERT_FALSE(cut);
  EXPECT_THAT(cut.error().to_string(), HasSubstr("numbers"));
}

TEST(RosSchema, Refusals) {
  const auto fault = [](const char* text) { return Schema::parse("a/msg/B", text).error().to_string(); };
  EXPECT_THAT(fault("int32\n"), HasSubstr("line 1"));
  EXPECT_THAT(fault("int32 a\nC b\n"), HasSubstr("a/C"));
  EXPECT_THAT(fault("int32[x] a\n"), HasSubstr("no size"));
  EXPECT_THAT(fault("wstring a\n"), HasSubstr("wstring"));
}

TEST(RosSchema, ATypeThatHoldsItselfEnds) {
  const auto schema = Schema::parse("a/msg/B", "B inner\n");
  ASSERT_TRUE(schema);
  const std::vector<uint8_t> bytes(1000, 0);
  const auto text = schema->print(bytes.empty() ? Bytes() : Bytes(bytes));
  ASSERT_FALSE(text);
  EXPECT_THAT(text.error().to_string(), HasSubstr("nested"));
}

}  // namespace
}  // namespace strobe::sensors::ros
