// `strobe sensors replay`: a bag's messages over DDS at the pace of their log times.
#include "sensors_replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>

#include "interrupt.h"
#include "sensors/mcap_reader.h"
#include "sensors_command.h"

namespace strobe::app {

using namespace strobe::sensors;

namespace {

struct ReplayFlags {
  std::string bag, qos = "reliable", transport = "all", format = "text";
  double rate = 1, start = 0, end = -1, wait = 2;
  bool loop = false, clock = false, quiet = false;
  int domain = -1;
  std::vector<std::string> topics;
};

const std::string* find(const McapStringMap& map, std::string_view key) {
  for (const auto& [name, value] : map)
    if (name == key) return &value;
  return nullptr;
}

// The chosen messages of a bag that DDS can carry.
class BagSource : public MessageSource {
 public:
  static Result<std::unique_ptr<BagSource>> open(const ReplayFlags& flags) {
    auto source = std::make_unique<BagSource>();
    McapReadOptions options;
    options.threads = 2;
    STROBE_ASSIGN(McapReader reader, McapReader::open(flags.bag, options));
    source->reader_ = std::make_unique<McapReader>(std::move(reader));
    STROBE_TRY(source->choose_topics(flags));
    STROBE_TRY(source->choose_span(flags));
    STROBE_TRY(source->rewind());
    return source;
  }

  const std::vector<DdsTopic>& topics() const override { return topics_; }
  const std::vector<std::string>& left_out() const { return left_out_; }

  Result<bool> next(PacedMessage& message) override {
    for (McapMessageView view;;) {
      STROBE_ASSIGN(const bool more, messages_->next(view));
      if (!more) return false;
      const auto it = place_.find(view.channel->id);
      if (it == place_.end()) continue;
      message.topic = it->second;
      message.time_ns = static_cast<int64_t>(view.log_time);
      message.cdr = {reinterpret_cast<const uint8_t*>(view.data.data()), view.data.size()};
      return true;
    }
  }
  Result<void> rewind() override {
    messages_.emplace(reader_->messages(query_));
    return {};
  }

 private:
  Result<void> choose_topics(const ReplayFlags& flags) {
    const McapContents& contents = reader_->contents();
    std::vector<std::string> wanted = flags.topics;
    std::map<std::string, uint32_t> by_name;
    for (const auto& [id, channel] : contents.channels) {
      if (!flags.topics.empty()) {
        if (std::find(flags.topics.begin(), flags.topics.end(), channel.topic) == flags.topics.end()) continue;
        std::erase(wanted, channel.topic);
      }
      const auto schema = contents.schemas.find(channel.schema_id);
      const std::string type = schema == contents.schemas.end() ? "" : schema->second.name;
      if (channel.message_encoding != "cdr" || !dds_type_name(type) || !dds_topic_name(channel.topic)) {
        left_out_.push_back(fmt::format("{} ({} of type '{}')", channel.topic, channel.message_encoding, type));
        continue;
      }
      query_.topics.push_back(channel.topic);
      // Several channels of a topic are one writer each in the bag, and one writer here.
      const auto [it, is_new] = by_name.try_emplace(channel.topic, static_cast<uint32_t>(topics_.size()));
      place_[id] = it->second;
      if (!is_new) continue;
      const ros::MessageType* known = ros::find_message_type(type);
      DdsTopic topic{channel.topic, type, known != nullptr ? std::string(known->rihs01) : "", {}};
      if (const std::string* hash = find(channel.metadata, "topic_type_hash")) topic.type_hash = *hash;
      const std::string* offered = find(channel.metadata, "offered_qos_profiles");
      const ros::Qos recorded = parse_offered_qos(offered != nullptr ? *offered : "");
      topic.qos.durability = recorded.durability;  // what late readers are to get, like /tf_static, they get
      if (flags.qos == "recorded") topic.qos = recorded;
      if (flags.qos == "best-effort") topic.qos.reliability = ros::Qos::Reliability::kBestEffort;
      topics_.push_back(std::move(topic));
    }
    if (!wanted.empty()) return not_found(fmt::format("{}: no topic {}", flags.bag, wanted.front()));
    if (topics_.empty()) return unsupported(fmt::format("{}: no topic with messages of ROS 2 (CDR)", flags.bag));
    return {};
  }

  Result<void> choose_span(const ReplayFlags& flags) {
    McapReader& reader = *reader_;
    uint64_t first = 0;
    if (reader.contents().statistics) {
      first = reader.contents().statistics->message_start_time;
    } else {
      McapMessageView view;
      McapMessages all = reader.messages(query_);
      STROBE_ASSIGN(const bool any, all.next(view));
      if (any) first = view.log_time;
    }
    query_.start = first + static_cast<uint64_t>(flags.start * 1e9);
    if (flags.start <= 0) query_.start = 0;
    if (flags.end >= 0) query_.end = first + static_cast<uint64_t>(flags.end * 1e9);
    return {};
  }

  std::unique_ptr<McapReader> reader_;
  std::optional<McapMessages> messages_;
  McapQuery query_;
  std::vector<DdsTopic> topics_;
  std::map<uint16_t, uint32_t> place_;
  std::vector<std::string> left_out_;
};

class ReplayCommand : public Word {
 public:
  const char* name() const override { return "replay"; }
  const char* summary() const override { return "A bag's messages as ROS 2 topics"; }

