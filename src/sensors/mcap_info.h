// What is in an MCAP file, and whether it is whole.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "sensors/mcap_reader.h"

namespace strobe::sensors {

struct McapInfoOptions {
  bool quick = false;    // only what the summary says, where there is one: no CRC is checked, no message is read
  bool digests = false;  // SHA-256 of each channel's messages; holds all of one topic's in memory at a time
  int threads = 1;
};

struct McapChannelInfo {
  McapChannel channel;
  std::string schema_name, schema_encoding;
  uint64_t count = 0;
  // Not known where only the summary was read:
  std::optional<uint64_t> bytes;        // of payload
  std::optional<uint64_t> first, last;  // log times, ns; none without messages
  std::optional<double> rate_hz;        // (count - 1) / (last - first)
  // Where it was asked for: over each message's log time, publish time (uint64), sequence (uint32), little endian, and
  // payload, in the order of log times.
  std::string sha256;
};

struct McapChunksInfo {
  std::string compression;  // "none", "lz4", "zstd", or what the file says
  uint64_t count = 0, compressed_bytes = 0, uncompressed_bytes = 0;
};

struct McapInfo {
  uint64_t file_bytes = 0;
  std::string profile, library;
  uint64_t messages = 0;
  std::optional<uint64_t> start, end;  // log times, ns; none without messages
  std::vector<McapChannelInfo> channels;
  std::vector<McapChunksInfo> chunks;
  std::vector<McapSchema> schemas;
  std::vector<McapAttachmentIndex> attachments;
  std::vector<McapMetadata> metadata;
  bool indexed = false, complete = false;
  std::vector<std::string> faults;
};

// Errors: those of McapReader::open.
Result<McapInfo> describe_mcap(const std::filesystem::path& path, const McapInfoOptions& options = {});

}  // namespace strobe::sensors
