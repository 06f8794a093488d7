#include "record/spool_scan.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "base/crc32.h"
#include "record/zstd_codec.h"

namespace strobe::record {
namespace {

bool known_version(uint32_t version) {
  return version >= kOldestFormatVersion && version <= kFormatVersion;
}

constexpr uint64_t kMaxRingWords = uint64_t{1} << 28;

// Text of a fixed field, up to its 0.
template <size_t N>
std::string text_of(const char (&field)[N]) {
  return {field, ::strnlen(field, N)};
}

template <typename T>
bool read_at(std::ifstream& file, uint64_t offset, T* to, size_t bytes) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(offset));
  file.read(reinterpret_cast<char*>(to), static_cast<std::streamsize>(bytes));
  return static_cast<size_t>(file.gcount()) == bytes;
}

template <typename T>
std::optional<T> value_of(const std::vector<uint8_t>& payload) {
  if (payload.size() != sizeof(T)) return std::nullopt;
  T value{};
  std::memcpy(&value, payload.data(), sizeof value);
  return value;
}

// The magic is the last that is written of a header, and is 0 before.
bool is_unmade(const char (&magic)[8]) {
  return std::all_of(std::begin(magic), std::end(magic), [](char byte) { return byte == 0; });
}

// Takes one whole block into the scan.
bool take(SpoolScan& scan, const BlockHeader& header, const BlockPlace& place) {
  std::vector<uint8_t> payload;
  if (header.kind != BlockKind::kRecords && !scan.read(place, payload)) return false;
  switch (header.kind) {
    case BlockKind::kThreadBegin: {
      const auto info = value_of<ThreadInfo>(payload);
      if (!info) return false;
      scan.threads[header.serial].tid = info->tid;
      return true;
    }
    case BlockKind::kRecords:
      if (header.to < header.from) return false;
      scan.threads[header.serial].blocks.push_back(place);
      return true;
    case BlockKind::kClock: {
      const auto pair = value_of<ClockPair>(payload);
      if (!pair) return false;
      scan.clock.push_back(*pair);
      return true;
    }
    case BlockKind::kThreadEnd: {
      const auto dropped = value_of<uint64_t>(payload);
      if (!dropped) return false;
      ThreadBlocks& thread = scan.threads[header.serial];
      thread.ended = true;
      thread.end = header.to;
      thread.dropped = *dropped;
      return true;
    }
    case BlockKind::kProcessEnd:
      scan.ended = true;
      return true;
  }
  return false;
}

}  // namespace

std::optional<std::string> read_whole(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(file), {});
}

std::optional<RingCopy> read_ring(const std::filesystem::path& path, Faults& faults) {
  std::ifstream file(path, std::ios::binary);
  RingHeader header{};
  std::error_code failed;
  const uint64_t size = std::filesystem::file_size(path, failed);
  const bool whole = !failed && read_at(file, 0, &header, sizeof header);
  // Its making was cut short: nothing was ever in it.
  if (!failed && is_unmade(header.magic)) return std::nullopt;
  if (!whole || std::memcmp(header.magic, kRingMagic, 8) != 0 || !known_version(header.version) ||
      header.header_bytes != kHeaderBytes || !std::has_single_bit(header.capacity_words) ||
      header.capacity_words > kMaxRingWords || size != kHeaderBytes + header.capacity_words * 8) {
    ++faults["damaged ring"];
    return std::nullopt;
  }
  RingCopy ring;
  ring.serial = header.serial.load();
  if (ring.serial == 0) return std::nullopt;
  ring.tid = header.tid;
  ring.head = header.head.load();
  ring.tail = header.tail.load();
  ring.dropped = header.dropped.load();
  if (ring.tail > ring.head || ring.head - ring.tail > header.capacity_words) {
    ++faults["damaged ring"];
    return std::nullopt;
  }
  ring.words.resize(header.capacity_words);
  if (!read_at(file, kHeaderBytes, ring.words.data(), header.capacity_words * 8)) {
    ++faults["damaged ring"];
    return std::nullopt;
  }
  // Given to another thread meanwhile: its records are in the spool.
  RingHeader after{};
  if (read_at(file, 0, &after, sizeof after) && after.serial.load() != ring.serial) return std::nullopt;
  return ring;
}

bool SpoolScan::read(const BlockPlace& place, std::vector<uint8_t>& payload) {
  stored.resize(place.stored_bytes);
  if (!read_at(file, place.offset, stored.data(), stored.size())) return false;
  if (place.codec == Codec::kPlain) {
    payload = stored;
    return true;
  }
  payload.resize(place.plain_bytes);
  return place.codec == Codec::kZstd && zstd_decompress(stored, payload);
}

bool never_began(const std::filesystem::path& stem) {
  std::ifstream file(stem.string() + ".spool", std::ios::binary);
  SpoolHeader header{};
  read_at(file, 0, &header, sizeof header);
  std::error_code failed;
  const uint64_t size = std::filesystem::file_size(stem.string() + ".spool", failed);
  if (failed || !is_unmade(header.magic) || size > kHeaderBytes) return false;
  // The next file is made when this one has its page.
  return size == kHeaderBytes || !std::filesystem::exists(stem.string() + ".names", failed);
}

std::optional<SpoolScan> scan_spool(const std::filesystem::path& path, Faults& faults) {
  SpoolScan scan;
  scan.file.open(path, std::ios::binary);
  SpoolHeader header{};
  if (!read_at(scan.file, 0, &header, sizeof header) || std::memcmp(header.magic, kSpoolMagic, 8) != 0 ||
      !known_version(header.version) || header.header_bytes != kHeaderBytes) {
    ++faults["unreadable spool header"];
    return std::nullopt;
  }
  scan.pid = header.pid;
  scan.header_clock_is_counter = header.clock_is_counter != 0;
  scan.process_name = text_of(header.process_name);
  scan.clock_note = text_of(header.clock_note);
  scan.unattached_dropped = header.unattached_dropped.load();
  scan.clock = {header.first, header.second};

  std::vector<uint8_t> bytes;
  bool lost = false;  // looking for the next block after damage
  for (uint64_t offset = kHeaderBytes;;) {
    BlockHeader block{};
    if (!read_at(scan.file, offset, &block, sizeof block)) break;
    BlockPlace place{offset + sizeof block, block.stored_bytes, block.plain_bytes, block.codec, block.from, block.to};
    bool whole =
        block.magic == kBlockMagic && block.stored_bytes <= kMaxBlockBytes && block.plain_bytes <= kMaxBlockBytes;
    if (whole) {
      bytes.resize(sizeof block + block.stored_bytes);
      whole = read_at(scan.file, offset, bytes.data(), bytes.size()) &&
              crc32(bytes.data() + 8, bytes.size() - 8) == block.crc && take(scan, block, place);
    }
    if (whole) {
      offset = place.offset + (place.stored_bytes + 7) / 8 * 8;
      lost = false;
      continue;
    }
    if (!lost) ++faults["damaged block"];
    lost = true;
    offset += 8;  // blocks start at multiples of 8
  }
  return scan;
}

}  // namespace strobe::record
