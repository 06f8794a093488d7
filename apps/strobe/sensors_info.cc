#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>

#include "base/table.h"
#include "collect/machine.h"
#include "report/table_format.h"
#include "sensors/mcap_info.h"
#include "sensors_command.h"

namespace strobe::app {

namespace {

using Json = nlohmann::ordered_json;
using sensors::McapChannelInfo;
using sensors::McapInfo;

// rosbag2 keeps numbers of rmw's enumerations up to version 8 of its metadata, and words after that.
std::string qos_word(const YAML::Node& profile, const char* key, std::initializer_list<const char*> words) {
  const std::string value = profile[key].as<std::string>("unknown");
  const size_t number =
      value.size() == 1 && value[0] >= '0' && value[0] <= '9' ? static_cast<size_t>(value[0] - '0') : 99;
  return number < words.size() ? words.begin()[number] : value;
}

// "reliable, volatile, keep last 10", of the first writer; empty where the channel says nothing that can be read.
std::string qos_text(const sensors::McapChannel& channel) {
  const std::string* yaml = sensors::find_value(channel.metadata, "offered_qos_profiles");
  if (yaml == nullptr || yaml->empty()) return {};
  try {
    const YAML::Node profiles = YAML::Load(*yaml);
    if (!profiles.IsSequence() || profiles.size() == 0 || !profiles[0].IsMap()) return {};
    const YAML::Node profile = profiles[0];
    std::string history = qos_word(profile, "history", {"default history", "keep last", "keep all", "unknown history"});
    std::replace(history.begin(), history.end(), '_', ' ');
    if (history == "keep last") history += " " + profile["depth"].as<std::string>("?");
    std::string text =
        qos_word(profile, "reliability", {"default reliability", "reliable", "best effort", "unknown"}) + ", " +
        qos_word(profile, "durability", {"default durability", "transient local", "volatile", "unknown"}) + ", " +
        history;
    std::replace(text.begin(), text.end(), '_', ' ');
    if (profiles.size() > 1) text += fmt::format(" (first of {} writers)", profiles.size());
    return text;
  } catch (const YAML::Exception&) {
    return {};
  }
}

template <typename T>
Json json_of(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

double ratio(const sensors::McapChunksInfo& chunks) {
  return chunks.compressed_bytes == 0
             ? 1.0
             : static_cast<double>(chunks.uncompressed_bytes) / static_cast<double>(chunks.compressed_bytes);
}

Json channel_json(const McapChannelInfo& info) {
  Json json = {{"id", info.channel.id},
               {"topic", info.channel.topic},
               {"type", info.schema_name},
               {"schema_encoding", info.schema_encoding},
               {"message_encoding", info.channel.message_encoding},
               {"count", info.count},
               {"bytes", json_of(info.bytes)},
               {"first", json_of(info.first)},
               {"last", json_of(info.last)},
               {"rate_hz", json_of(info.rate_hz)},
               {"qos", qos_text(info.channel)}};
  if (!info.sha256.empty()) json["sha256"] = info.sha256;
  return json;
}

// What is said of a topic, whatever its number of channels.
Json topics_json(const McapInfo& info) {
  Json topics = Json::object();
  for (const McapChannelInfo& channel : info.channels) {
    if (channel.count == 0) continue;
    Json& topic = topics[channel.channel.topic];
    if (topic.is_null()) {
      topic = channel_json(channel);
      for (const char* key : {"id", "topic", "rate_hz", "qos"}) topic.erase(key);
      continue;
    }
    topic["count"] = topic["count"].get<uint64_t>() + channel.count;
    topic.erase("sha256");  // of one channel only
    if (!channel.bytes) continue;
    topic["bytes"] = topic["bytes"].get<uint64_t>() + *channel.bytes;
    topic["first"] = std::min(topic["first"].get<uint64_t>(), *channel.first);
    topic["last"] = std::max(topic["last"].get<uint64_t>(), *channel.last);
  }
  return topics;
}

Json info_json(const McapInfo& info, const std::string& file) {
  Json json = {{"file", file},
               {"file_bytes", info.file_bytes},
               {"profile", info.profile},
               {"library", info.library},
               {"messages", info.messages},
               {"start_ns", json_of(info.start)},
               {"end_ns", json_of(info.end)},
               {"duration_s", info.start ? Json(static_cast<double>(*info.end - *info.start) * 1e-9) : Json(nullptr)},
               {"indexed", info.indexed},
               {"complete", info.complete},
               {"chunks", Json::array()},
               {"channels", Json::array()},
               {"topics", topics_json(info)},
               {"schemas", Json::array()},
               {"attachments", Json::array()},
               {"metadata", Json::array()},
               {"faults", info.faults}};
  for (const auto& chunks : info.chunks)
    json["chunks"].push_back({{"compression", chunks.compression},
                              {"count", chunks.count},
                              {"compressed_bytes", chunks.compressed_bytes},
                              {"uncompressed_bytes", chunks.uncompressed_bytes},
                              {"ratio", ratio(chunks)}});
  for (const auto& channel : info.channels) json["channels"].push_back(channel_json(channel));
  for (const auto& schema : info.schemas)
    json["schemas"].push_back(
        {{"id", schema.id}, {"name", schema.name}, {"encoding", schema.encoding}, {"bytes", schema.data.size()}});
  for (const auto& attachment : info.attachments)
    json["attachments"].push_back({{"name", attachment.name},
                                   {"media_type", attachment.media_type},
                                   {"bytes", attachment.data_size},
                                   {"log_time", attachment.log_time},
                                   {"create_time", attachment.create_time}});
  for (const auto& metadata : info.metadata) {
    Json entries = Json::object();
    for (const auto& [key, value] : metadata.metadata) entries[key] = value;
    json["metadata"].push_back({{"name", metadata.name}, {"metadata", entries}});
  }
  return json;
}

// "2018-07-24 03:28:47.647951 UTC", or the seconds where the time is none of a calendar's.
std::string time_text(uint64_t nanoseconds) {
  const auto seconds = static_cast<std::time_t>(nanoseconds / 1'000'000'000);
  std::tm parts{};
  char text[40];
  if (nanoseconds < uint64_t{86400} * 1'000'000'000 || ::gmtime_r(&seconds, &parts) == nullptr ||
      std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts) == 0)
    return fmt::format("{:.6f} s", static_cast<double>(nanoseconds) * 1e-9);
  return fmt::format("{}.{:06} UTC", text, nanoseconds / 1000 % 1'000'000);
}

void print_text(const McapInfo& info, const std::string& file) {
  fmt::print("{}: {} bytes, profile {}, written by {}\n", file, info.file_bytes,
             info.profile.empty() ? "none" : info.profile, info.library.empty() ? "unknown" : info.library);
  fmt::print("{} messages", info.messages);
  if (info.start)
    fmt::print(", {:.6f} s: {} to {}", static_cast<double>(*info.end - *info.start) * 1e-9, time_text(*info.start),
               time_text(*info.end));
  fmt::print("\n");
  for (const auto& chunks : info.chunks)
    fmt::print("{} chunks, compression {}: {} bytes of {}, ratio {:.2f}\n", chunks.count, chunks.compression,
               chunks.compressed_bytes, chunks.uncompressed_bytes, ratio(chunks));
  fmt::print("index: {}\n\n", info.indexed ? "yes" : "no, read from start to end");

  Table channels("Channels", {{"topic", "", 0, true},
                              {"type", "", 0, true},
                              {"encoding", "", 0},
                              {"messages", "", 0},
                              {"bytes", "", 0},
                              {"rate_hz", "", 2},
                              {"qos", "", 0, true}});
  for (const auto& channel : info.channels)
    channels.add_row({channel.channel.topic, channel.schema_name.empty() ? Cell() : Cell(channel.schema_name),
                      channel.channel.message_encoding, static_cast<int64_t>(channel.count),
                      channel.bytes ? Cell(static_cast<int64_t>(*channel.bytes)) : Cell(),
                      channel.rate_hz ? Cell(*channel.rate_hz) : Cell(), qos_text(channel.channel)});
  channels.notes = info.faults;
  fmt::print("{}", report::format_table(channels, report::Format::kText));
  for (const auto& attachment : info.attachments)
    fmt::print("attachment {}: {}, {} bytes\n", attachment.name, attachment.media_type, attachment.data_size);
  for (const auto& metadata : info.metadata)
    fmt::print("metadata {}: {} entries\n", metadata.name, metadata.metadata.size());
}

class SensorsInfo : public Word {
 public:
  const char* name() const override { return "info"; }
  const char* summary() const override { return "What is in an MCAP file, and whether it is whole"; }

  void declare(CLI::App& app) override {
    app.add_option("file", file_, "MCAP file, such as a bag of ROS 2")->required();
    app.add_option("--format", format_, "text or json")->capture_default_str();
    app.add_flag("--quick", options_.quick, "Only what the summary says: no message is read, no CRC checked");
    app.add_flag("--digests", options_.digests, "With --format json: SHA-256 of each channel's messages");
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(format_));
    if (format == report::Format::kCsv) return usage_error("--format csv: expected text or json");
    options_.threads = std::max(1, static_cast<int>(collect::allowed_cores()));
    STROBE_ASSIGN(const McapInfo info, sensors::describe_mcap(file_, options_));
    if (format == report::Format::kJson)
      fmt::print("{}\n", info_json(info, file_).dump(2, ' ', false, Json::error_handler_t::replace));
    else
      print_text(info, file_);
    if (!info.faults.empty())
      fmt::print(stderr, "note: {}: {} of its parts {} damaged or missing; what could be recovered is shown\n", file_,
                 info.faults.size(), info.faults.size() == 1 ? "is" : "are");
    return 0;
  }

 private:
  std::string file_;
  std::string format_ = "text";
  sensors::McapInfoOptions options_;
};

}  // namespace

std::unique_ptr<Word> make_sensors_info() {
  return std::make_unique<SensorsInfo>();
}

}  // namespace strobe::app
