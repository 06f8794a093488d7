#include "analyze/layers.h"

#include <gmock/gmock.h>

#include "trace/timeline_maker.h"

namespace strobe::analyze {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using trace::Timeline;

class NetworkMaker {
 public:
  void layer(const std::string& name, int64_t flop, int64_t bytes) {
    auto& strings = timeline.strings;
    timeline.layers.push_back(
        {strings.intern(name), strings.intern("conv"), strings.intern("16x8x8"), 40, flop, bytes});
  }
  void kernel(const std::string& name, std::vector<int32_t> layers, std::vector<int64_t> duration_ns) {
    auto& strings = timeline.strings;
    timeline.kernels.push_back({strings.intern(name), strings.intern("Convolution"), strings.intern("jit"),
                                std::move(layers), std::move(duration_ns)});
  }
  Timeline timeline;
};

TEST(Layers, OneKernelALayer) {
  NetworkMaker maker;
  maker.layer("a", 4'000'000, 2000);
  maker.layer("b", 1'000'000, 500);
  maker.kernel("ka", {0}, {1000, 2000, 3000});
  maker.kernel("kb", {1}, {2000, 2000, 2000});
  const Table table = layers(maker.timeline);
  ASSERT_EQ(table.row_count(), 2U);
  EXPECT_EQ(table.text(0, "layer"), "a");
  EXPECT_EQ(table.text(0, "type"), "conv");
  EXPECT_EQ(table.text(0, "shape"), "16x8x8");
  EXPECT_EQ(*table.number(0, "parameters"), 40);
  EXPECT_DOUBLE_EQ(*table.number(0, "mflop"), 4);
  EXPECT_DOUBLE_EQ(*table.number(0, "kbytes"), 2);
  EXPECT_DOUBLE_EQ(*table.number(0, "mean_us"), 2);
  EXPECT_DOUBLE_EQ(*table.number(0, "p50_us"), 2);
  EXPECT_NEAR(*table.number(0, "p99_us"), 2.98, 1e-12);
  EXPECT_DOUBLE_EQ(*table.number(0, "share"), 0.5);
  EXPECT_DOUBLE_EQ(*table.number(0, "gflops"), 2000);  // 4e6 in 2 us
  EXPECT_EQ(table.text(0, "kernel"), "ka");
  EXPECT_DOUBLE_EQ(*table.coverage, 1);
  EXPECT_THAT(table.notes, IsEmpty());
}

TEST(Layers, AFusedKernelIsSplitByFlop) {
  NetworkMaker maker;
  maker.layer("conv", 3'000'000, 100);
  maker.layer("relu", 1'000'000, 900);
  maker.kernel("conv+relu", {0, 1}, {4000, 8000});
  const Table table = layers(maker.timeline);
  EXPECT_DOUBLE_EQ(*table.number(0, "mean_us"), 4.5);
  EXPECT_DOUBLE_EQ(*table.number(1, "mean_us"), 1.5);
  EXPECT_DOUBLE_EQ(*table.number(0, "share") + *table.number(1, "share"), 1);
  EXPECT_EQ(table.text(1, "kernel"), "conv+relu");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("an estimate")));
}

TEST(Layers, WithoutFlopTheSplitIsByBytesAndThenEqual) {
  NetworkMaker maker;
  maker.layer("concat", 0, 300);
  maker.layer("resize", 0, 100);
  maker.layer("x", 0, 0);
  maker.layer("y", 0, 0);
  maker.kernel("copy", {0, 1}, {4000});
  maker.kernel("xy", {2, 3}, {1000});
  const Table table = layers(maker.timeline);
  EXPECT_DOUBLE_EQ(*table.number(0, "mean_us"), 3);
  EXPECT_DOUBLE_EQ(*table.number(1, "mean_us"), 1);
  EXPECT_DOUBLE_EQ(*table.number(2, "mean_us"), 0.5);
  EXPECT_FALSE(table.number(0, "gflops"));
}

TEST(Layers, ALayerInSeveralKernelsHasTheirSumRunByRun) {
  NetworkMaker maker;
  maker.layer("conv", 10, 10);
  maker.kernel("reorder", {0}, {100, 300});
  maker.kernel("gemm", {0}, {1000, 500});
  const Table table = layers(maker.timeline);
  EXPECT_EQ(table.text(0, "kernel"), "reorder+gemm");
  EXPECT_DOUBLE_EQ(*table.number(0, "mean_us"), 0.95);  // 1100 and 800
  EXPECT_NEAR(*table.number(0, "p99_us"), 1.097, 1e-12);
}

TEST(Layers, VanishedLayersHaveNoTimeAndForeignKernelsLowerTheCoverage) {
  NetworkMaker maker;
  maker.layer("conv", 10, 10);
  maker.layer("dropout", 0, 0);
  maker.kernel("conv", {0}, {3000});
  maker.kernel("input reorder", {}, {1000});
  const Table table = layers(maker.timeline);
  EXPECT_FALSE(table.number(1, "mean_us"));
  EXPECT_FALSE(table.number(1, "share"));
  EXPECT_EQ(table.text(1, "kernel"), "");
  EXPECT_DOUBLE_EQ(*table.number(0, "share"), 0.75);
  EXPECT_DOUBLE_EQ(*table.coverage, 0.75);
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("1 layer has no time of their own")));
}

TEST(Layers, ABatchMultipliesTheWorkOfARun) {
  NetworkMaker maker;
  maker.layer("conv", 1'000'000, 10);
  maker.kernel("conv", {0}, {4000});
  maker.timeline.facts["pipeline.batch"] = "8";
  const Table table = layers(maker.timeline);
  EXPECT_DOUBLE_EQ(*table.number(0, "gflops"), 2000);
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("batch of 8")));
}

TEST(Layers, NothingTimed) {
  EXPECT_THAT(layers(Timeline()).notes, ElementsAre(HasSubstr("no layer was timed")));
  NetworkMaker maker;
  maker.layer("conv", 10, 10);
  maker.kernel("conv", {0}, {});
  const Table table = layers(maker.timeline);
  EXPECT_FALSE(table.number(0, "mean_us"));
  EXPECT_FALSE(table.coverage);
  EXPECT_EQ(table.text(0, "kernel"), "conv");
  EXPECT_THAT(table.notes, ElementsAre(HasSubstr("none was timed")));
}

TEST(Fusion, ByHand) {
  NetworkMaker maker;
  maker.layer("conv1", 10, 1);
  maker.layer("relu1", 10, 1);
  maker.layer("dropout", 0, 0);
  maker.layer("pool", 0, 1);
  maker.kernel("k1", {0, 1}, {1000, 3000});
  maker.kernel("k2", {3}, {6000, 6000});
  const Table table = fusion(maker.timeline);
  ASSERT_EQ(table.row_count(), 2U);
  EXPECT_EQ(table.text(0, "kernel"), "k1");
  EXPECT_EQ(table.text(0, "implementation"), "jit");
  EXPECT_EQ(table.text(0, "layers"), "conv1+relu1");
  EXPECT_EQ(*table.number(0, "layer_count"), 2);
  EXPECT_DOUBLE_EQ(*table.number(0, "mean_us"), 2);
  EXPECT_DOUBLE_EQ(*table.number(0, "share"), 0.25);
  EXPECT_DOUBLE_EQ(*table.coverage, 0.75);  // dropout is in no kernel
  EXPECT_FALSE(fusion(Timeline()).coverage);
}

}  // namespace
}  // namespace strobe::analyze
