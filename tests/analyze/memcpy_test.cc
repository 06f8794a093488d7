#include "analyze/memcpy.h"

#include <gmock/gmock.h>

#include <set>

#include "analyze/device_maker.h"

namespace strobe::analyze {
namespace {

using test::DeviceMaker;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Memcpy, ByHand) {
  DeviceMaker maker;
  const int32_t compute = maker.stream(7), copies = maker.stream(8), other = maker.stream(7, 1);
  maker.kernel("gemm", compute, 100, 200);
  maker.copy(1, 0, 2, 4000, copies, 50, 150);   // 100 ns, half of it beside gemm
  maker.copy(1, 0, 2, 2000, copies, 150, 250);  // again half
  maker.copy(1, 1, 2, 3000, copies, 300, 400);  // pinned
  maker.copy(2, 2, 1, -1, copies, 400, 500);    // size unknown
  maker.device_op(trace::RangeKind::kSet, "Memset", other, 120, 130, trace::kNone).bytes = 50;
  const trace::Timeline timeline = maker.finish();
  const Table table = memcpy_table(timeline);
  ASSERT_EQ(table.row_count(), 4U);
  EXPECT_EQ(table.text(0, "direction"), "host to device");
  EXPECT_EQ(table.text(0, "source"), "pageable");
  EXPECT_EQ(table.text(0, "target"), "device");
  EXPECT_EQ(*table.number(0, "count"), 2);
  EXPECT_EQ(*table.number(0, "bytes"), 6000);
  EXPECT_EQ(*table.number(0, "total_ns"), 200);
  EXPECT_EQ(*table.number(0, "mean_ns"), 100);
  EXPECT_EQ(*table.number(0, "gb_per_s"), 30);  // 6000 bytes in 200 ns
  EXPECT_NEAR(*table.number(0, "share"), 200.0 / 410, 1e-15);
  EXPECT_EQ(*table.number(0, "overlap_ns"), 100);
  EXPECT_EQ(*table.number(0, "overlap_share"), 0.5);
  const size_t back = *test::row_with(table, "direction", "device to host");
  EXPECT_FALSE(table.number(back, "bytes"));
  EXPECT_FALSE(table.number(back, "gb_per_s"));
  EXPECT_EQ(table.text(back, "target"), "pinned");
  const size_t set = *test::row_with(table, "direction", "set");
  EXPECT_EQ(*table.number(set, "device"), 1);
  EXPECT_EQ(*table.number(set, "overlap_ns"), 0);  // gemm is on the other device
  EXPECT_THAT(table.notes,
              Contains("pageable memory: 2 copies and 50.0 % of the time of copies between host and device"));
  EXPECT_THAT(table.notes, Contains(HasSubstr("size is not known of 1 operation")));

  const Table overlap = memcpy_overlap(timeline);
  ASSERT_EQ(overlap.row_count(), 2U);
  EXPECT_EQ(*overlap.number(0, "compute_ns"), 100);
  EXPECT_EQ(*overlap.number(0, "copy_ns"), 400);
  EXPECT_EQ(*overlap.number(0, "both_ns"), 100);
  EXPECT_EQ(*overlap.number(0, "busy_ns"), 400);
  EXPECT_EQ(*overlap.number(0, "copy_hidden"), 0.25);
  EXPECT_EQ(*overlap.number(1, "copy_ns"), 10);
  EXPECT_THAT(memcpy_table(trace::Timeline()).notes, ElementsAre("no copy in this trace"));
}

// Against a look at every nanosecond.
TEST(Memcpy, OverlapOnRandomTimelines) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    const trace::Timeline timeline = test::random_device_timeline(seed, 60);
    const trace::Ranges& r = timeline.ranges;
    const Table table = memcpy_overlap(timeline);
    ASSERT_EQ(table.row_count(), 2U);
    for (int32_t device = 0; device < 2; ++device) {
      std::set<int64_t> compute, copy, both;
      for (size_t i = 0; i < r.size(); ++i) {
        if (!is_device(r.kind[i]) || timeline.lanes[static_cast<size_t>(r.lane[i])].device != device) continue;
        for (int64_t t = r.start_ns[i]; t < r.end_ns[i]; ++t)
          (r.kind[i] == trace::RangeKind::kKernel ? compute : copy).insert(t);
      }
      std::set_intersection(compute.begin(), compute.end(), copy.begin(), copy.end(), std::inserter(both, both.end()));
      const auto row = static_cast<size_t>(device);
      EXPECT_EQ(*table.number(row, "compute_ns"), static_cast<double>(compute.size()));
      EXPECT_EQ(*table.number(row, "copy_ns"), static_cast<double>(copy.size()));
      EXPECT_EQ(*table.number(row, "both_ns"), static_cast<double>(both.size()));
    }
  }
}

}  // namespace
}  // namespace strobe::analyze
