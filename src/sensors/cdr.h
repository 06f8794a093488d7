// Plain CDR (XCDR1) as ROS 2 puts it on the wire and into bags: 4 bytes of header (00 01 little endian, 00 00 big
// endian, two bytes of options), then the fields. A value is aligned to its size, counted from behind the header.
// A string has a uint32 length that counts its final NUL; a sequence a uint32 count; a fixed array nothing.
// Source: OMG Common Data Representation, section 7.4.1 of DDS-XTypes 1.3 ("PLAIN_CDR").
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::sensors {

static_assert(std::endian::native == std::endian::little, "CDR is written in the machine's order");

using Bytes = std::span<const uint8_t>;

// Reads fields one after the other out of a message that it does not own. The first fault sticks: what is read after it
// is zero or empty, and status() says what it was, so that a message is read first and checked once.
class CdrReader {
 public:
  // Errors (status()): kBadData, a header that is missing or of another encoding.
  explicit CdrReader(Bytes message);

  // An arithmetic value; a bool is any byte but 0.
  template <typename T>
  T value() {
    static_assert(std::is_arithmetic_v<T>);
    if (!align_and_check(sizeof(T), sizeof(T))) return T{};
    if constexpr (std::is_same_v<T, bool>) {
      return body_[at_++] != 0;
    } else {
      T out;
      std::memcpy(&out, body_.data() + at_, sizeof(T));
      at_ += sizeof(T);
      return swap_ ? swapped(out) : out;
    }
  }
  // Without its NUL; a view into the message.
  std::string_view string();
  // A sequence's count, which is refused where the rest of the message cannot hold so many of `least_bytes` each.
  uint32_t count(size_t least_bytes);
  // The next bytes as they stand; a view into the message.
  Bytes bytes(size_t size);
  // Elements of 2, 4 or 8 bytes, in the machine's order.
  template <typename T>
  void values(std::span<T> out) {
    if (out.empty() || !align_and_check(sizeof(T), out.size_bytes())) return;
    std::memcpy(out.data(), body_.data() + at_, out.size_bytes());
    at_ += out.size_bytes();
    if (swap_)
      for (T& v : out) v = swapped(v);
  }

  bool ok() const { return !failed_; }
  size_t position() const { return at_; }  // behind the header
  size_t left() const { return body_.size() - at_; }
  // kBadData with the byte (behind the header) and what was expected there.
  Result<void> status() const;
  // The same, and where nothing failed: whether the message ends here. Up to 3 bytes of padding are allowed, which some
  // DDS implementations send.
  Result<void> finish() const;
  void fail(std::string what);

 private:
  template <typename T>
  static T swapped(T v) {
    uint8_t raw[sizeof(T)], turned[sizeof(T)];
    std::memcpy(raw, &v, sizeof(T));
    for (size_t i = 0; i < sizeof(T); ++i) turned[i] = raw[sizeof(T) - 1 - i];
    std::memcpy(&v, turned, sizeof(T));
    return v;
  }
  bool align_and_check(size_t alignment, size_t size);

  Bytes body_;
  size_t at_ = 0;
  bool swap_ = false, failed_ = false;
  std::string fault_;
};

// Writes fields one after the other, little endian, into a buffer that is kept between messages.
class CdrWriter {
 public:
  CdrWriter() { clear(); }
  // A new message: nothing but the header.
  void clear() { buffer_.assign({0, 1, 0, 0}); }
  template <typename T>
  void value(T v) {
    static_assert(std::is_arithmetic_v<T>);
    align(sizeof(T));
    append(&v, sizeof(T));
  }
  void string(std::string_view text);
  void bytes(Bytes raw) { append(raw.data(), raw.size()); }
  template <typename T>
  void values(std::span<const T> v) {
    if (v.empty()) return;
    align(sizeof(T));
    append(v.data(), v.size_bytes());
  }
  // Valid until the next call that changes it.
  Bytes message() const { return buffer_; }

 private:
  void align(size_t alignment) {
    const size_t past = (buffer_.size() - 4) % alignment;
    if (past != 0) buffer_.resize(buffer_.size() + alignment - past);
  }
  void append(const void* data, size_t size) {
    const auto* first = static_cast<const uint8_t*>(data);
    buffer_.insert(buffer_.end(), first, first + size);
  }
  std::vector<uint8_t> buffer_;
};

}  // namespace strobe::sensors
