#include "measure/measurement_file.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/file.h"
#include "support/test_data.h"

namespace strobe::measure {
namespace {

MeasurementRow row_of(int64_t batch, bool passed) {
  MeasurementRow row;
  row.key = {"resnet18", 30, batch, Quantity::kLatency, Stage::kTraining, "torch", "cpu", 2};
  row.passed = passed;
  row.mean = 12.5;
  row.median = 12.25;
  row.repetitions = 7;
  row.seconds = 1.5;
  if (!passed) row.error = "out of memory: \"a\", b\nc";
  return row;
}

TEST(MeasurementFile, FirstColumnsAreThoseOfThePublicLogs) {
  const auto path = test::shared_data("tx2/measurements.csv");
  STROBE_REQUIRE_DATA(path);
  const std::string text = read_file(path).value();
  EXPECT_TRUE(measurement_header().starts_with(text.substr(0, text.find('\n')) + ","));
}

TEST(MeasurementFile, ALineByHand) {
  EXPECT_EQ(measurement_line(row_of(4, true)),
            "resnet18,30,4,latency,12.500000,ms,1,training,torch,cpu,2,12.250000,0.000000,0.000000,0.000000,7,0,1,0,1,"
            "0.0000,0.0000,0.0000,0,,,,,,,,0,1.500,");
  EXPECT_EQ(measurement_line(row_of(8, false)),
            "resnet18,30,8,latency,,ms,0,training,torch,cpu,2,,,,,,,,,,,,,,,,,,,,,0,1.500,out of memory: 'a'; b c");
}

TEST(MeasurementFile, OnAGpuWhatIsNotToldIsEmpty) {
  MeasurementRow row = row_of(4, true);
  row.key.device = "cuda:0";
  row.gpu_others_share = 0.25;
  row.gpu_clock_mhz = 1755.4;
  row.limit_mib = -1;
  EXPECT_EQ(measurement_line(row),
            "resnet18,30,4,latency,12.500000,ms,1,training,torch,cuda:0,2,12.250000,0.000000,0.000000,0.000000,7,0,1,0,"
            "1,0.0000,0.0000,0.0000,0,0.2500,,1755,,,,,,1.500,");
  row.key.quantity = Quantity::kMemory;
  row.before_mib = 1024;
  row.peak_mib = row.allocated_mib = -1;
  row.limit_mib = 70000;
  EXPECT_EQ(measurement_line(row),
            "resnet18,30,4,memory,12.500000,MiB,1,training,torch,cuda:0,2,12.250000,0.000000,0.000000,0.000000,7,0,1,0,"
            "1,,,,,,,,,1024.000,,,70000,1.500,");
  EXPECT_TRUE(parse_measurement_line(measurement_line(row)));
}

TEST(MeasurementFile, RowsAreFoundAgain) {
  const test::ScratchFolder folder;
  const auto path = folder / "measurements.csv";
  {
    auto file = MeasurementFile::open(path);
    ASSERT_TRUE(file) << file.error().to_string();
    ASSERT_TRUE(file->append(row_of(4, true)));
    ASSERT_TRUE(file->append(row_of(8, false)));
  }
  const auto again = MeasurementFile::open(path);
  ASSERT_TRUE(again) << again.error().to_string();
  ASSERT_EQ(again->rows().size(), 2U);
  ASSERT_NE(again->find(row_of(4, true).key), nullptr);
  EXPECT_TRUE(again->find(row_of(4, true).key)->passed);
  EXPECT_FALSE(again->find(row_of(8, true).key)->passed);
  EXPECT_EQ(again->find(row_of(16, true).key), nullptr);
  MeasurementKey other = row_of(4, true).key;
  other.engine = "openvino";
  EXPECT_EQ(again->find(other), nullptr);
}

// Whatever byte a crash cut it at: whole lines stay, the torn one goes, and writing goes on.
TEST(MeasurementFile, TornAtAnyByte) {
  const std::string whole = measurement_header() + "\n" + measurement_line(row_of(4, true)) + "\n" +
                            measurement_line(row_of(8, false)) + "\n";
  const test::ScratchFolder folder;
  for (size_t size = 0; size <= whole.size(); size += size < 60 ? 1 : 7) {
    const auto path = folder / ("cut" + std::to_string(size) + ".csv");
    const std::string cut = whole.substr(0, size);
    ASSERT_TRUE(write_file(path, cut));
    const auto lines = std::count(cut.begin(), cut.end(), '\n');
    auto file = MeasurementFile::open(path);
    ASSERT_TRUE(file) << size << ": " << file.error().to_string();
    EXPECT_EQ(file->rows().size(), static_cast<size_t>(std::max<long>(0, lines - 1))) << size;
    ASSERT_TRUE(file->append(row_of(16, true)));
    const std::string text = read_file(path).value();
    EXPECT_TRUE(text.ends_with(measurement_line(row_of(16, true)) + "\n"));
    EXPECT_TRUE(MeasurementFile::open(path)) << size;
  }
}

// As a version of before wrote it, without the columns of GPUs.
std::string older(std::string line) {
  const bool is_header = line.starts_with("net,");
  const std::string added = is_header ? "gpu_others_share,gpu_throttled_share,gpu_clock_mhz,gpu_clock_spread," : ",,,,";
  size_t at = 0;
  for (int field = 0; field < 24; ++field) at = line.find(',', at) + 1;
  EXPECT_EQ(line.substr(at, added.size()), added);
  return line.erase(at, added.size()) + "\n";
}

TEST(MeasurementFile, OneWithoutTheColumnsOfGpusGoesOnAndGetsThemEmpty) {
  const test::ScratchFolder folder;
  const auto path = folder / "file.csv";
  MeasurementRow memory = row_of(2, true);
  memory.key.quantity = Quantity::kMemory;
  memory.before_mib = 100, memory.peak_mib = 300, memory.allocated_mib = 20;
  const std::string header = measurement_header() + "\n", before = older(measurement_header()) +
                                                                   older(measurement_line(memory)) +
                                                                   older(measurement_line(row_of(4, true)));
  ASSERT_TRUE(write_file(path, before + "torn,3"));
  auto file = MeasurementFile::open(path);
  ASSERT_TRUE(file) << file.error().to_string();
  ASSERT_EQ(file->rows().size(), 2U);
  EXPECT_TRUE(file->find(memory.key)->passed);
  EXPECT_EQ(file->find(memory.key)->seconds, 1.5);
  EXPECT_EQ(read_file(path).value(), before + "torn,3") << "nothing is changed before there is something to add";
  ASSERT_TRUE(file->append(row_of(8, false)));
  EXPECT_EQ(read_file(path).value(), header + measurement_line(memory) + "\n" + measurement_line(row_of(4, true)) +
                                         "\n" + measurement_line(row_of(8, false)) + "\n");
  // A header that was torn, and a line that is none.
  ASSERT_TRUE(write_file(path, before.substr(0, 250)));
  EXPECT_TRUE(MeasurementFile::open(path));
  for (const auto& [line, fields] :
       {std::pair<std::string, int>{measurement_line(row_of(8, true)), 34}, {"a,1,2", 3}}) {
    ASSERT_TRUE(write_file(path, before + line + "\n"));
    const auto mixed = MeasurementFile::open(path);
    ASSERT_FALSE(mixed);
    const std::string why = "line 4: " + std::to_string(fields) + " fields, expected 30";
    EXPECT_NE(mixed.error().to_string().find(why), std::string::npos) << mixed.error().to_string();
  }
}

TEST(MeasurementFile, NothingIsThereBeforeTheFirstRow) {
  const test::ScratchFolder folder;
  const auto path = folder / "file.csv";
  auto file = MeasurementFile::open(path);
  ASSERT_TRUE(file);
  EXPECT_FALSE(std::filesystem::exists(path));
  ASSERT_TRUE(file->append(row_of(4, true)));
  EXPECT_EQ(read_file(path).value(), measurement_header() + "\n" + measurement_line(row_of(4, true)) + "\n");
}

TEST(MeasurementFile, OtherFilesAreRefusedAndLeftAlone) {
  const test::ScratchFolder folder;
  const auto refused = [&](const std::string& text, const std::string& why) {
    const auto path = folder / "file.csv";
    ASSERT_TRUE(write_file(path, text));
    const auto file = MeasurementFile::open(path);
    ASSERT_FALSE(file) << text;
    EXPECT_NE(file.error().to_string().find(why), std::string::npos) << file.error().to_string();
    EXPECT_EQ(read_file(path).value(), text);
  };
  refused("net,level,bs,quantity,value,unit,passed\nresnet18,0,2,latency,1,ms,1\n",
          "has other columns than this version of strobe writes (it has no column 'stage'); give another folder");
  refused("net,level,batch,quantity\n", "column 3 is 'batch', expected 'bs'");
  refused(measurement_header() + ",more\n", "column 35 is 'more', expected no more");
  refused("no line", "no end");
  refused(measurement_header() + "\nresnet18,0,2\n", "line 2: 3 fields");
  std::string line = measurement_line(row_of(4, true));
  line.replace(line.find("latency"), 7, "speed");
  refused(measurement_header() + "\n" + measurement_line(row_of(2, true)) + "\n" + line + "\n",
          "line 3: quantity 'speed': expected memory or latency");
  // Nothing that would be written as something else.
  line = measurement_line(row_of(4, true));
  line[2] = '\0';
  refused(measurement_header() + "\n" + line + "\n", "line 2: byte 0x00 at column 3");
  line[2] = '"';
  refused(measurement_header() + "\n" + line + "\n", "line 2: byte 0x22 at column 3");
}

TEST(MeasurementFile, DamagedLinesNeverCrash) {
  const std::string line = measurement_line(row_of(4, true));
  std::mt19937 random(5);
  for (int i = 0; i < 20000; ++i) {
    std::string damaged = line;
    for (int k = 0; k < 3; ++k) damaged[random() % damaged.size()] = static_cast<char>(random());
    const auto row = parse_measurement_line(damaged);
    EXPECT_TRUE(!row || !row->key.net.empty());
  }
}

}  // namespace
}  // namespace strobe::measure
