#include "report/lidar_scene.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

namespace strobe::report {
namespace {

TEST(LidarScene, ASampleHasEveryPartOfTheSweep) {
  // Points in scan order of 32 rings: a stride would take whole rings or none.
  constexpr size_t kRings = 32, kPoints = 32'000, kMost = 4'000;
  std::vector<float> values;
  for (size_t i = 0; i < kPoints; ++i)
    values.insert(values.end(), {static_cast<float>(i), static_cast<float>(i % kRings), 0, 0, 9});
  const std::vector<float> chosen = sampled_rows(values, 5, kMost, 1);
  ASSERT_EQ(chosen.size(), 5 * kMost);
  std::vector<size_t> by_ring(kRings);
  float before = -1;
  for (size_t i = 0; i < chosen.size(); i += 5) {
    EXPECT_GT(chosen[i], before);  // in their order, none twice
    before = chosen[i];
    ++by_ring[static_cast<size_t>(chosen[i + 1])];
    EXPECT_EQ(chosen[i + 4], 9);
  }
  for (const size_t count : by_ring) EXPECT_NEAR(static_cast<double>(count), 125, 50);
  EXPECT_EQ(chosen, sampled_rows(values, 5, kMost, 1));
  EXPECT_EQ(sampled_rows(values, 5, kPoints + 1, 1), values);
  EXPECT_TRUE(sampled_rows({}, 5, 10, 1).empty());
}

std::string bytes_of(const std::string& base64) {
  const std::string alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  uint32_t bits = 0;
  int count = 0;
  for (const char c : base64) {
    if (c == '=') break;
    bits = bits << 6 | static_cast<uint32_t>(alphabet.find(c));
    if ((count += 6) >= 8) out += static_cast<char>(bits >> (count -= 8) & 255);
  }
  return out;
}

TEST(LidarScene, PlacesAreCentimetresAndWhatIsNoPlaceIsHarmless) {
  PointStream stream;
  stream.name = "a";
  const float nan = std::nanf(""), inf = std::numeric_limits<float>::infinity();
  stream.frames.push_back({.token = "t",
                           .points = {1.234F, -2.5F, 0.004F, 1, 1e6F, -1e6F, nan, 0.5F, inf, 0, 0, nan},
                           .points_before = 7,
                           .truth = {{1, 2, 3, 4, 5, 6, 0.5F, "<car>", 1}}});
  const auto json = streams_json({&stream, 1})[0]["frames"][0];
  EXPECT_EQ(json["n"], 3);
  EXPECT_EQ(json["before"], 7);
  const std::string places = bytes_of(json["places"]);
  ASSERT_EQ(places.size(), 18U);
  std::vector<int> values;
  for (size_t i = 0; i < places.size(); i += 2)
    values.push_back(static_cast<int16_t>(static_cast<uint8_t>(places[i]) | static_cast<uint8_t>(places[i + 1]) << 8));
  EXPECT_EQ(values, (std::vector<int>{123, -250, 0, 32767, -32767, 0, 0, 0, 0}));
  const std::string bright = bytes_of(json["intensity"]);
  EXPECT_EQ(static_cast<uint8_t>(bright[0]), 255);
  EXPECT_EQ(static_cast<uint8_t>(bright[1]), 128);
  EXPECT_EQ(json["truth"][0][7], "<car>");
}

}  // namespace
}  // namespace strobe::report
