#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/suggest.h"
#include "sensors/mcap_file.h"
#include "sensors/mcap_listing.h"
#include "sensors/mcap_reader.h"
#include "sensors/ros_schema.h"
#include "sensors_command.h"

namespace strobe::app {

namespace {

// One line a message: where and when, and what it says by its own schema.
class MessagePrinter {
 public:
  explicit MessagePrinter(size_t most_elements) : options_{most_elements} {}

  std::string line(const sensors::McapMessageView& message) {
    const sensors::McapChannel& channel = *message.channel;
    const auto text = [](std::string_view value) {
      return nlohmann::json(value).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    };
    return fmt::format(R"({{"topic":{},"type":{},"log_time":{},"publish_time":{},"sequence":{},{}}})",
                       text(channel.topic), text(message.schema ? message.schema->name : ""), message.log_time,
                       message.publish_time, message.sequence, content(message));
  }
  // Of channels whose messages could not be told, once each.
  const std::map<uint16_t, std::string>& faults() const { return faults_; }

 private:
  std::string content(const sensors::McapMessageView& message) {
    const sensors::Bytes bytes(reinterpret_cast<const uint8_t*>(message.data.data()), message.data.size());
    if (message.channel->message_encoding == "cdr" && message.schema && message.schema->encoding == "ros2msg") {
      if (const sensors::ros::Schema* schema = schema_of(message)) {
        if (auto printed = schema->print(bytes, options_))
          return R"("message":)" + *printed;
        else
          fault(message, printed.error().message());
      }
    } else if (message.channel->message_encoding == "json") {
      // Deeper than any message, and no deeper than the stack allows.
      constexpr int kDepth = 256;
      bool shallow = true;
      const auto look = [&](int depth, nlohmann::json::parse_event_t, const nlohmann::ordered_json&) {
        return shallow = shallow && depth < kDepth;
      };
      const auto json = nlohmann::ordered_json::parse(bytes.begin(), bytes.end(), look, false);
      if (!json.is_discarded() && shallow)
        return R"("message":)" + json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
      fault(message, shallow ? "a message is no JSON" : "a message is deeper than any should be");
    } else {
      fault(message, fmt::format("messages in encoding '{}' with a schema in '{}' are not told, expected cdr with "
                                 "ros2msg, or json",
                                 message.channel->message_encoding, message.schema ? message.schema->encoding : ""));
    }
    return fmt::format(R"("bytes":{})", bytes.size());
  }

  const sensors::ros::Schema* schema_of(const sensors::McapMessageView& message) {
    auto place = schemas_.find(message.schema->id);
    if (place == schemas_.end())
      place =
          schemas_.emplace(message.schema->id, sensors::ros::Schema::parse(message.schema->name, message.schema->data))
              .first;
    if (place->second) return &*place->second;
    fault(message, place->second.error().message());
    return nullptr;
  }

  void fault(const sensors::McapMessageView& message, const std::string& why) {
    faults_.try_emplace(message.channel->id, message.channel->topic + ": " + why);
  }

  sensors::ros::PrintOptions options_;
  std::map<uint16_t, Result<sensors::ros::Schema>> schemas_;
  std::map<uint16_t, std::string> faults_;
};

class SensorsDump : public Word {
 public:
  const char* name() const override { return "dump"; }
  const char* summary() const override { return "Every record or message of an MCAP file, as JSON"; }

  void declare(CLI::App& app) override {
    app.add_option("file", file_, "MCAP file (with --write: a listing)")->required();
    app.add_flag("--records", records_, "One JSON object a record, one a line (the default)");
    auto* messages = app.add_flag(
        "--messages", messages_, "Instead: one JSON object a message in the order of log times, decoded by its schema");
    app.add_option("--topic", topics_, "Of these topics alone")->needs(messages);
    app.add_option("--elements", elements_, "So many of a longer array, and how many more; 0: all")
        ->needs(messages)
        ->capture_default_str();
    // The way back, for the format's conformance tests.
    app.add_option("--write", write_, "Instead: the MCAP file of which FILE is the listing")->group("");
  }

  Result<int> run() override {
    if (!write_.empty()) {
      STROBE_ASSIGN(const std::string listing, read_file(file_));
      if (auto done = sensors::write_listing(listing, write_); !done) return std::move(done).error().at(file_);
      return 0;
    }
    if (messages_) return print_messages();
    STROBE_ASSIGN(const sensors::McapFile file, sensors::McapFile::open(file_));
    bool failed = false;
    auto faults = sensors::list_records(file.bytes(), [&](std::string_view line) {
      if (std::fwrite(line.data(), 1, line.size(), stdout) != line.size() || std::fputc('\n', stdout) == EOF)
        failed = true;
    });
    if (!faults) return std::move(faults).error().at(file_);
    if (!failed && std::fflush(stdout) != 0) failed = true;
    for (const std::string& fault : *faults) std::fprintf(stderr, "note: %s: %s\n", file_.c_str(), fault.c_str());
    // A reader that closed the pipe has seen enough.
    if (failed && errno != EPIPE) return io_error_errno("standard output");
    return 0;
  }

 private:
  Result<int> print_messages() {
    STROBE_ASSIGN(const sensors::McapReader reader, sensors::McapReader::open(file_));
    for (const std::string& topic : topics_) {
      std::vector<std::string> known;
      for (const auto& [id, channel] : reader.contents().channels) known.push_back(channel.topic);
      if (std::ranges::find(known, topic) == known.end())
        return not_found(fmt::format("no topic {}; {}", topic, suggest(topic, known))).at(file_);
    }
    sensors::McapQuery query;
    query.topics = topics_;
    sensors::McapMessages messages = reader.messages(query);
    MessagePrinter printer(elements_);
    for (;;) {
      sensors::McapMessageView message;
      STROBE_ASSIGN(const bool more, messages.next(message));
      if (!more) break;
      const std::string line = printer.line(message) + "\n";
      if (std::fwrite(line.data(), 1, line.size(), stdout) == line.size()) continue;
      if (errno == EPIPE) return 0;  // its reader has seen enough
      return io_error_errno("standard output");
    }
    if (std::fflush(stdout) != 0 && errno != EPIPE) return io_error_errno("standard output");
    for (const auto* list : {&reader.faults(), &messages.faults()})
      for (const std::string& fault : *list) std::fprintf(stderr, "note: %s: %s\n", file_.c_str(), fault.c_str());
    for (const auto& [channel, fault] : printer.faults())
      std::fprintf(stderr, "note: %s: %s\n", file_.c_str(), fault.c_str());
    return 0;
  }

  std::string file_, write_;
  std::vector<std::string> topics_;
  size_t elements_ = 16;
  bool records_ = false, messages_ = false;
};

}  // namespace

std::unique_ptr<Word> make_sensors_dump() {
  return std::make_unique<SensorsDump>();
}

}  // namespace strobe::app
