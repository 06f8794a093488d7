#include "strobe/bench/perf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

namespace strobe::bench {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using testing::HasSubstr;

class PerfTest : public testing::Test {
 protected:
  PerfTest() : folder_(fs::temp_directory_path() / ("strobe-perf-" + std::to_string(::getpid()))) {
    fs::create_directories(folder_);
  }
  ~PerfTest() override { fs::remove_all(folder_); }

  PerfOptions options() const { return {.output_dir = folder_.string(), .collect = true, .warmup = Warmup{0, 0}}; }
  Json written() const {
    std::ifstream file(folder_ / "benchmark.json");
    return Json::parse(file);
  }

  fs::path folder_;
};

void spend(int milliseconds) {
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
}

TEST_F(PerfTest, RangesNestAndBatchesAreNamedByTheirIndex) {
  Perf perf("demo", options());
  ASSERT_TRUE(perf.push_range("run_sample"));
  ASSERT_TRUE(perf.push_range("pipeline"));
  for (int64_t i = 0; i < 3; ++i) {
    ASSERT_TRUE(perf.push_range("batch", {}, i));
    ASSERT_TRUE(perf.push_range("decode"));
    spend(2);
    ASSERT_TRUE(perf.pop_range());
    ASSERT_TRUE(perf.pop_range(i == 2 ? 0 : 4));
  }
  ASSERT_TRUE(perf.pop_range());
  ASSERT_TRUE(perf.pop_range());
  const auto text = perf.finalize();
  ASSERT_TRUE(text) << text.error().to_string();
  const Json json = Json::parse(*text);
  EXPECT_EQ(json, written());
  const Json& pipeline = json["data"]["demo"]["run_sample"]["pipeline"];
  EXPECT_GE(pipeline["batch_0"]["decode"]["cpu_time"].get<double>(), 2);
  EXPECT_GE(pipeline["batch_0"]["cpu_time"].get<double>(), pipeline["batch_0"]["decode"]["cpu_time"].get<double>());
  EXPECT_GE(pipeline["cpu_time"].get<double>(),
            pipeline["batch_0"]["cpu_time"].get<double>() + pipeline["batch_1"]["cpu_time"].get<double>());
  EXPECT_EQ(pipeline["total_items"], 8);
  EXPECT_FALSE(pipeline["batch_0"]["decode"].contains("total_items"));
  EXPECT_FALSE(pipeline["batch_2"].contains("cpu_time_per_item"));
  EXPECT_EQ(json["meta"]["total_batches"], Json({{"demo/run_sample/pipeline", 2}}));
  EXPECT_EQ(json["meta"]["device"], Json({{"id", 0}, {"name", "CPU"}}));
}

TEST_F(PerfTest, WithoutBenchmarkPyNothingIsCollected) {
  ::unsetenv("BENCHMARK_PY");
  Perf perf("demo", {.output_dir = folder_.string()});
  EXPECT_FALSE(perf.collecting());
  EXPECT_TRUE(perf.push_range("a"));
  EXPECT_TRUE(perf.pop_range());
  EXPECT_TRUE(perf.pop_range());
  EXPECT_EQ(*perf.finalize(), "{}");
  EXPECT_FALSE(fs::exists(folder_ / "benchmark.json"));
}

TEST_F(PerfTest, TheEnvironmentTurnsItOnAndSaysTheWarmup) {
  ::setenv("BENCHMARK_PY", "1", 1);
  ::setenv("STROBE_BENCH_WARMUP", "2", 1);
  Perf perf("demo", {.output_dir = folder_.string()});
  ::setenv("STROBE_BENCH_WARMUP", "two", 1);
  Perf wrong("demo", {.output_dir = folder_.string()});
  ::unsetenv("BENCHMARK_PY");
  ::unsetenv("STROBE_BENCH_WARMUP");
  ASSERT_TRUE(perf.collecting());
  ASSERT_TRUE(perf.push_range("level"));
  for (int64_t i = 0; i < 5; ++i) {
    ASSERT_TRUE(perf.push_range("batch", {}, i));
    ASSERT_TRUE(perf.pop_range(3));
  }
  ASSERT_TRUE(perf.pop_range());
  const Json json = Json::parse(*perf.finalize());
  EXPECT_EQ(json["data"]["demo"]["level"]["total_items_minus_warmup"], 3);
  EXPECT_THAT(wrong.finalize().error().to_string(), HasSubstr("STROBE_BENCH_WARMUP"));
}

TEST_F(PerfTest, OpenRangesAreCounted) {
  Perf perf("demo", options());
  ASSERT_TRUE(perf.push_range("a"));
  ASSERT_TRUE(perf.push_range("b"));
  const auto result = perf.finalize();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message(), HasSubstr("2 ranges are still open"));
  EXPECT_THAT(result.error().message(), HasSubstr("demo/a/b"));
  EXPECT_FALSE(fs::exists(folder_ / "benchmark.json"));
}

