#include "sensors/weather_files.h"

#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/sha256.h"
#include "sensors/weather_test_data.h"

namespace strobe::sensors {
namespace {

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

std::string kitti(size_t points) {
  std::vector<float> values;
  for (size_t i = 0; i < points; ++i) {
    const auto t = static_cast<float>(i);
    values.insert(values.end(), {5 + t / 10, 3 - t / 7, 1.5F, 0.25F + 0.5F * static_cast<float>(i % 2)});
  }
  return bytes_of(values);
}

std::string sweep_name(int i) {
  return "sweep_" + std::to_string(i) + ".pcd.bin";
}

std::string nuscenes(size_t points) {
  std::vector<float> values;
  for (size_t i = 0; i < points; ++i) {
    const auto t = static_cast<float>(i);
    values.insert(values.end(), {5 + t / 10, 3 - t / 7, 1.5F, static_cast<float>(i % 256), static_cast<float>(i % 32)});
  }
  return bytes_of(values);
}

TEST(WeatherFiles, LayoutIsFoundByNameSizeOrContent) {
  const auto columns = [](const std::string& bytes, const std::string& name) {
    return parse_sweep(bytes, name, 0)->columns;
  };
  EXPECT_EQ(columns(nuscenes(40), "a.pcd.bin"), 5);
  EXPECT_EQ(columns(nuscenes(39), "a.bin"), 5);  // 780 bytes are no multiple of 16
  EXPECT_EQ(columns(kitti(39), "a.bin"), 4);
  EXPECT_EQ(columns(nuscenes(40), "a.bin"), 5);  // 800 bytes: both divide
  EXPECT_EQ(columns(kitti(40), "a.bin"), 4);
  EXPECT_NE(parse_sweep(nuscenes(40), "a.bin", 0)->layout.find("by its intensities"), std::string::npos);
  EXPECT_EQ(parse_sweep(nuscenes(40), "a.bin", 4)->columns, 4);  // as asked
}

TEST(WeatherFiles, LayoutOfRealSweeps) {
  const auto real = strobe::test::shared_data(test::kRealSweep);
  STROBE_REQUIRE_DATA(real);
  EXPECT_EQ(parse_sweep(*read_file(real), "copy.bin", 0)->columns, 5);
  for (const char* name : {"samples/kitti_000134.bin", "samples/kitti_000002.bin"}) {
    const auto path = strobe::test::shared_data(name);
    STROBE_REQUIRE_DATA(path);
    EXPECT_EQ(parse_sweep(*read_file(path), name, 0)->columns, 4);
  }
}

TEST(WeatherFiles, WhatIsNoSweepIsRefused) {
  const auto error = [](const std::string& bytes, const std::string& name, int columns) {
    const auto sweep = parse_sweep(bytes, name, columns);
    return sweep ? std::string() : sweep.error().to_string();
  };
  EXPECT_EQ(error("", "a.bin", 0), "an empty file: expected points");
  EXPECT_EQ(error(std::string(70, 'x'), "a.bin", 0), "70 bytes: expected points of 16 or 20 bytes");
  EXPECT_EQ(error(std::string(70, 'x'), "a.pcd.bin", 0), "70 bytes: expected a multiple of 20 (5 floats a point)");
  EXPECT_EQ(error(std::string(80, 'x'), "a.bin", 4), "");
  EXPECT_NE(error(std::string(80, 'x'), "a.bin", 0), "");
  EXPECT_NE(error(kitti(4), "a.bin", 3), "");
}

WeatherOptions heavy_rain() {
  WeatherOptions options;
  options.rate_mm_h = 50;
  options.seed = 4;
  return options;
}

TEST(WeatherFiles, ALostPointIsRemovedOrZero) {
  const strobe::test::ScratchFolder folder;
  ASSERT_TRUE(write_file(folder / "in.pcd.bin", nuscenes(1000)));
  WeatherJob job;
  job.input = folder / "in.pcd.bin", job.output = folder / "out.bin";
  const auto removed = *weather_on_file(heavy_rain(), job, 1, false);
  EXPECT_GT(removed.summary.all.lost, 0);
  EXPECT_EQ(read_file(job.output)->size(), 20U * static_cast<size_t>(1000 - removed.summary.all.lost));
  job.keep_lost = true;
  const auto kept = *weather_on_file(heavy_rain(), job, 1, false);
  EXPECT_EQ(kept.summary.all.lost, removed.summary.all.lost);
  const auto values = test::read_floats(job.output);
  ASSERT_EQ(values.size(), 5000U);
  int64_t zeros = 0;
  for (size_t i = 0; i < 1000; ++i) {
    EXPECT_EQ(values[5 * i + 4], static_cast<float>(i % 32));  // the ring stays
    zeros += values[5 * i] == 0 && values[5 * i + 1] == 0 && values[5 * i + 2] == 0 && values[5 * i + 3] == 0;
  }
  EXPECT_EQ(zeros, kept.summary.all.lost);
}

TEST(WeatherFiles, AFolderIsEachOfItsFiles) {
  const strobe::test::ScratchFolder folder;
  std::filesystem::create_directory(folder / "in");
  std::filesystem::create_directory(folder / "out");
  for (int i = 0; i < 7; ++i) {
    ASSERT_TRUE(write_file(folder / "in" / sweep_name(i), nuscenes(400 + 33 * static_cast<size_t>(i))));
  }
  ASSERT_TRUE(write_file(folder / "in" / "notes.txt", "no sweep"));
  const auto jobs = *folder_jobs(folder / "in", folder / "out");
  ASSERT_EQ(jobs.size(), 7U);
  size_t calls = 0;
  const auto outcomes = *weather_on_files(heavy_rain(), jobs, 3, [&](size_t) { return ++calls > 0; });
  EXPECT_EQ(calls, 7U);
  const auto manifest = nlohmann::json::parse(weather_manifest(heavy_rain(), jobs, outcomes));
  EXPECT_EQ(manifest["seed"], 4);
  for (size_t i = 0; i < 7; ++i) {
    const std::string written = *read_file(jobs[i].output);
    const auto& entry = manifest["files"][i];
    EXPECT_EQ(entry["sha256"], sha256(written));
    EXPECT_EQ(entry["source_sha256"], sha256(*read_file(jobs[i].input)));
    EXPECT_EQ(entry["frame"], i);
    // The same as the file by itself.
    WeatherJob alone = jobs[i];
    alone.output = folder / "alone.bin";
    ASSERT_TRUE(weather_on_file(heavy_rain(), alone, 2, false));
    EXPECT_EQ(*read_file(alone.output), written);
  }
}

TEST(WeatherFiles, ABadFileOfAFolderIsNamed) {
  const strobe::test::ScratchFolder folder;
  std::filesystem::create_directory(folder / "in");
  ASSERT_TRUE(write_file(folder / "in" / "a.bin", kitti(10)));
  ASSERT_TRUE(write_file(folder / "in" / "b.bin", kitti(10) + "x"));
  const auto jobs = *folder_jobs(folder / "in", folder.path());
  const auto outcomes = weather_on_files(heavy_rain(), jobs, 2, [](size_t) { return true; });
  ASSERT_FALSE(outcomes);
  EXPECT_NE(outcomes.error().to_string().find("b.bin: 161 bytes"), std::string::npos);
  EXPECT_FALSE(folder_jobs(folder / "in", folder / "in"));
  EXPECT_FALSE(folder_jobs(folder / "none", folder.path()));
  std::filesystem::create_directory(folder / "empty");
  EXPECT_FALSE(folder_jobs(folder / "empty", folder / "in"));
}

TEST(WeatherFiles, StoppingIsTold) {
  const strobe::test::ScratchFolder folder;
  std::filesystem::create_directory(folder / "in");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(write_file(folder / "in" / sweep_name(i), nuscenes(50)));
  const auto jobs = *folder_jobs(folder / "in", folder.path());
  const auto outcomes = weather_on_files(heavy_rain(), jobs, 1, [](size_t done) { return done < 2; });
  ASSERT_FALSE(outcomes);
  EXPECT_EQ(outcomes.error().exit_code(), 130);
}

}  // namespace
}  // namespace strobe::sensors
