#include "analyze/tenant_frames.h"

#include <gtest/gtest.h>

#include "tenant_maker.h"

namespace strobe::analyze {
namespace {

// Four frames of a, each 0.5 ms longer than the one before, and one that was dropped.
trace::Timeline five_frames() {
  test::TenantMaker maker("a,b");
  maker.timeline.facts["tenants.resource.device"] = "exclusive=1";
  const int32_t sensor = maker.lane(1, "sensor"), worker = maker.lane(2, "worker");
  for (int64_t i = 0; i < 4; ++i) {
    const int64_t at = 10'000 * (i + 1), end = at + 6000 + 500 * i;
    const int32_t row = maker.frame("a", sensor, i, at, end);
    maker.argument(row, "comm_ns", int64_t{1'000'000});
    maker.argument(row, "deadline_ns", int64_t{8'000'000});
    maker.stage("a", worker, i, "decode", at + 500, at + 1500);
    maker.stage("a", worker, i, "infer", at + 1500, end);
    maker.operation("conv1", worker, "device", "compute", at + 1500, at + 2500, at + 4500);
    maker.operation("conv2", worker, "device", "compute", at + 4500, at + 4500, end);
  }
  maker.frame("a", sensor, 4, 55'000, 55'100, "dropped");
  return maker.finish();
}

TEST(TenantFrames, PartsSumToTheLatency) {
  const trace::Timeline timeline = five_frames();
  auto trace = tenant_trace(timeline);
  ASSERT_TRUE(trace) << trace.error().to_string();
  const Table table = tenant_frames(*trace, timeline);
  ASSERT_EQ(table.row_count(), 5U);
  for (size_t row = 0; row < 4; ++row) {
    double sum = 0;
    for (const char* part : kFrameParts) sum += *table.number(row, part);
    EXPECT_NEAR(sum, *table.number(row, "latency_ms"), 1e-9);
    EXPECT_NEAR(*table.number(row, "latency_ms"), 7 + 0.5 * static_cast<double>(row), 1e-9);
    EXPECT_NEAR(*table.number(row, "comm_ms"), 1, 1e-9);
    EXPECT_NEAR(*table.number(row, "queue_ms"), 0.5, 1e-9);
    EXPECT_NEAR(*table.number(row, "decode_ms"), 1, 1e-9);
    EXPECT_NEAR(*table.number(row, "device_wait_ms"), 1, 1e-9);
    EXPECT_EQ(*table.number(row, "deadline_ms"), 8);
  }
  EXPECT_EQ(table.text(4, "outcome"), "dropped");
  EXPECT_FALSE(table.number(4, "latency_ms"));
}

TEST(TenantFrames, LayersWithTheirDepthAndCorrelation) {
  const trace::Timeline timeline = five_frames();
  auto trace = tenant_trace(timeline);
  ASSERT_TRUE(trace);
  const Table table = layer_spread(*trace, timeline);
  ASSERT_EQ(table.row_count(), 4U);
  const auto row_of = [&](const std::string& layer) {
    for (size_t row = 0; row < table.row_count(); ++row)
      if (table.text(row, "layer") == layer) return row;
    ADD_FAILURE() << layer;
    return size_t{0};
  };
  EXPECT_EQ(table.text(0, "layer"), "infer");  // the longest first
  EXPECT_EQ(*table.number(row_of("infer"), "depth"), 1);
  const size_t first = row_of("conv1"), second = row_of("conv2");
  EXPECT_EQ(*table.number(first, "depth"), 2);
  EXPECT_NEAR(*table.number(first, "wait_ms"), 1, 1e-9);
  EXPECT_NEAR(*table.number(first, "std_ms"), 0, 1e-9);
  EXPECT_FALSE(table.number(first, "correlation"));  // it never varies
  EXPECT_NEAR(*table.number(second, "correlation"), 1, 1e-9);
  EXPECT_NEAR(*table.number(second, "p50_ms"), 2.25, 1e-9);
  EXPECT_NEAR(*table.number(second, "max_ms"), 3, 1e-9);
}

}  // namespace
}  // namespace strobe::analyze
