// The files of one process, read into memory or indexed; damage is counted and stepped over.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "record/layout.h"

namespace strobe::record {

using Faults = std::map<std::string, uint64_t>;

// A ring as it was at one moment; only [tail, head) of it means anything, and less of it once the drain moves on.
struct RingCopy {
  uint32_t serial = 0;
  int32_t tid = 0;
  uint64_t head = 0, tail = 0, dropped = 0;
  std::vector<uint64_t> words;  // a power of two of them
};
// Nothing: it belongs to no thread, was never finished, or is damaged (counted).
std::optional<RingCopy> read_ring(const std::filesystem::path& path, Faults& faults);

std::optional<std::string> read_whole(const std::filesystem::path& path);

struct BlockPlace {
  uint64_t offset = 0;  // of the payload in the file
  uint32_t stored_bytes = 0, plain_bytes = 0;
  Codec codec{};
  uint64_t from = 0, to = 0;
};
struct ThreadBlocks {
  int32_t tid = 0;
  std::vector<BlockPlace> blocks;
  bool ended = false;
  uint64_t end = 0, dropped = 0;
};
struct SpoolScan {
  int32_t pid = 0;
  bool header_clock_is_counter = false;
  std::string process_name, clock_note;
  uint64_t unattached_dropped = 0;
  std::vector<ClockPair> clock;
  std::map<uint32_t, ThreadBlocks> threads;  // by serial
  bool ended = false;

  // The payload of a block, decompressed; false when it is damaged.
  bool read(const BlockPlace& place, std::vector<uint8_t>& payload);
  std::ifstream file;
  std::vector<uint8_t> stored;
};
// Whether the process ended while it made these files: then nothing was ever recorded.
bool never_began(const std::filesystem::path& stem);

// Nothing: there is no readable header (counted).
std::optional<SpoolScan> scan_spool(const std::filesystem::path& path, Faults& faults);

}  // namespace strobe::record
