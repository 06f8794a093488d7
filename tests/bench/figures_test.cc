#include "bench/figures.h"

#include <gtest/gtest.h>

#include "bench/mean.h"
#include "bench/read.h"
#include "bench/warmup.h"

namespace strobe::bench {
namespace {

RangeTime batch(int64_t index, int64_t items, double cpu_ms, double gpu_ms) {
  return {.path = "demo/run_sample/pipeline/batch_" + std::to_string(index),
          .cpu_ms = cpu_ms,
          .gpu_ms = gpu_ms,
          .batch = BatchMark{index, items}};
}
RangeTime inside(int64_t index, const std::string& name, double cpu_ms, double gpu_ms = 0) {
  return {.path = "demo/run_sample/pipeline/batch_" + std::to_string(index) + "/" + name,
          .cpu_ms = cpu_ms,
          .gpu_ms = gpu_ms,
          .inside = true};
}
RangeTime level(const std::string& path, double cpu_ms, double gpu_ms) {
  return {.path = path, .cpu_ms = cpu_ms, .gpu_ms = gpu_ms};
}

// The example of the format: four batches of four, one of them at either end is warm-up.
RangeTimes example() {
  return {inside(0, "decode", 12),
          batch(0, 4, 40, 17),
          inside(1, "decode", 10),
          batch(1, 4, 26, 15),
          inside(2, "decode", 11),
          batch(2, 4, 24, 13),
          inside(3, "decode", 12.5),
          batch(3, 4, 30, 15),
          level("demo/run_sample/pipeline", 120, 60),
          level("demo/run_sample", 130, 60)};
}

TEST(Figures, EveryKeyOfTheExample) {
  const Json json = benchmark_of("demo", example(), {1, 1}, Rules::kStrobe, Json{{"args", {{"device_id", 0}}}});
  const Json expected = Json::parse(R"({"run_sample": {
    "pipeline": {
      "batch_0": {"decode": {"cpu_time": 12.0, "gpu_time": 0.0}, "cpu_time": 40.0, "gpu_time": 17.0, "total_items": 4,
                  "cpu_time_per_item": 10.0, "gpu_time_per_item": 4.25},
      "batch_1": {"decode": {"cpu_time": 10.0, "gpu_time": 0.0}, "cpu_time": 26.0, "gpu_time": 15.0, "total_items": 4,
                  "cpu_time_per_item": 6.5, "gpu_time_per_item": 3.75},
      "batch_2": {"decode": {"cpu_time": 11.0, "gpu_time": 0.0}, "cpu_time": 24.0, "gpu_time": 13.0, "total_items": 4,
                  "cpu_time_per_item": 6.0, "gpu_time_per_item": 3.25},
      "batch_3": {"decode": {"cpu_time": 12.5, "gpu_time": 0.0}, "cpu_time": 30.0, "gpu_time": 15.0, "total_items": 4,
                  "cpu_time_per_item": 7.5, "gpu_time_per_item": 3.75},
      "cpu_time": 120.0, "gpu_time": 60.0, "cpu_time_per_item": 7.5, "gpu_time_per_item": 3.75, "total_items": 16,
      "cpu_time_minus_warmup": 50.0, "gpu_time_minus_warmup": 28.0, "cpu_time_minus_warmup_per_item": 6.25,
      "gpu_time_minus_warmup_per_item": 3.5, "total_items_minus_warmup": 8},
    "cpu_time": 130.0, "gpu_time": 60.0, "cpu_time_per_item": 8.125, "gpu_time_per_item": 3.75, "total_items": 16}})");
  // Keys in the same order, too.
  EXPECT_EQ(json["data"]["demo"].dump(1), expected.dump(1));
  const Json mean = Json::parse(R"({"demo/run_sample/pipeline": {
    "decode": {"cpu_time": 10.5, "gpu_time": 0.0}, "cpu_time": 25.0, "gpu_time": 14.0, "total_items": 4.0,
    "cpu_time_per_item": 6.25, "gpu_time_per_item": 3.5}})");
  EXPECT_EQ(json["mean_data"].dump(1), mean.dump(1));
  EXPECT_EQ(json["meta"]["obj_name"], "demo");
  EXPECT_EQ(json["meta"]["measurement_unit"], "milliseconds");
  EXPECT_EQ(json["meta"]["total_batches"], Json({{"demo/run_sample/pipeline", 4}}));
  EXPECT_EQ(json["meta"]["args"]["device_id"], 0);
  // On even counts both rules say the same.
  EXPECT_EQ(data_of(example(), {1, 1}, Rules::kOriginal), json["data"]);
  EXPECT_EQ(mean_data_of(json["data"], example(), {1, 1}, Rules::kOriginal), json["mean_data"]);
}

TEST(Figures, EmptyBatchesAndAllWarmup) {
  RangeTimes ranges = example();
  ranges.insert(ranges.begin() + 8, batch(4, 0, 3, 0));
  const Json data = data_of(ranges, {2, 2}, Rules::kStrobe);
  const Json& pipeline = data["demo"]["run_sample"]["pipeline"];
  EXPECT_FALSE(pipeline["batch_4"].contains("cpu_time_per_item"));
  EXPECT_EQ(pipeline["batch_4"]["total_items"], 0);
  // All four are dropped, the empty one is not: 120 - (40 + 26 + 24 + 30).
  EXPECT_EQ(pipeline["cpu_time_minus_warmup"], 0.0);
  EXPECT_EQ(pipeline["total_items_minus_warmup"], 0);
  EXPECT_EQ(pipeline["cpu_time_minus_warmup_per_item"], 0.0);
  EXPECT_EQ(mean_data_of(data, ranges, {2, 2}, Rules::kStrobe), Json::object());
  // A level without any batch below it has no items and no time an item.
  ranges.push_back(level("demo/load", 7, 0));
  const Json load = data_of(ranges, {1, 1}, Rules::kStrobe)["demo"]["load"];
  EXPECT_EQ(load, Json::parse(R"({"cpu_time": 7.0, "gpu_time": 0.0, "cpu_time_per_item": 0.0,
                                  "gpu_time_per_item": 0.0, "total_items": 0})"));
}

