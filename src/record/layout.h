// What lies in a recorder's files (docs/spool-format.md): rings that the recorded threads write, and the spool into
// which the drain moves them. All numbers are little-endian.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace strobe::record {

static_assert(std::endian::native == std::endian::little, "the spool is little-endian");

// Written; version 1 lacks the record types from kCounterInt on and all flags but kWideFrame.
inline constexpr uint32_t kFormatVersion = 2;
inline constexpr uint32_t kOldestFormatVersion = 1;
inline constexpr size_t kHeaderBytes = 4096;  // of spool and ring: one page, mapped on its own

// One record of a ring: a first word [type:8 | low 56 bits of the clock, or other payload], then what the comment says.
enum class RecordType : uint8_t {
  kRangeBegin = 1,   // [frame + 1 : 32 | name : 32]
  kRangeEnd = 2,     //
  kAsyncBegin = 3,   // [frame + 1 : 32 | name : 32] [id]
  kAsyncEnd = 4,     // [name] [id]
  kArgInt = 5,       // first word: name; [value]
  kArgDouble = 6,    // first word: name; [value]
  kArgText = 7,      // first word: name; [length] [bytes...]
  kFlowOut = 8,      // [name] [id]
  kFlowIn = 9,       // [name] [id]
  kMark = 10,        // [frame + 1 : 32 | name : 32]
  kCounter = 11,     // [name] [value]
  kThreadName = 12,  // [length] [bytes...]
  kFact = 13,        // [value length : 32 | key length : 32] [bytes of key and value...]
  kDropped = 14,     // [count]
  kDefine = 15,  // first word: slot; [length] [bytes...]: names with kDynamicName | slot mean this text from here on
  kCounterInt = 16,   // [name] [value]
  kAsyncEndAny = 17,  // [id]: whatever its name
  kLast = kAsyncEndAny,
};
// In blocks only: [name] [key + 1, or 0] makes the next shape of the block, from 0: a range's name and, if it has one,
// the key of the integer that follows its begin at once. A begin of a shape is then one byte, kShaped | shape | flags,
// its time, its frame unless it is the last one's, and its integer unless it is the shape's last one.
inline constexpr uint8_t kDefineShape = 18;
inline constexpr uint8_t kShaped = 0x20;
inline constexpr uint8_t kMaxShapes = 32;
inline constexpr uint8_t kSameFrame = 0x40;
inline constexpr uint8_t kSameValue = 0x80;
// Flags in the byte of the type. Of kRangeBegin, kAsyncBegin, kMark: the frame does not fit 32 bits and follows in a
// word; a category follows in a last word (a name id whose text is that of category_text).
inline constexpr uint8_t kWideFrame = 0x40;
inline constexpr uint8_t kCategorized = 0x80;
// Of kArg...: the payload belongs to the mark, asynchronous begin or end before it, not to the innermost open range.
inline constexpr uint8_t kOfEvent = 0x40;
// Of kCounter, kCounterInt: the thread's own, not the process's.
inline constexpr uint8_t kOfThread = 0x40;
inline constexpr uint8_t kFlags = 0xC0;
constexpr uint8_t allowed_flags(RecordType type) {
  switch (type) {
    case RecordType::kRangeBegin:
    case RecordType::kAsyncBegin:
    case RecordType::kMark:
      return kWideFrame | kCategorized;
    case RecordType::kArgInt:
    case RecordType::kArgDouble:
    case RecordType::kArgText:
      return kOfEvent;
    case RecordType::kCounter:
    case RecordType::kCounterInt:
      return kOfThread;
    default:
      return 0;
  }
}
// Set in a name id: the low bits are a slot of the thread's own table, not an index of the names file.
inline constexpr uint32_t kDynamicName = 0x8000'0000U;

inline constexpr int kClockBits = 56;
inline constexpr uint64_t kClockMask = (uint64_t{1} << kClockBits) - 1;
inline constexpr uint64_t first_word(RecordType type, uint64_t payload) {
  return uint64_t{static_cast<uint8_t>(type)} << kClockBits | (payload & kClockMask);
}

// The same instant on the recorder's counter and on the system's clocks; width_ns says how far apart they were read.
struct ClockPair {
  uint64_t counter = 0;
  int64_t monotonic_ns = 0;
  int64_t realtime_ns = 0;
  int64_t width_ns = 0;
};

// First page of a .spool file. Counters in it are written in place while recording.
struct SpoolHeader {
  char magic[8];  // "STROBESP"
  uint32_t version;
  uint32_t header_bytes;
  int32_t pid;
  uint32_t clock_is_counter;  // 1: counter ticks that need the clock pairs; 0: nanoseconds of CLOCK_MONOTONIC
  ClockPair first, second;    // taken at start, a few ms apart
  char process_name[256];     // ends with 0
  char clock_note[256];       // why this clock, for people; ends with 0
  std::atomic<uint64_t> unattached_dropped;  // records of threads that got no ring
};
static_assert(sizeof(SpoolHeader) <= kHeaderBytes);
inline constexpr char kSpoolMagic[9] = "STROBESP";

// First page of a .ring file; capacity_words words follow. Positions count words since the ring's thread began and
// never wrap; word p lies at index p % capacity.
struct RingHeader {
  char magic[8];  // "STROBERG"
  uint32_t version;
  uint32_t header_bytes;
  uint64_t capacity_words;       // a power of two
  std::atomic<uint32_t> serial;  // of the thread within its process, from 1; 0: nobody's
  int32_t tid;
  alignas(64) std::atomic<uint64_t> head;  // words before it are whole records; written by the thread
  std::atomic<uint64_t> dropped;           // records lost so far; written by the thread
  alignas(64) std::atomic<uint64_t> tail;  // words before it are in the spool; written by the drain
};
static_assert(sizeof(RingHeader) <= kHeaderBytes && std::atomic<uint64_t>::is_always_lock_free);
inline constexpr char kRingMagic[9] = "STROBERG";

// Last of a header: it says that the rest is there.
inline void publish_magic(char (&magic)[8], const char (&text)[9]) {
  uint64_t word = 0;
  std::memcpy(&word, text, sizeof word);
  // NOLINTNEXTLINE: the magic is the first member of a page
  std::atomic_ref<uint64_t>(*reinterpret_cast<uint64_t*>(magic)).store(word, std::memory_order_release);
}

enum class BlockKind : uint8_t {
  kThreadBegin = 1,  // payload: ThreadInfo
  kRecords = 2,      // payload: encoded records of ring positions [from, to)
  kClock = 3,        // payload: ClockPair
  kThreadEnd = 4,    // payload: u64 records lost by this thread; `to` is its last position
  kProcessEnd = 5,   // no payload: the process ended its recording itself
};
enum class Codec : uint8_t { kPlain = 0, kZstd = 1 };

// Blocks follow the spool's header, each padded with zeros to a multiple of 8 bytes.
struct BlockHeader {
  uint32_t magic;         // kBlockMagic
  uint32_t crc;           // CRC-32 of the rest of this header and the stored payload
  uint32_t stored_bytes;  // of the payload in the file
  uint32_t plain_bytes;   // of the payload once decompressed
  BlockKind kind;
  Codec codec;
  uint16_t reserved;
  uint32_t serial;  // of the thread; 0: none
  uint64_t from, to;
};
static_assert(sizeof(BlockHeader) == 40);
inline constexpr uint32_t kBlockMagic = 0x4B4C4253;    // "SBLK"
inline constexpr uint32_t kMaxBlockBytes = 64U << 20;  // a larger one is damage

struct ThreadInfo {
  int32_t tid;
  uint32_t reserved;
};

}  // namespace strobe::record
