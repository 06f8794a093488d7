#include "analyze/replay_metrics.h"

#include <gmock/gmock.h>

#include "analyze/device_maker.h"
#include "base/gpu_words.h"

namespace strobe::analyze {
namespace {

namespace words = gpu_words;
using test::DeviceMaker;
using testing::Contains;
using testing::HasSubstr;

trace::Timeline replay(const std::vector<std::vector<Cell>>& rows) {
  Table table(words::kReplayTitle, {{words::kReplayPid, ""},
                                    {words::kReplayDevice, ""},
                                    {words::kReplayLaunch, ""},
                                    {words::kReplayKernel, ""},
                                    {words::kReplayGrid, ""},
                                    {words::kReplayBlock, ""},
                                    {"tensor_percent", ""},
                                    {"global_load_requests", ""}});
  for (const auto& row : rows) table.add_row(row);
  table.notes.push_back("each kernel ran 9 times alone");
  trace::Timeline timeline;
  timeline.tables.push_back(std::move(table));
  return timeline;
}
std::vector<Cell> row(int64_t launch, const char* kernel, const char* grid, Cell tensor, double loads) {
  return {int64_t{5},           int64_t{0},        launch, std::string(kernel), std::string(grid),
          std::string("1,1,1"), std::move(tensor), loads};
}

// The timeline's streams turn the kernels round: launches decide. gemm of grid 8 twice (100 and 300 ns), of grid 9
// once.
trace::Timeline timeline() {
  DeviceMaker maker;
  const int32_t thread = maker.lane(1), one = maker.stream(7), two = maker.stream(8);
  maker.range("first", thread, 0, 100);
  maker.range("second", thread, 100, 200);
  struct {
    const char* name;
    int32_t stream;
    int64_t asked, start, end;
    uint32_t grid;
  } const kernels[] = {{"gemm", one, 10, 1000, 1100, 8},  // the first gemm of 8, although it runs last
                       {"gemm", two, 20, 300, 600, 8},    // the second
                       {"gemm", two, 110, 700, 750, 9},
                       {"relu", two, 120, 800, 850, 1}};  // not in the replay
  for (const auto& kernel : kernels) {
    const int32_t call = maker.api("cudaLaunchKernel", thread, kernel.asked, kernel.asked + 5);
    maker.kernel(kernel.name, kernel.stream, kernel.start, kernel.end, call);
    uint32_t* grid = maker.timeline.device_ops.back().grid;
    grid[0] = kernel.grid, grid[1] = grid[2] = 1;
  }
  return maker.finish();
}

TEST(ReplayMetrics, AKernelIsTheNthOfItsNameAndGrid) {
  const trace::Timeline replayed =
      replay({row(1, "gemm", "8,1,1", 40.0, 10), row(2, "gemm", "9,1,1", Cell(), 1000),
              row(3, "gemm", "8,1,1", 80.0, 30), row(4, "gemm", "8,1,1", 99.0, 99), row(5, "", "8,1,1", 1.0, 1)});
  const auto table = replay_metrics(timeline(), replayed, {});
  ASSERT_TRUE(table);
  ASSERT_EQ(table->row_count(), 2U);
  EXPECT_EQ(table->text(0, "name"), "gemm");
  EXPECT_EQ(*table->number(0, "count"), 3);
  EXPECT_EQ(*table->number(0, "device_ns"), 450);
  EXPECT_EQ(*table->number(0, "matched"), 3);
  // 40 for 100 ns and 80 for 300 ns; the third has none.
  EXPECT_DOUBLE_EQ(*table->number(0, "tensor_percent"), 70);
  EXPECT_DOUBLE_EQ(*table->number(0, "global_load_requests"), (10 + 30 + 1000) / 3.0);
  EXPECT_EQ(*table->number(1, "matched"), 0);
  EXPECT_FALSE(table->number(1, "tensor_percent"));
  EXPECT_DOUBLE_EQ(*table->coverage, 450.0 / 500);
  EXPECT_THAT(table->notes, Contains(HasSubstr("1 kernel of the replay did not run")));
  EXPECT_THAT(table->notes, Contains("replay: each kernel ran 9 times alone"));
}

TEST(ReplayMetrics, ByRange) {
  const trace::Timeline replayed = replay({row(1, "gemm", "8,1,1", 40.0, 10), row(2, "gemm", "9,1,1", 20.0, 1000)});
  const auto table = replay_metrics(timeline(), replayed, {KernelsBy::kRange, 0, {}});
  ASSERT_TRUE(table);
  const auto second = test::row_with(*table, "range", "second");
  ASSERT_TRUE(second);
  EXPECT_EQ(*table->number(*second, "count"), 2);
  EXPECT_EQ(*table->number(*second, "matched"), 1);
  EXPECT_EQ(*table->number(*second, "tensor_percent"), 20);
}

TEST(ReplayMetrics, ATraceWithoutSuchATableIsOneLine) {
  const auto table = replay_metrics(timeline(), timeline(), {});
  ASSERT_FALSE(table);
  EXPECT_THAT(table.error().to_string(), HasSubstr("no counters of replayed kernels"));
}

}  // namespace
}  // namespace strobe::analyze