TEST_F(PerfTest, ItemsCloseABatchAndNothingElse) {
  Perf perf("demo", options());
  EXPECT_FALSE(perf.pop_range());
  ASSERT_TRUE(perf.push_range("a"));
  EXPECT_EQ(perf.pop_range(4).error().kind(), ErrorKind::kUsage);
  ASSERT_TRUE(perf.push_range("batch", {}, 0));
  ASSERT_TRUE(perf.push_range("inner"));
  EXPECT_FALSE(perf.pop_range(4));
  EXPECT_TRUE(perf.pop_range());
  EXPECT_FALSE(perf.pop_range(-1));
  EXPECT_TRUE(perf.pop_range(4));
  EXPECT_TRUE(perf.pop_range());
  EXPECT_TRUE(perf.finalize());
}

TEST_F(PerfTest, ADeletedRangeTakesItsChildrenAlongAndMayComeAgain) {
  Perf perf("demo", options());
  ASSERT_TRUE(perf.push_range("level"));
  for (const bool fails : {true, false}) {
    ASSERT_TRUE(perf.push_range("batch", {}, 1));
    ASSERT_TRUE(perf.push_range(fails ? "tried" : "done"));
    ASSERT_TRUE(perf.pop_range());
    ASSERT_TRUE(perf.pop_range(4, fails));
  }
  ASSERT_TRUE(perf.push_range("batch", {}, 10));
  ASSERT_TRUE(perf.pop_range(4));
  ASSERT_TRUE(perf.pop_range());
  const Json level = Json::parse(*perf.finalize())["data"]["demo"]["level"];
  EXPECT_FALSE(level["batch_1"].contains("tried"));
  EXPECT_TRUE(level["batch_1"].contains("done"));
  EXPECT_EQ(level["total_items"], 8);
}

TEST_F(PerfTest, TheOriginalDeletesByPrefix) {
  PerfOptions original = options();
  original.rules = Rules::kOriginal;
  Perf perf("demo", original);
  ASSERT_TRUE(perf.push_range("batch", {}, 1));
  ASSERT_TRUE(perf.pop_range(4, true));
  ASSERT_TRUE(perf.push_range("batch", {}, 10));
  ASSERT_TRUE(perf.pop_range(4));
  ASSERT_TRUE(perf.push_range("other"));
  ASSERT_TRUE(perf.pop_range());
  const Json json = Json::parse(*perf.finalize());
  EXPECT_FALSE(json["data"]["demo"].contains("batch_10"));
  EXPECT_TRUE(json["data"]["demo"].contains("other"));
}

TEST_F(PerfTest, RangesNestPerThreadAndSamePathsAreAveraged) {
  Perf perf("demo", options());
  ASSERT_TRUE(perf.push_range("main"));
  std::vector<std::thread> threads;
  for (const int milliseconds : {10, 30})
    threads.emplace_back([&perf, milliseconds] {
      EXPECT_TRUE(perf.push_range("work"));
      spend(milliseconds);
      EXPECT_TRUE(perf.pop_range());
    });
  for (auto& thread : threads) thread.join();
  ASSERT_TRUE(perf.pop_range());
  const Json demo = Json::parse(*perf.finalize())["data"]["demo"];
  EXPECT_FALSE(demo["main"].contains("work"));
  // The mean of both, neither one nor their sum.
  EXPECT_GE(demo["work"]["cpu_time"].get<double>(), 20);
  EXPECT_LT(demo["work"]["cpu_time"].get<double>(), 40);
}

