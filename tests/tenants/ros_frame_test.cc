// Points out of PointCloud2 messages, row by row.
#include "tenants/ros_frame.h"

#include <gmock/gmock.h>

#include <cstring>

#include "sensors/cdr.h"
#include "sensors/ros_messages.h"

namespace strobe::tenants {
namespace {

namespace ros = sensors::ros;
using testing::HasSubstr;

// Two rows of three points of 20 bytes: x is ten times the row, y the column. Between the rows lie `padding` bytes.
class OrganisedCloud : public testing::Test {
 protected:
  OrganisedCloud() {
    uint32_t offset = 0;
    for (const char* name : {"x", "y", "z", "intensity"}) cloud_.fields.push_back({name, 4 * offset++});
    cloud_.height = 2, cloud_.width = 3, cloud_.point_step = 20;
  }
  void fill(uint32_t padding) {
    cloud_.row_step = cloud_.width * cloud_.point_step + padding;
    bytes_.assign(size_t{cloud_.height} * cloud_.row_step, 0xff);
    for (uint32_t row = 0; row < cloud_.height; ++row)
      for (uint32_t column = 0; column < cloud_.width; ++column) {
        const float point[] = {10 * static_cast<float>(row), static_cast<float>(column), 1, 0.5};
        std::memcpy(&bytes_[size_t{row} * cloud_.row_step + size_t{column} * cloud_.point_step], point, sizeof point);
      }
  }
  Result<RosFrame> decoded() {
    cloud_.data = bytes_;
    sensors::CdrWriter writer;
    return frame_of_message("/points", ros::encode(cloud_, writer), {.pictures = false, .points = true});
  }
  std::string fault() {
    const auto frame = decoded();
    return frame ? "none" : frame.error().to_string();
  }

  ros::PointCloud2 cloud_;
  std::vector<uint8_t> bytes_;
};

TEST_F(OrganisedCloud, RowsMayBePadded) {
  for (const uint32_t padding : {0U, 4U, 52U}) {
    fill(padding);
    const auto frame = decoded();
    ASSERT_TRUE(frame) << frame.error().to_string();
    const PointCloud& points = *frame->frame.points;
    ASSERT_EQ(points.count(), 6U);
    for (size_t p = 0; p < 6; ++p) {
      EXPECT_EQ(points.values[4 * p], p < 3 ? 0 : 10) << padding;
      EXPECT_EQ(points.values[4 * p + 1], static_cast<float>(p % 3)) << padding;
      EXPECT_EQ(points.values[4 * p + 3], 0.5F) << padding;
    }
    EXPECT_EQ(points.full_intensity, 1);
  }
}

TEST_F(OrganisedCloud, RowsThatCannotBeAreRefused) {
  fill(4);
  cloud_.row_step = 59;
  EXPECT_THAT(fault(), HasSubstr("/points: row_step 59: expected at least 60 for 3 points of 20"));
  cloud_.row_step = 0;
  EXPECT_THAT(fault(), HasSubstr("row_step 0: expected at least 60"));
  fill(4);
  bytes_.pop_back();
  EXPECT_THAT(fault(), HasSubstr("127 bytes are no 2 x 3 points of 20 in rows of 64"));
  cloud_.row_step = 0xffffffff;
  EXPECT_THAT(fault(), HasSubstr("in rows of 4294967295"));
  cloud_.point_step = 0;
  EXPECT_THAT(fault(), HasSubstr("points of 0"));
}

// Nothing follows a single row, whatever its length is said to be.
TEST_F(OrganisedCloud, OfOneRowTheStepDoesNotMatter) {
  cloud_.height = 1;
  fill(0);
  for (const uint32_t step : {0U, 60U, 4000U}) {
    cloud_.row_step = step;
    const auto frame = decoded();
    ASSERT_TRUE(frame) << frame.error().to_string();
    EXPECT_EQ(frame->frame.points->count(), 3U);
  }
  bytes_.pop_back();
  EXPECT_THAT(fault(), HasSubstr("59 bytes are no 1 x 3 points of 20"));
}

}  // namespace
}  // namespace strobe::tenants
