#include "sensors/cdr.h"

#include <fmt/format.h>

namespace strobe::sensors {

CdrReader::CdrReader(Bytes message) {
  if (message.size() < 4) {
    fail(fmt::format("a message of {} bytes has no CDR header (4 bytes)", message.size()));
    return;
  }
  if (message[0] != 0 || message[1] > 1) {
    fail(fmt::format("encoding {:02x} {:02x} is not plain CDR (00 00 or 00 01)", message[0], message[1]));
    return;
  }
  swap_ = message[1] == 0;
  body_ = message.subspan(4);
}

void CdrReader::fail(std::string what) {
  if (failed_) return;
  failed_ = true;
  fault_ = std::move(what);
}

bool CdrReader::align_and_check(size_t alignment, size_t size) {
  if (failed_) return false;
  const size_t first = (at_ + alignment - 1) / alignment * alignment;
  if (first > body_.size() || body_.size() - first < size) {
    fail(fmt::format("byte {}: the message ends, {} more bytes expected", at_, first + size - body_.size()));
    return false;
  }
  at_ = first;
  return true;
}

std::string_view CdrReader::string() {
  const uint32_t length = value<uint32_t>();
  if (failed_ || length == 0) return {};  // some writers send an empty string without its NUL
  const Bytes raw = bytes(length);
  if (failed_) return {};
  if (raw.back() != 0) {
    fail(fmt::format("byte {}: a string without its final NUL", at_ - 1));
    return {};
  }
  return {reinterpret_cast<const char*>(raw.data()), raw.size() - 1};
}

uint32_t CdrReader::count(size_t least_bytes) {
  const uint32_t n = value<uint32_t>();
  if (failed_) return 0;
  if (least_bytes > 0 && n > left() / least_bytes) {
    fail(fmt::format("byte {}: a sequence of {} elements in a message that has {} bytes left", at_ - 4, n, left()));
    return 0;
  }
  return n;
}

Bytes CdrReader::bytes(size_t size) {
  if (!align_and_check(1, size)) return {};
  at_ += size;
  return body_.subspan(at_ - size, size);
}

Result<void> CdrReader::status() const {
  if (failed_) return bad_data(fault_);
  return {};
}

Result<void> CdrReader::finish() const {
  if (failed_) return bad_data(fault_);
  if (left() > 3) return bad_data(fmt::format("byte {}: {} bytes are left behind the last field", at_, left()));
  return {};
}

void CdrWriter::string(std::string_view text) {
  value(static_cast<uint32_t>(text.size() + 1));
  append(text.data(), text.size());
  buffer_.push_back(0);
}

}  // namespace strobe::sensors
