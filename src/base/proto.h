// The encoding of protocol buffers: messages are fields, a field is a key and a varint, four or eight bytes, or some
// bytes.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace strobe {

class ProtoMessage {
 public:
  void clear() { bytes_.clear(); }
  bool empty() const { return bytes_.empty(); }
  std::string_view bytes() const { return bytes_; }
  void reserve(size_t bytes) { bytes_.reserve(bytes); }
  std::string take() && { return std::move(bytes_); }

  void integer(uint32_t field, uint64_t value) {
    varint(field << 3);
    varint(value);
  }
  // Of type int32 or int64; negative ones take ten bytes.
  void integer_signed(uint32_t field, int64_t value) { integer(field, static_cast<uint64_t>(value)); }
  void fixed(uint32_t field, uint64_t value) {
    varint(field << 3 | 1);
    for (int byte = 0; byte < 8; ++byte) bytes_ += static_cast<char>(value >> (8 * byte));
  }
  void real(uint32_t field, double value) { fixed(field, std::bit_cast<uint64_t>(value)); }
  // Of type float.
  void real32(uint32_t field, float value) {
    varint(field << 3 | 5);
    const auto bits = std::bit_cast<uint32_t>(value);
    for (int byte = 0; byte < 4; ++byte) bytes_ += static_cast<char>(bits >> (8 * byte));
  }
  void text(uint32_t field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    bytes_.append(value);
  }
  void message(uint32_t field, const ProtoMessage& value) { text(field, value.bytes_); }

 private:
  void varint(uint64_t value) {
    for (; value >= 0x80; value >>= 7) bytes_ += static_cast<char>(value | 0x80);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace strobe
