// Compact columns of integers for the page's script: LEB128 varints in base64 (assets/data.js reads them).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace strobe::report {

std::string base64(std::string_view bytes);
// Little-endian float32.
std::string base64_floats(std::span<const float> values);

class VarintWriter {
 public:
  void add(uint64_t value);
  // Zigzag: small negative numbers stay small.
  void add_signed(int64_t value) { add(static_cast<uint64_t>(value) << 1 ^ static_cast<uint64_t>(value >> 63)); }
  std::string base64() const { return report::base64(bytes_); }

 private:
  std::string bytes_;
};

}  // namespace strobe::report
