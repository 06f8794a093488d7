#include "base/crc32.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace strobe {
namespace {

std::string random_bytes(size_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

TEST(Crc32, HasThePublishedCheckValues) {
  EXPECT_EQ(crc32("123456789", 9), 0xCBF43926U);  // "check" of CRC-32/ISO-HDLC
  EXPECT_EQ(crc32("6789", 4, crc32("12345", 5)), 0xCBF43926U);
  EXPECT_EQ(crc32("", 0), 0U);
  // Python's zlib.crc32 of 4096 zeros and of bytes(range(256)) * 16.
  EXPECT_EQ(crc32(std::string(4096, '\0').data(), 4096), 0xC71C0011U);
  std::string ramp;
  for (int i = 0; i < 4096; ++i) ramp.push_back(static_cast<char>(i));
  EXPECT_EQ(crc32(ramp.data(), ramp.size()), 0xA2912082U);
}

TEST(Crc32, FoldingAndTablesAgreeAtEveryLengthAndStart) {
  const std::string bytes = random_bytes(1100, 1);
  for (size_t start = 0; start < 17; ++start)
    for (size_t length = 0; start + length <= bytes.size(); ++length)
      ASSERT_EQ(crc32(bytes.data() + start, length, 77), detail::crc32_by_tables(bytes.data() + start, length, 77))
          << start << " " << length;
}

TEST(Crc32, CombinesThePartsOfEverySplit) {
  const std::string bytes = random_bytes(3000, 2);
  const uint32_t whole = crc32(bytes.data(), bytes.size());
  for (size_t cut = 0; cut <= bytes.size(); cut += 7)
    ASSERT_EQ(
        crc32_combine(crc32(bytes.data(), cut), crc32(bytes.data() + cut, bytes.size() - cut), bytes.size() - cut),
        whole)
        << cut;
}

}  // namespace
}  // namespace strobe