  void declare(CLI::App& app) override {
    ReplayFlags& f = flags_;
    app.add_option("bag", f.bag, "MCAP file with ROS 2 messages")->required();
    app.add_option("--rate", f.rate, "Factor of speed")->capture_default_str();
    app.add_flag("--loop", f.loop, "Again from the beginning, until Ctrl-C");
    app.add_option("--start", f.start, "From so many seconds after the beginning on")->capture_default_str();
    app.add_option("--end", f.end, "Up to so many seconds after the beginning (default: all)");
    app.add_option("--topics", f.topics, "Only these, e.g. /lidar,/tf")->delimiter(',');
    app.add_flag("--clock", f.clock, "Publish /clock with the bag's time");
    app.add_option("--qos", f.qos, "reliable (any reader matches), recorded or best-effort")->capture_default_str();
    app.add_option("--domain", f.domain, "Default: ROS_DOMAIN_ID, else 0");
    app.add_option("--transport", f.transport, "all, udp or shared-memory")->capture_default_str();
    app.add_option("--wait", f.wait, "Seconds to wait for a first reader, at most")->capture_default_str();
    app.add_option("--format", f.format, "text, csv or json")->capture_default_str();
    app.add_flag("-q,--quiet", f.quiet, "No remarks on stderr");
    app.footer("Example:\n  strobe sensors replay drive.mcap --rate 2 --loop --topics /LIDAR_TOP,/tf");
  }

  Result<int> run() override {
    STROBE_ASSIGN(const report::Format format, report::parse_format(flags_.format));
    if (flags_.qos != "reliable" && flags_.qos != "recorded" && flags_.qos != "best-effort")
      return usage_error(fmt::format("--qos {}: expected reliable, recorded or best-effort", flags_.qos));
    if (!(flags_.rate > 0 && flags_.rate < 1e6))
      return usage_error(fmt::format("--rate {:g}: expected a number above 0", flags_.rate));
    constexpr double kLongest_s = 1e9;
    if (!(flags_.start >= 0 && flags_.start < kLongest_s))
      return usage_error(fmt::format("--start {:g}: expected seconds, 0 or more", flags_.start));
    if (flags_.end != -1 && !(flags_.end > flags_.start && flags_.end < kLongest_s))
      return usage_error(fmt::format("--end {:g}: expected more than --start", flags_.end));
    if (!(flags_.wait >= 0 && flags_.wait < 1e6))
      return usage_error(fmt::format("--wait {:g}: expected seconds, 0 or more", flags_.wait));
    DdsOptions dds;
    STROBE_ASSIGN(dds.transport, parse_transport(flags_.transport));
    if (flags_.domain != -1) dds.domain = flags_.domain;
    STROBE_ASSIGN(const std::unique_ptr<BagSource> source, BagSource::open(flags_));
    STROBE_ASSIGN(const std::shared_ptr<DdsParticipant> participant, join_dds(dds));

    ReplayOptions options;
    options.rate = flags_.rate, options.loop = flags_.loop, options.clock = flags_.clock;
    options.wait = std::chrono::milliseconds(static_cast<int64_t>(flags_.wait * 1000));
    STROBE_ASSIGN(
        const ReplaySummary summary,
        sensors::replay(*source, *participant, options, stop_on_interrupt(), [&](const std::string& sentence) {
          if (!flags_.quiet) std::fprintf(stderr, "strobe: %s\n", sentence.c_str());
        }));
    std::vector<std::string> notes;
    for (const std::string& topic : source->left_out())
      notes.push_back("Left out, as no ROS 2 message: " + topic + ".");
    print_sent("Replay of " + flags_.bag, summary, std::move(notes), format);
    return 0;
  }

 private:
  ReplayFlags flags_;
};

}  // namespace

Result<DdsTransport> parse_transport(const std::string& name) {
  if (name == "all") return DdsTransport::kAll;
  if (name == "udp") return DdsTransport::kUdp;
  if (name == "shared-memory") return DdsTransport::kSharedMemory;
  return usage_error(fmt::format("--transport {}: expected all, udp or shared-memory", name));
}

void print_sent(const std::string& title, const ReplaySummary& summary, std::vector<std::string> notes,
                report::Format format) {
  if (format == report::Format::kJson) {
    nlohmann::json topics = nlohmann::json::array();
    for (const auto& topic : summary.topics)
      topics.push_back({{"topic", topic.name},
                        {"messages", topic.messages},
                        {"readers", topic.readers},
                        {"readers_gone", topic.readers_gone}});
    const nlohmann::json all = {
        {"messages", summary.messages},
        {"bytes", summary.bytes},
        {"rounds", summary.rounds},
        {"seconds", summary.seconds},
        {"late_ms", {{"p50", summary.late_p50_ms}, {"p99", summary.late_p99_ms}, {"max", summary.late_max_ms}}},
        {"stopped", summary.stopped},
        {"topics", topics},
        {"notes", notes}};
    fmt::print("{}\n", all.dump(2));
    return;
  }
  Table table(title, {{"topic", "name in ROS"},
                      {"messages", "sent"},
                      {"readers", "at the end"},
                      {"readers_gone", "that were there and went"}});
  for (const auto& topic : summary.topics) {
    table.add_row(
        {topic.name, static_cast<int64_t>(topic.messages), int64_t{topic.readers}, int64_t{topic.readers_gone}});
  }
  table.notes.push_back(fmt::format(
      "{} messages, {:.1f} MB, {} round{} in {:.2f} s{}.", summary.messages, static_cast<double>(summary.bytes) / 1e6,
      summary.rounds, summary.rounds == 1 ? "" : "s", summary.seconds, summary.stopped ? ", then stopped" : ""));
  table.notes.push_back(fmt::format("Late after the recorded pace: p50 {:.3f} ms, p99 {:.3f} ms, max {:.3f} ms.",
                                    summary.late_p50_ms, summary.late_p99_ms, summary.late_max_ms));
  for (std::string& note : notes) table.notes.push_back(std::move(note));
  fmt::print("{}", report::format_table(table, format));
}

std::unique_ptr<Word> make_sensors_replay() {
  return std::make_unique<ReplayCommand>();
}

}  // namespace strobe::app
