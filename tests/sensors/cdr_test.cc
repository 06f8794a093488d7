#include "sensors/cdr.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace strobe::sensors {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<uint8_t> copy(Bytes bytes) {
  return {bytes.begin(), bytes.end()};
}

TEST(Cdr, AlignmentCountsFromBehindTheHeader) {
  CdrWriter out;
  out.value<uint8_t>(7);
  out.value<uint32_t>(0x01020304);
  out.string("ab");
  EXPECT_THAT(copy(out.message()), ElementsAre(0, 1, 0, 0, 7, 0, 0, 0, 4, 3, 2, 1, 3, 0, 0, 0, 'a', 'b', 0));
  out.clear();
  out.value<uint16_t>(1);
  out.value<double>(1);
  EXPECT_THAT(copy(out.message()), ElementsAre(0, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xF0, 0x3F));
}

TEST(Cdr, ReadsBigEndian) {
  // The doubles are aligned: 24 bytes behind the header.
  const std::vector<uint8_t> bytes = {0, 0, 0, 0, 7, 0, 0,    0,    1, 2, 3, 4, 0, 0, 0,    3, 'a', 'b', 0, 0, 0, 0,
                                      0, 0, 0, 0, 0, 0, 0x3F, 0xF0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0,   0,   0, 0, 0, 0};
  CdrReader in(bytes);
  EXPECT_EQ(in.value<uint8_t>(), 7);
  EXPECT_EQ(in.value<uint32_t>(), 0x01020304U);
  EXPECT_EQ(in.string(), "ab");
  in.bytes(4);
  double pair[2];
  in.values(std::span<double>(pair));
  EXPECT_THAT(pair, ElementsAre(1, 2));
  EXPECT_TRUE(in.finish());
}

TEST(Cdr, WhatIsWrittenIsRead) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    CdrWriter out;
    std::vector<std::pair<int, uint64_t>> wrote;
    for (int i = 0; i < 20; ++i) {
      const int kind = static_cast<int>(random() % 5);
      const uint64_t v = (uint64_t{random()} << 32) | random();
      wrote.emplace_back(kind, v);
      if (kind == 0) out.value(static_cast<uint8_t>(v));
      if (kind == 1) out.value(static_cast<uint16_t>(v));
      if (kind == 2) out.value(static_cast<int32_t>(v));
      if (kind == 3) out.value(v);
      if (kind == 4) out.string(std::string(v % 9, 'x'));
    }
    CdrReader in(out.message());
    for (const auto& [kind, v] : wrote) {
      if (kind == 0) {
        EXPECT_EQ(in.value<uint8_t>(), static_cast<uint8_t>(v));
      }
      if (kind == 1) {
        EXPECT_EQ(in.value<uint16_t>(), static_cast<uint16_t>(v));
      }
      if (kind == 2) {
        EXPECT_EQ(in.value<int32_t>(), static_cast<int32_t>(v));
      }
      if (kind == 3) {
        EXPECT_EQ(in.value<uint64_t>(), v);
      }
      if (kind == 4) {
        EXPECT_EQ(in.string(), std::string(v % 9, 'x'));
      }
    }
    EXPECT_TRUE(in.finish());
    // Cut anywhere, it is noticed, and nothing behind the end is read.
    const std::vector<uint8_t> whole = copy(out.message());
    const std::vector<uint8_t> cut(whole.begin(), whole.begin() + static_cast<long>(random() % whole.size()));
    CdrReader short_one(cut);
    for (const auto& [kind, v] : wrote) {
      if (kind == 0) short_one.value<uint8_t>();
      if (kind == 1) short_one.value<uint16_t>();
      if (kind == 2) short_one.value<int32_t>();
      if (kind == 3) short_one.value<uint64_t>();
      if (kind == 4) short_one.string();
    }
    EXPECT_FALSE(short_one.finish());
  }
}

TEST(Cdr, FaultsStickAndSayWhere) {
  const std::vector<uint8_t> huge = {0, 1, 0, 0, 0xFF, 0xFF, 0xFF, 0xFF};
  CdrReader in(huge);
  EXPECT_EQ(in.count(1), 0U);
  EXPECT_EQ(in.value<uint64_t>(), 0U);
  EXPECT_THAT(in.status().error().message(), HasSubstr("byte 0: a sequence of 4294967295 elements"));
  EXPECT_THAT(CdrReader(Bytes()).status().error().message(), HasSubstr("no CDR header"));
  const std::vector<uint8_t> parameter_list = {0, 3, 0, 0};
  EXPECT_THAT(CdrReader(parameter_list).status().error().message(), HasSubstr("00 03"));
  const std::vector<uint8_t> open_string = {0, 1, 0, 0, 1, 0, 0, 0, 'a'};
  CdrReader text(open_string);
  text.string();
  EXPECT_THAT(text.status().error().message(), HasSubstr("final NUL"));
}

TEST(Cdr, PaddingBehindTheLastFieldIsAllowed) {
  std::vector<uint8_t> bytes = {0, 1, 0, 3, 1, 0, 0, 0};
  CdrReader padded(bytes);
  padded.value<uint8_t>();
  EXPECT_TRUE(padded.finish());
  bytes.push_back(0);
  CdrReader longer(bytes);
  longer.value<uint8_t>();
  EXPECT_FALSE(longer.finish());
}

}  // namespace
}  // namespace strobe::sensors
