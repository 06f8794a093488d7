// A stream of ROS 2 messages as a bag: an MCAP file with profile "ros2" and, beside it, the metadata.yaml by which
// ROS 2's tools and others open its folder.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "sensors/mcap_writer.h"
#include "sensors/nuscenes_stream.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

struct BagTopic {
  StreamTopic topic;
  uint64_t messages = 0, bytes = 0;
};

struct BagSummary {
  std::vector<BagTopic> topics;
  uint64_t messages = 0, bytes = 0;  // of messages, uncompressed
  int64_t first_ns = 0, last_ns = 0;
  // False where a metadata.yaml of another bag stands beside the file, which is left alone.
  bool metadata_beside = true;
};

struct BagOptions {
  McapCompression compression = McapCompression::kZstd;
  int threads = 1;
  std::string source;  // what the stream is of, kept in the bag's metadata "strobe"
};

// `stop` is asked before each message; true ends the bag there, whole. Errors: those of the stream, kIo.
Result<BagSummary> write_bag(NuScenesStream& stream, const std::filesystem::path& path, const BagOptions& options,
                             const std::function<bool(uint64_t messages)>& stop);

}  // namespace strobe::sensors
