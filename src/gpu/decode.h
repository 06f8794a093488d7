// CUPTI's activity records become records of ours.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <span>
#include <string_view>

#include "gpu/activity.h"

namespace strobe::gpu {

// What a decoder needs to know of the world around a record.
struct DecodeSources {
  // The text at an address that a record holds; never called with 0. In a recorded process that is its memory.
  std::function<std::string_view(uint64_t address)> text_at;
  // The number of a text in the log.
  std::function<TextId(std::string_view text)> intern;
};

// In a recorded process: the text is the library's own, ended by 0; cut after 64 KiB.
std::string_view text_in_memory(uint64_t address);

struct DecodeFaults {
  std::map<uint32_t, uint64_t> unknown_kinds;  // by kind
  uint64_t short_records = 0;                  // shorter than any version of their kind
  uint64_t broken_buffers = 0;                 // walked out of
  uint64_t total() const;
};

class ActivityDecoder {
 public:
  explicit ActivityDecoder(DecodeSources sources) : sources_(std::move(sources)) {}

  // One record: its bytes up to the next one's begin. A record of an older library is shorter; what it lacks is 0.
  // False where nothing came of it, which is counted.
  bool decode(std::span<const std::byte> bytes, Record& record);
  const DecodeFaults& faults() const { return faults_; }
  void count_broken_buffer() { ++faults_.broken_buffers; }

 private:
  template <typename Raw>
  bool read(std::span<const std::byte> bytes, size_t shortest, Raw& raw);
  TextId text(uint64_t address);

  DecodeSources sources_;
  DecodeFaults faults_;
};

// Steps through a buffer by `next`, which is CUPTI's cuptiActivityGetNextRecord or stands for it: given the last record
// (null at first) it gives the next one, or false at the end. Records that do not lie one behind the other inside the
// buffer end the walk. Calls each(bytes) for every record; false where the walk was ended so.
bool walk_records(std::span<const std::byte> buffer, const std::function<bool(const std::byte*& record)>& next,
                  const std::function<void(std::span<const std::byte> record)>& each);

}  // namespace strobe::gpu
