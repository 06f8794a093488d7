#include "record/encode.h"

#include <cstring>

#include "record/layout.h"
#include "record/varint.h"

namespace strobe::record {
namespace {

class Encoder {
 public:
  Encoder(RingWords ring, uint64_t to, std::vector<uint8_t>& out) : ring_(ring), end_(to), out_(out) {}

  // The position after the record at `position`, or 0 when it is none.
  uint64_t put(uint64_t position) {
    const uint64_t first = ring_[position];
    const auto raw = static_cast<uint8_t>(first >> kClockBits);
    const auto type = static_cast<RecordType>(raw & ~kFlags);
    if ((raw & kFlags & ~allowed_flags(type)) != 0) return 0;
    const bool wide = (raw & kWideFrame) != 0;
    const bool categorized = (raw & kCategorized) != 0;
    const uint64_t left = end_ - position;
    const uint64_t payload = first & kClockMask;
    *at_++ = raw;
    switch (type) {
      case RecordType::kRangeEnd:
        time(payload);
        return position + 1;
      case RecordType::kRangeBegin:
      case RecordType::kMark: {
        const uint64_t words = 2 + (wide ? 1 : 0) + (categorized ? 1 : 0);
        if (left < words) return 0;
        time(payload);
        name_and_frame(ring_[position + 1], wide ? position + 2 : 0);
        if (categorized) at_ = put_varint(at_, ring_[position + words - 1]);
        return position + words;
      }
      case RecordType::kAsyncBegin: {
        const uint64_t words = 3 + (wide ? 1 : 0) + (categorized ? 1 : 0);
        if (left < words) return 0;
        time(payload);
        name_and_frame(ring_[position + 1], wide ? position + 3 : 0);
        at_ = put_varint(at_, ring_[position + 2]);
        if (categorized) at_ = put_varint(at_, ring_[position + words - 1]);
        return position + words;
      }
      case RecordType::kAsyncEnd:
      case RecordType::kFlowOut:
      case RecordType::kFlowIn:
        if (left < 3) return 0;
        time(payload);
        at_ = put_varint(at_, ring_[position + 1]);
        at_ = put_varint(at_, ring_[position + 2]);
        return position + 3;
      case RecordType::kCounter:
        if (left < 3) return 0;
        time(payload);
        at_ = put_varint(at_, ring_[position + 1]);
        raw_word(ring_[position + 2]);
        return position + 3;
      case RecordType::kCounterInt:
        if (left < 3) return 0;
        time(payload);
        at_ = put_varint(at_, ring_[position + 1]);
        at_ = put_varint(at_, zigzag(static_cast<int64_t>(ring_[position + 2])));
        return position + 3;
      case RecordType::kAsyncEndAny:
        if (left < 2) return 0;
        time(payload);
        at_ = put_varint(at_, ring_[position + 1]);
        return position + 2;
      case RecordType::kArgInt:
        if (left < 2) return 0;
        at_ = put_varint(at_, payload);
        at_ = put_varint(at_, zigzag(static_cast<int64_t>(ring_[position + 1])));
        return position + 2;
      case RecordType::kArgDouble:
        if (left < 2) return 0;
        at_ = put_varint(at_, payload);
        raw_word(ring_[position + 1]);
        return position + 2;
      case RecordType::kDropped:
        if (left < 2) return 0;
        time(payload);
        at_ = put_varint(at_, ring_[position + 1]);
        return position + 2;
      case RecordType::kArgText:
      case RecordType::kDefine:
        if (left < 2) return 0;
        at_ = put_varint(at_, payload);
        return text(position + 1, ring_[position + 1]);
      case RecordType::kThreadName:
        if (left < 2) return 0;
        time(payload);
        return text(position + 1, ring_[position + 1]);
      case RecordType::kFact: {
        if (left < 2) return 0;
        time(payload);
        const uint64_t lengths = ring_[position + 1];
        at_ = put_varint(at_, lengths & 0xFFFF'FFFF);
        return text(position + 1, (lengths & 0xFFFF'FFFF) + (lengths >> 32));
      }
    }
    return 0;
  }

  void begin_record() {
    // The longest record without text: a type and five numbers.
    grow(1 + 5 * kMaxVarintBytes);
    start_ = at_;
  }
  void drop_record() { at_ = start_; }
  void finish() { out_.resize(static_cast<size_t>(at_ - out_.data())); }

 private:
  void grow(size_t bytes) {
    const auto used = at_ == nullptr ? 0 : static_cast<size_t>(at_ - out_.data());
    if (out_.size() - used >= bytes && at_ != nullptr) return;
    out_.resize((used + bytes) * 2);
    at_ = out_.data() + used;
  }
  void time(uint64_t cut) {
    at_ = put_varint(at_, zigzag(static_cast<int64_t>(cut - time_)));
    time_ = cut;
  }
  // wide_at: the position of a frame that does not fit into `word`; 0: it fits.
  void name_and_frame(uint64_t word, uint64_t wide_at) {
    const int64_t frame = static_cast<int64_t>(wide_at > 0 ? ring_[wide_at] : (word >> 32) - 1);
    at_ = put_varint(at_, word & 0xFFFF'FFFF);
    at_ = put_varint(at_, zigzag(static_cast<int64_t>(static_cast<uint64_t>(frame) - static_cast<uint64_t>(frame_))));
    frame_ = frame;
  }
  void raw_word(uint64_t word) {
    std::memcpy(at_, &word, 8);
    at_ += 8;
  }
  // Bytes that start in the word after `position`; their count is stored first.
  uint64_t text(uint64_t position, uint64_t bytes) {
    const uint64_t words = bytes / 8 + (bytes % 8 != 0 ? 1 : 0);
    if (bytes > kMaxBlockBytes || words > end_ - position - 1) return 0;
    const auto start = static_cast<size_t>(start_ - out_.data());
    grow(kMaxVarintBytes + words * 8);
    start_ = out_.data() + start;
    at_ = put_varint(at_, bytes);
    for (uint64_t i = 0; i < words; ++i) {
      const uint64_t word = ring_[position + 1 + i];
      std::memcpy(at_ + i * 8, &word, 8);
    }
    at_ += bytes;
    return position + 1 + words;
  }

  RingWords ring_;
  uint64_t end_;
  std::vector<uint8_t>& out_;
  uint8_t* at_ = nullptr;
  uint8_t* start_ = nullptr;
  uint64_t time_ = 0;
  int64_t frame_ = -1;
};

bool is_record_of_program(uint64_t first) {
  const auto type = static_cast<RecordType>(first >> kClockBits);
  return type != RecordType::kDropped && type != RecordType::kDefine;
}

}  // namespace

Encoded encode(RingWords ring, uint64_t from, uint64_t to, std::vector<uint8_t>& out) {
  Encoder encoder(ring, to, out);
  Encoded result{.to = from};
  encoder.begin_record();
  while (result.to < to) {
    encoder.begin_record();
    const uint64_t next = encoder.put(result.to);
    if (next == 0) {
      encoder.drop_record();
      result.damaged = true;
      break;
    }
    if (is_record_of_program(ring[result.to])) ++result.records;
    result.to = next;
  }
  encoder.finish();
  return result;
}

}  // namespace strobe::record
