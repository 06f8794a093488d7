#include "bench/results.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "bench/compare_runs.h"
#include "support/test_data.h"

namespace strobe::bench {
namespace {

namespace fs = std::filesystem;

// Batches of about `ms`, the first and the last far slower; "extra" runs in every other one.
RangeTimes batches(double ms, unsigned seed, int64_t count = 40) {
  std::mt19937 random(seed);
  RangeTimes out;
  double sum = 0;
  for (int64_t i = 0; i < count; ++i) {
    const double noise = static_cast<double>(random() % 1000) / 1000;
    const double time = i == 0 || i == count - 1 ? 500 : ms + noise;
    const std::string path = "demo/pipeline/batch_" + std::to_string(i);
    out.push_back({.path = path + "/infer", .cpu_ms = time / 2, .inside = true});
    if (i % 2 == 0) out.push_back({.path = path + "/extra", .cpu_ms = 1, .inside = true});
    out.push_back({.path = path, .cpu_ms = time, .batch = BatchMark{i, 4}});
    sum += time;
  }
  out.push_back({.path = "demo/pipeline", .cpu_ms = sum});
  return out;
}

void write_run(const fs::path& folder, double ms, Rules rules = Rules::kStrobe, size_t processes = 2) {
  std::vector<ProcessResult> results;
  for (size_t i = 0; i < processes; ++i) {
    const fs::path process = folder / ("proc_" + std::to_string(i) + "_gpu_0");
    fs::create_directories(process);
    const Json file =
        benchmark_of("demo", batches(ms, static_cast<unsigned>(i) + 1), {0, 0}, Rules::kStrobe, Json::object());
    ASSERT_TRUE(write_file(process / "benchmark.json", file.dump()));
    auto read = read_process(process);
    ASSERT_TRUE(read) << read.error().to_string();
    results.push_back(std::move(*read));
  }
  bool settled = false;
  const auto warmup = finish_processes(results, {1, 1}, rules, &settled);
  ASSERT_TRUE(warmup) << warmup.error().to_string();
  Json mean = *mean_of_processes(results, rules);
  mean["meta"]["strobe"]["warmup"] = {{"front", warmup->front}, {"back", warmup->back}};
  ASSERT_TRUE(write_file(folder / "benchmark_mean.json", mean.dump()));
}

TEST(Results, TheLaunchersWarmupHoldsAndMeansAreOfProcesses) {
  const test::ScratchFolder folder;
  write_run(folder.path(), 10);
  const Json mean = Json::parse(*read_file(folder / "benchmark_mean.json"));
  EXPECT_EQ(mean["mean_all_batches"]["demo"]["pipeline"]["total_items_minus_warmup"], 38 * 4);
  const Json one = Json::parse(*read_file(folder / "proc_0_gpu_0/benchmark.json"));
  const Json two = Json::parse(*read_file(folder / "proc_1_gpu_0/benchmark.json"));
  const auto time = [](const Json& data) {
    return data["demo"]["pipeline"]["cpu_time_minus_warmup_per_item"].get<double>();
  };
  EXPECT_LT(time(one["data"]), 4);  // without the slow ends
  EXPECT_NEAR(time(mean["mean_all_batches"]), (time(one["data"]) + time(two["data"])) / 2, 0.001);
  EXPECT_EQ(mean["mean_data"]["demo/pipeline"]["extra"]["cpu_time"], 1.0);
}

TEST(Results, TheTableIsOfAllBatchesThatCount) {
  const test::ScratchFolder folder;
  write_run(folder.path(), 10);
  const auto run = read_run(folder.path());
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(run->warmup.back, 1);
  const Table table = stage_table(run->processes, run->warmup);
  ASSERT_EQ(table.row_count(), 3U);
  EXPECT_EQ(table.text(0, "stage"), "(batch)");
  EXPECT_EQ(table.number(0, "batches"), 76);
  EXPECT_EQ(table.number(0, "processes"), 2);
  const double mean = *table.number(0, "mean_ms");
  EXPECT_NEAR(mean, 10.5, 0.2);
  EXPECT_LT(*table.number(0, "ci95_low_ms"), mean);
  EXPECT_GT(*table.number(0, "ci95_high_ms"), mean);
  EXPECT_LT(*table.number(0, "ci95_high_ms") - *table.number(0, "ci95_low_ms"), 0.5);
  EXPECT_NEAR(*table.number(0, "ms_per_item"), mean / 4, 1e-9);
  EXPECT_EQ(table.text(1, "stage"), "infer");
}

TEST(Results, ComparisonFindsWhatIsSlower) {
  const test::ScratchFolder before, after;
  write_run(before.path(), 10);
  write_run(after.path(), 12);
  const auto a = read_run(before.path()), b = read_run(after / "benchmark_mean.json");
  ASSERT_TRUE(a && b);
  const auto all = compare_runs(*a, *b, "", analyze::Statistic::kMean);
  ASSERT_TRUE(all) << all.error().to_string();
  EXPECT_EQ(all->table.text(0, "verdict"), "B is slower");
  EXPECT_NEAR(*all->table.number(0, "ratio"), 12.5 / 10.5, 0.02);
  ASSERT_EQ(all->lower_ends.size(), 1U);  // of the batches, not of each stage
  EXPECT_GT(all->lower_ends[0].second, 1.1);
  const auto infer = compare_runs(*b, *a, "demo/pipeline:infer", analyze::Statistic::kP50);
  ASSERT_TRUE(infer) << infer.error().to_string();
  EXPECT_EQ(infer->table.row_count(), 1U);
  EXPECT_EQ(infer->table.text(0, "verdict"), "B is faster");
  EXPECT_EQ(compare_runs(*a, *b, "demo/pipelin", analyze::Statistic::kMean).error().kind(), ErrorKind::kNotFound);
  const auto same = compare_runs(*a, *a, "", analyze::Statistic::kMean);
  EXPECT_EQ(same->table.text(0, "verdict"), "no difference shown");
}

TEST(Results, AMeanAloneIsARunToo) {
  const test::ScratchFolder folder;
  write_run(folder.path(), 10);
  for (const char* process : {"proc_0_gpu_0", "proc_1_gpu_0"}) fs::remove_all(folder / process);
  const auto run = read_run(folder.path());
  ASSERT_TRUE(run) << run.error().to_string();
  EXPECT_EQ(stage_table(run->processes, run->warmup).number(0, "batches"), 38);
}

TEST(Results, WhatAProgramDidNotWriteIsSaid) {
  const test::ScratchFolder folder;
  EXPECT_THAT(read_process(folder.path()).error().to_string(), testing::HasSubstr("finalize()"));
  ASSERT_TRUE(write_file(folder / "benchmark.json",
                         R"({"data": {"demo/a": [0, 0]}, "batch_info": {}, "meta": {"obj_name": "demo"}})"));
  EXPECT_THAT(read_process(folder.path()).error().to_string(), testing::HasSubstr("no timeline"));
  EXPECT_FALSE(is_run(folder.path()));
}

}  // namespace
}  // namespace strobe::bench
