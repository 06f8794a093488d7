// MCAP files for tests: random messages on a few channels, written with any options.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "sensors/mcap_reader.h"
#include "sensors/mcap_writer.h"

namespace strobe::sensors::test {

struct Sent {
  std::string topic;
  uint32_t sequence = 0;
  uint64_t log_time = 0, publish_time = 0;
  std::string data;
  bool operator==(const Sent&) const = default;
  bool operator<(const Sent& other) const { return sequence < other.sequence; }
};

inline ByteView as_bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Sequence numbers count; log times wander by up to `disorder` ns around a steady pace of 1000 ns, and repeat.
inline std::vector<Sent> random_messages(size_t count, uint32_t seed, uint64_t disorder = 20'000,
                                         size_t largest = 300) {
  std::mt19937 random(seed);
  std::vector<Sent> messages;
  for (uint32_t i = 0; i < count; ++i) {
    Sent message;
    message.topic = "/topic" + std::to_string(random() % 3);
    message.sequence = i;
    message.log_time = 1'000'000 + i * 1000 + random() % (disorder + 1) / 500 * 500;
    message.publish_time = message.log_time - 7;
    message.data.resize(random() % (largest + 1));
    for (char& byte : message.data) byte = static_cast<char>(random() % 4);  // compresses
    messages.push_back(std::move(message));
  }
  return messages;
}

// Three channels, one without a schema; an attachment and metadata in between.
inline void write(const std::filesystem::path& path, const std::vector<Sent>& messages,
                  const McapWriteOptions& options) {
  McapWriter writer = McapWriter::create(path, options).value();
  const uint16_t schema = writer.add_schema({0, "a/msg/B", "ros2msg", "uint8[] data"}).value();
  uint16_t ids[3];
  for (size_t i = 0; i < 3; ++i)
    ids[i] = writer.add_channel({0, i == 2 ? uint16_t{0} : schema, "/topic" + std::to_string(i), "cdr", {{"k", "v"}}})
                 .value();
  for (size_t i = 0; i < messages.size(); ++i) {
    const Sent& m = messages[i];
    if (i == messages.size() / 2) {
      const std::string text = "calibration";
      writer.attach({5, 6, "notes.txt", "text/plain", as_bytes(text), 0}).value();
      writer.add_metadata({"weather", {{"rain", "10"}, {"fog", "no"}}}).value();
    }
    writer.write({ids[m.topic.back() - '0'], m.sequence, m.log_time, m.publish_time, as_bytes(m.data)}).value();
  }
  writer.close().value();
}

inline Sent as_sent(const McapMessageView& message) {
  return {message.channel->topic, message.sequence, message.log_time, message.publish_time,
          std::string(message.data.begin(), message.data.end())};
}

inline std::vector<Sent> read_all(const McapReader& reader, const McapQuery& query = {}) {
  std::vector<Sent> all;
  McapMessages messages = reader.messages(query);
  McapMessageView message;
  while (messages.next(message).value()) all.push_back(as_sent(message));
  return all;
}

inline std::vector<Sent> by_time(std::vector<Sent> messages) {
  std::stable_sort(messages.begin(), messages.end(),
                   [](const Sent& a, const Sent& b) { return a.log_time < b.log_time; });
  return messages;
}

}  // namespace strobe::sensors::test
