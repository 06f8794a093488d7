#include "record/encode.h"

#include <array>
#include <cstring>

#include "record/layout.h"
#include "record/varint.h"

namespace strobe::record {
namespace {

constexpr auto kPlainArgInt = static_cast<uint8_t>(RecordType::kArgInt);

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
    records_ = type == RecordType::kDropped || type == RecordType::kDefine ? 0 : 1;
    if (raw == static_cast<uint8_t>(RecordType::kRangeBegin) && left >= 2) {
      const uint64_t next = put_shaped(position, payload);
      if (next != 0) return next;
    }
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

  // Records of the program that the last put() took.
  uint64_t records() const { return records_; }
  void begin_record() {
    // The longest record without text: two types and five numbers.
    grow(2 + 5 * kMaxVarintBytes);
    start_ = at_;
  }
  void drop_record() { at_ = start_; }
  void finish() { out_.resize(static_cast<size_t>(at_ - out_.data())); }

 private:
  struct Shape {
    uint32_t name;
    uint32_t key;  // id + 1; 0: no integer
    int64_t value;
  };

  // The place of a shape that is there or was made now; kMaxShapes: all are taken.
  uint8_t shape_of(uint32_t name, uint32_t key) {
    // Where this pair was found last.
    uint8_t& guess = guesses_[(name * 31 + key) % guesses_.size()];
    if (guess < shape_count_ && shapes_[guess].name == name && shapes_[guess].key == key) return guess;
    for (uint8_t i = 0; i < shape_count_; ++i)
      if (shapes_[i].name == name && shapes_[i].key == key) return guess = i;
    if (shape_count_ == kMaxShapes) return kMaxShapes;
    *at_++ = kDefineShape;
    at_ = put_varint(at_, name);
    at_ = put_varint(at_, key);
    shapes_[shape_count_] = {name, key, 0};
    return guess = shape_count_++;
  }

  // A begin with a frame of 32 bits and no category, and the integer after it. 0: no shape is left.
  uint64_t put_shaped(uint64_t position, uint64_t clock) {
    const uint64_t word = ring_[position + 1];
    const bool has_value = end_ - position >= 4 && ring_[position + 2] >> kClockBits == uint64_t{kPlainArgInt} &&
                           (ring_[position + 2] & kClockMask) < UINT32_MAX;
    const auto key = has_value ? static_cast<uint32_t>(ring_[position + 2] & kClockMask) + 1 : 0;
    const uint8_t index = shape_of(static_cast<uint32_t>(word), key);
    if (index == kMaxShapes) return 0;
    const int64_t frame = static_cast<int64_t>(word >> 32) - 1;
    const bool same_frame = frame == frame_;
    Shape& shape = shapes_[index];
    const int64_t value = has_value ? static_cast<int64_t>(ring_[position + 3]) : 0;
    const bool same_value = value == shape.value;
    *at_++ = kShaped | index | (same_frame ? kSameFrame : 0) | (same_value ? kSameValue : 0);
    time(clock);
    if (!same_frame) difference(frame, frame_);
    if (!same_value) difference(value, shape.value);
    records_ = has_value ? 2 : 1;
    return position + (has_value ? 4 : 2);
  }

  void difference(int64_t value, int64_t& last) {
    at_ = put_varint(at_, zigzag(static_cast<int64_t>(static_cast<uint64_t>(value) - static_cast<uint64_t>(last))));
    last = value;
  }
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
    difference(frame, frame_);
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
  uint64_t records_ = 0;
  std::array<Shape, kMaxShapes> shapes_;
  uint8_t shape_count_ = 0;
  std::array<uint8_t, 64> guesses_{};
};

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
    result.records += encoder.records();
    result.to = next;
  }
  encoder.finish();
  return result;
}

}  // namespace strobe::record