TEST_F(PerfTest, NamesOfFiguresAreRefused) {
  Perf perf("demo", options());
  EXPECT_THAT(perf.push_range("cpu_time").error().message(), HasSubstr("name of a figure"));
  EXPECT_FALSE(perf.push_range(""));
  EXPECT_FALSE(perf.push_range("/absolute"));
  EXPECT_FALSE(perf.push_range("batch", {}, -1));
  EXPECT_TRUE(perf.push_range("a/b"));
  EXPECT_TRUE(perf.pop_range());
  EXPECT_TRUE(Json::parse(*perf.finalize())["data"]["demo"]["a"]["b"].contains("cpu_time"));
}

TEST_F(PerfTest, MetaIsTheUsersOwn) {
  PerfOptions with_meta = options();
  with_meta.meta = R"({"cvcuda_version": "0.5", "args": {"batch_size": 4}})";
  Perf perf("demo", with_meta);
  const Json meta = Json::parse(*perf.finalize())["meta"];
  EXPECT_EQ(meta["cvcuda_version"], "0.5");
  EXPECT_EQ(meta["args"]["batch_size"], 4);
  with_meta.meta = "[1]";
  EXPECT_FALSE(Perf("demo", with_meta).finalize());
}

TEST_F(PerfTest, AScopeIsARange) {
  Perf perf("demo", options());
  {
    const Perf::Scope level(perf, "level");
    for (int64_t i = 0; i < 2; ++i) {
      Perf::Scope batch(perf, "batch", {}, i);
      const Perf::Scope stage(perf, "decode");
      batch.items(4);
      if (i == 1) batch.discard();
    }
  }
  const Json level = Json::parse(*perf.finalize())["data"]["demo"]["level"];
  EXPECT_EQ(level["total_items"], 4);
  EXPECT_TRUE(level["batch_0"].contains("decode"));
  EXPECT_FALSE(level.contains("batch_1"));
  {
    Perf::Scope wrong(perf, "no_batch");
    wrong.items(4);
  }
  EXPECT_THAT(perf.finalize().error().message(), HasSubstr("without a batch index"));
}

TEST_F(PerfTest, ManyBatchesOfSeveralThreads) {
  Perf perf("demo", options());
  constexpr int64_t kBatches = 3000;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 3; ++thread)
    threads.emplace_back([&perf, thread] {
      const std::string name = "level" + std::to_string(thread);
      const Perf::Scope level(perf, name);
      for (int64_t i = 0; i < kBatches; ++i) {
        Perf::Scope batch(perf, "batch", {}, i);
        const Perf::Scope stage(perf, "decode");
        batch.items(2);
      }
    });
  for (auto& thread : threads) thread.join();
  const Json json = Json::parse(*perf.finalize());
  for (int thread = 0; thread < 3; ++thread) {
    const Json& level = json["data"]["demo"]["level" + std::to_string(thread)];
    EXPECT_EQ(level["total_items"], 2 * kBatches);
    EXPECT_EQ(json["meta"]["total_batches"]["demo/level" + std::to_string(thread)], kBatches);
    EXPECT_FALSE(level["batch_2999"]["decode"].contains("total_items"));
  }
}

TEST_F(PerfTest, LatencyCountsFromTheIntendedArrival) {
  Perf perf("demo", options());
  Arrivals arrivals = Arrivals::constant(1000);
  // The second request waits behind the first one's 30 ms.
  for (const int milliseconds : {30, 1}) {
    const auto arrival = arrivals.next();
    spend(milliseconds);
    perf.completed(*arrival);
  }
  const Json latency = Json::parse(*perf.finalize())["meta"]["strobe"]["latency"];
  EXPECT_EQ(latency["requests"], 2);
  EXPECT_GE(latency["wait_p99"].get<double>(), 25);
  EXPECT_GE(latency["mean"].get<double>(), 29);
  EXPECT_DOUBLE_EQ(latency["offered_per_s"].get<double>(), 1000);
}

}  // namespace
}  // namespace strobe::bench
