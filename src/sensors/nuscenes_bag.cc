#include "sensors/nuscenes_bag.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/version.h"

namespace strobe::sensors {

namespace {

constexpr const char* kDistribution = "strobe";

// In double quotes, as YAML has it.
std::string yaml_text(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + "\"";
}

// rosbag2's metadata, version 8.
std::string rosbag2_metadata(const BagSummary& bag, const std::string& file) {
  const int64_t duration = bag.last_ns - bag.first_ns;
  std::string out = fmt::format(
      "version: 8\n"
      "storage_identifier: mcap\n"
      "duration:\n"
      "  nanoseconds: {}\n"
      "starting_time:\n"
      "  nanoseconds_since_epoch: {}\n"
      "message_count: {}\n"
      "topics_with_message_count:\n",
      duration, bag.first_ns, bag.messages);
  for (const BagTopic& topic : bag.topics) {
    const ros::MessageType* type = ros::find_message_type(topic.topic.type);
    out += fmt::format(
        "  - topic_metadata:\n"
        "      name: {}\n"
        "      type: {}\n"
        "      serialization_format: cdr\n"
        "      offered_qos_profiles: {}\n"
        "      type_description_hash: {}\n"
        "    message_count: {}\n",
        topic.topic.name, topic.topic.type, yaml_text(ros::qos_yaml(topic.topic.qos)), type ? type->rihs01 : "",
        topic.messages);
  }
  return out + fmt::format(
                   "compression_format: \"\"\n"
                   "compression_mode: \"\"\n"
                   "relative_file_paths:\n"
                   "  - {0}\n"
                   "files:\n"
                   "  - path: {0}\n"
                   "    starting_time:\n"
                   "      nanoseconds_since_epoch: {1}\n"
                   "    duration:\n"
                   "      nanoseconds: {2}\n"
                   "    message_count: {3}\n"
                   "custom_data: ~\n"
                   "ros_distro: {4}",
                   yaml_text(file), bag.first_ns, duration, bag.messages, kDistribution);
}

// Indented by two, under rosbag2's key.
std::string metadata_file(const std::string& metadata) {
  std::string out = "rosbag2_bagfile_information:\n  ";
  for (const char c : metadata) {
    out += c;
    if (c == '\n') out += "  ";
  }
  return out + "\n";
}

// Writes metadata.yaml unless it is that of another bag.
Result<bool> write_beside(const std::filesystem::path& path, const std::string& metadata) {
  const std::filesystem::path beside = path.parent_path() / "metadata.yaml";
  std::error_code failed;
  if (std::filesystem::exists(beside, failed)) {
    const auto old = read_file(beside);
    if (!old || old->find("path: " + yaml_text(path.filename().string()) + "\n") == std::string::npos) return false;
  }
  STROBE_TRY(write_file(beside, metadata_file(metadata)));
  return true;
}

}  // namespace

Result<BagSummary> write_bag(NuScenesStream& stream, const std::filesystem::path& path, const BagOptions& options,
                             const std::function<bool(uint64_t)>& stop) {
  McapWriteOptions write;
  write.profile = "ros2";
  write.compression = options.compression;
  write.threads = options.threads;
  STROBE_ASSIGN(McapWriter writer, McapWriter::create(path, write));
  BagSummary bag;
  std::vector<uint16_t> channels;
  for (const StreamTopic& topic : stream.topics()) {
    STROBE_ASSIGN(std::string text, ros::schema_text(topic.type));
    STROBE_ASSIGN(const uint16_t schema, writer.add_schema({0, std::string(topic.type), "ros2msg", std::move(text)}));
    McapStringMap metadata = {{"offered_qos_profiles", ros::qos_yaml(topic.qos)}};
    if (const ros::MessageType* type = ros::find_message_type(topic.type))
      metadata.emplace_back("topic_type_hash", type->rihs01);
    STROBE_ASSIGN(const uint16_t channel, writer.add_channel({0, schema, topic.name, "cdr", std::move(metadata)}));
    channels.push_back(channel);
    bag.topics.push_back({topic, 0, 0});
  }
  StreamMessage message;
  while (!stop(bag.messages)) {
    STROBE_ASSIGN(const bool more, stream.next(message));
    if (!more) break;
    BagTopic& topic = bag.topics[message.topic];
    const auto time = static_cast<uint64_t>(message.time_ns);
    STROBE_TRY(writer.write({channels[message.topic], static_cast<uint32_t>(topic.messages), time, time, message.cdr}));
    if (bag.messages == 0) bag.first_ns = message.time_ns;
    bag.last_ns = std::max(bag.last_ns, message.time_ns);
    ++bag.messages;
    bag.bytes += message.cdr.size();
    ++topic.messages;
    topic.bytes += message.cdr.size();
  }
  const std::string metadata = rosbag2_metadata(bag, path.filename().string());
  STROBE_TRY(writer.add_metadata({"rosbag2", {{"serialized_metadata", metadata}}}));
  McapStringMap about = {{"version", version()}, {"source", options.source}};
  if (!stream.synthetic().empty()) about.emplace_back("synthetic", stream.synthetic());
  STROBE_TRY(writer.add_metadata({"strobe", std::move(about)}));
  STROBE_TRY(writer.close());
  STROBE_ASSIGN(bag.metadata_beside, write_beside(path, metadata));
  return bag;
}

}  // namespace strobe::sensors