TEST(Figures, UnevenCountsAreWhereTheRulesPart) {
  RangeTimes ranges = example();
  ranges.insert(ranges.begin() + 5, inside(2, "retry", 6));  // in one of the two counted batches
  const auto retry = [&ranges](Rules rules) {
    const Json data = data_of(ranges, {1, 1}, rules);
    return mean_data_of(data, ranges, {1, 1}, rules)["demo/run_sample/pipeline"]["retry"]["cpu_time"].get<double>();
  };
  EXPECT_EQ(retry(Rules::kStrobe), 6.0);
  EXPECT_EQ(retry(Rules::kOriginal), 3.0);
}

TEST(Figures, NamesThatBeginAlikeAreNotBelowEachOther) {
  RangeTimes ranges = example();
  ranges.push_back(level("demo/run", 200, 0));
  EXPECT_EQ(data_of(ranges, {1, 1}, Rules::kStrobe)["demo"]["run"]["total_items"], 0);
  EXPECT_EQ(data_of(ranges, {1, 1}, Rules::kOriginal)["demo"]["run"]["total_items"], 16);
}

TEST(Mean, EachKeyOverThoseThatHaveIt) {
  MeanOfFigures mean;
  mean.add(Json::parse(R"({"cpu_time": 1, "a": {"cpu_time": 2}, "note": "text"})"));
  mean.add(Json::parse(R"({"cpu_time": 4.0005, "b": {"cpu_time": 3}})"));
  EXPECT_EQ(mean.mean(Rules::kStrobe),
            Json::parse(R"({"cpu_time": 2.5, "a": {"cpu_time": 2.0}, "b": {"cpu_time": 3.0}})"));
  EXPECT_EQ(mean.mean(Rules::kOriginal),
            Json::parse(R"({"cpu_time": 2.5, "a": {"cpu_time": 1.0}, "b": {"cpu_time": 1.5}})"));
}

TEST(Read, WhatWasWrittenGivesTheSameFiguresWithAnotherWarmup) {
  RangeTimes ranges = example();
  ranges.insert(ranges.begin() + 8, batch(4, 0, 3, 0));
  const Json written = benchmark_of("demo", ranges, {1, 1}, Rules::kStrobe, Json::object());
  const auto read = read_benchmark(written.dump());
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_FALSE(read->placeholder);
  EXPECT_EQ(data_of(read->ranges, {0, 0}, Rules::kStrobe), data_of(ranges, {0, 0}, Rules::kStrobe));
  // Without what ours adds, batches are told by their names and places.
  Json foreign = written;
  foreign["meta"].erase("strobe");
  const auto of_foreign = read_benchmark(foreign.dump());
  ASSERT_TRUE(of_foreign) << of_foreign.error().to_string();
  EXPECT_EQ(data_of(of_foreign->ranges, {0, 0}, Rules::kStrobe), data_of(ranges, {0, 0}, Rules::kStrobe));
}

TEST(Read, WhatCvCudaPerfLeavesIsAPlaceholder) {
  const auto read = read_benchmark(R"({
    "data": {"demo/a/batch_0/x": [0, 0], "demo/a/batch_0": [0, 0], "demo/a": [0, 0]}, "mean_data": {},
    "batch_info": {"demo/a/batch_0": [0, 4]}, "inside_batch_info": ["demo/a/batch_0/x", "demo/a/batch_0"],
    "meta": {"obj_name": "demo"}})");
  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_TRUE(read->placeholder);
  ASSERT_EQ(read->ranges.size(), 3U);
  EXPECT_TRUE(read->ranges[0].inside);
  EXPECT_TRUE(read->ranges[1].closed_batch());
  EXPECT_FALSE(read->ranges[2].inside);
}

TEST(Read, WhatCannotBeOneIsRefused) {
  for (const char* text :
       {"", "[]", "{", R"({"data": {}})", R"({"data": [], "meta": {}})",
        R"({"data": {"a": {"cpu_time": "x"}}, "meta": {}})", R"({"data": {"a": {"cpu_time": 1e999}}, "meta": {}})",
        R"({"data": {}, "meta": {}, "batch_info": {"a": [0]}})",
        R"({"data": {}, "meta": {}, "batch_info": {"a": [-1, 2]}})"})
    EXPECT_FALSE(read_benchmark(text)) << text;
  std::string deep = R"({"meta": {}, "data": )";
  for (int i = 0; i < 500; ++i) deep += R"({"a": )";
  deep += "1";
  for (int i = 0; i < 501; ++i) deep += "}";
  EXPECT_FALSE(read_benchmark(deep));
  const std::string long_path(500, '/');
  EXPECT_FALSE(read_benchmark(R"({"meta": {}, "batch_info": {}, "data": {")" + long_path + R"(": [0, 0]}})"));
  EXPECT_FALSE(read_mean(R"({"mean_all_batches": {}})"));
  EXPECT_TRUE(read_mean(R"({"mean_all_batches": {}, "mean_data": {}})"));
}

}  // namespace
}  // namespace strobe::bench
