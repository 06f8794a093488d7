// Strobe's half of mcap_rates.py: writes or reads one file and prints the seconds that it took.
//   strobe_mcap_peer write FILE PAYLOAD COUNT COMPRESSION LEVEL THREADS
//   strobe_mcap_peer read FILE THREADS [order]
#include <fmt/format.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <string>

#include "base/crc32.h"
#include "base/file.h"
#include "sensors/mcap_reader.h"
#include "sensors/mcap_writer.h"

using namespace strobe;
using namespace strobe::sensors;

namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double write(const std::string& file, const std::string& payload, uint32_t count, const McapWriteOptions& options) {
  // A payload of its own for each message, as another program would have it: its first bytes change.
  std::string data = payload;
  const auto start = std::chrono::steady_clock::now();
  McapWriter writer = McapWriter::create(file, options).value();
  const uint16_t schema = writer.add_schema({0, "sensor_msgs/msg/PointCloud2", "ros2msg", "uint8[] data"}).value();
  const uint16_t channel = writer.add_channel({0, schema, "/LIDAR_TOP", "cdr", {}}).value();
  for (uint32_t i = 0; i < count; ++i) {
    const uint64_t time = uint64_t{i} * 50'000'000;
    std::memcpy(data.data(), &time, sizeof time);
    writer.write({channel, i, time, time, {reinterpret_cast<const uint8_t*>(data.data()), data.size()}}).value();
  }
  writer.close().value();
  return seconds_since(start);
}

double read(const std::string& file, int threads, bool by_time) {
  const auto start = std::chrono::steady_clock::now();
  McapReadOptions options;
  options.threads = threads;
  const McapReader reader = McapReader::open(file, options).value();
  McapQuery query;
  query.order = by_time ? McapQuery::Order::kLogTime : McapQuery::Order::kFile;
  McapMessages messages = reader.messages(query);
  McapMessageView message;
  uint64_t bytes = 0;
  while (messages.next(message).value()) bytes += message.data.size() + message.data.back();
  if (bytes == 0 || !messages.faults().empty()) std::abort();
  return seconds_since(start);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "write" && argc == 8) {
    McapWriteOptions options;
    options.compression = parse_mcap_compression(argv[5]).value();
    options.level = std::string(argv[6]) == "fastest" ? McapLevel::kFastest : McapLevel::kDefault;
    options.threads = std::atoi(argv[7]);
    fmt::print("{}\n", write(argv[2], read_file(argv[3]).value(), static_cast<uint32_t>(std::atoi(argv[4])), options));
  } else if (what == "read" && argc == 5) {
    fmt::print("{}\n", read(argv[2], std::atoi(argv[3]), std::string(argv[4]) == "time"));
  } else if (what == "crc" && argc == 3) {
    const std::string bytes = read_file(argv[2]).value();
    const auto start = std::chrono::steady_clock::now();
    uint32_t crc = 0;
    for (int i = 0; i < 1000; ++i) crc = crc32(bytes.data(), bytes.size(), crc);
    fmt::print("{} {:08x}\n", seconds_since(start) / 1000, crc);
  } else {
    fmt::print(stderr, "see the head of mcap.cc\n");
    return 2;
  }
  return 0;
}
