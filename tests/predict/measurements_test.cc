#include "predict/measurements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "support/test_data.h"

namespace strobe::predict {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kHeader = "net,level,bs,quantity,value,unit,passed\n";

std::string error_of(const std::string& rows) {
  const auto all = parse_measurements(kHeader + rows);
  return all ? "" : all.error().to_string();
}

std::vector<LayerList> two_lists() {
  LayerRow row;
  row.type = LayerKind::kRelu;
  row.ic = row.oc = row.ih = row.iw = row.oh = row.ow = 1;
  row.inputs = {-1};
  return {{"a", 0, {row}}, {"b", 5, {row}}};
}

TEST(ParseMeasurements, KeepsRepeatedRowsAndBlankValuesOfFailedOnes) {
  const auto all = parse_measurements(
      "device,unit,passed,net,level,bs,quantity,value\n"
      "tx2,ms,1,a,0,8,latency,12.5\n"
      "tx2,ms,1,a,0,8,latency,12.75\n"
      "tx2,MiB,0,a,0,16,memory,\n");
  ASSERT_TRUE(all) << all.error().to_string();
  ASSERT_EQ(all->size(), 3U);
  EXPECT_EQ(all->at(0).value, 12.5);
  EXPECT_EQ(all->at(1).value, 12.75);
  EXPECT_EQ(all->at(1).batch, 8);
  EXPECT_FALSE(all->at(2).passed);
  EXPECT_EQ(all->at(2).value, std::nullopt);
  EXPECT_EQ(all->at(2).quantity, "memory");
}

TEST(ParseMeasurements, SaysLineColumnAndWhatWasExpected) {
  EXPECT_EQ(error_of("a,0,8,latency,12,ms,1\na,0,8,latency,,ms,1\n"),
            "line 3: column value: '', expected a number above 0 where passed is 1");
  EXPECT_EQ(error_of("a,0,8,latency,-1,ms,1\n"),
            "line 2: column value: '-1', expected a number above 0 where passed is 1");
  EXPECT_EQ(error_of("a,0,8,latency,nan,ms,1\n"), "line 2: column value: 'nan', expected a number");
  EXPECT_THAT(error_of("a,0,0,latency,1,ms,1\n"), HasSubstr("column bs: '0', expected a whole number from 1 to "));
  EXPECT_THAT(error_of("a,0,8,latency,1,ms,yes\n"),
              HasSubstr("column passed: 'yes', expected a whole number from 0 to 1"));
  EXPECT_THAT(error_of(",0,8,latency,1,ms,1\n"), HasSubstr("column net: ''"));
}

TEST(Join, CountsWhatHasNoLayers) {
  const auto all = parse_measurements(std::string(kHeader) +
                                      "a,0,8,latency,1,ms,1\n"
                                      "a,10,8,latency,1,ms,1\n"
                                      "a,5,8,latency,1,ms,1\n"
                                      "a,5,16,latency,,ms,0\n"
                                      "b,5,4,latency,3,ms,1\n"
                                      "b,5,8,latency,,ms,0\n"
                                      "c,0,8,latency,1,ms,1\n"
                                      "c,0,8,memory,1,MiB,1\n");
  ASSERT_TRUE(all);
  const auto dataset = join(two_lists(), *all, Quantity::kLatency);
  ASSERT_TRUE(dataset);
  ASSERT_EQ(dataset->samples.size(), 3U);
  EXPECT_THAT(dataset->networks(), ElementsAre("a", "b"));
  EXPECT_EQ(dataset->samples[1].layers->net, "b");
  EXPECT_EQ(dataset->samples[1].value, 3);
  EXPECT_FALSE(dataset->samples[2].passed);
  EXPECT_EQ(dataset->rows_without_layers, 4);
  EXPECT_EQ(dataset->note(),
            "4 latency measurements are not used, their layers are not known: a levels 5,10; c level 0");
}

TEST(Join, RefusesAnotherUnit) {
  const auto all = parse_measurements(std::string(kHeader) + "a,0,8,latency,1,s,1\n");
  ASSERT_TRUE(all);
  EXPECT_EQ(join(two_lists(), *all, Quantity::kLatency).error().to_string(),
            "a level 0 batch 8: the latency is in 's', expected ms");
  EXPECT_TRUE(join(two_lists(), *all, Quantity::kMemory));
}

TEST(ReadDataset, TakesThePublishedMeasurements) {
  const auto folder = test::shared_data("tx2");
  STROBE_REQUIRE_DATA(folder / "measurements.csv");
  const auto latency = read_dataset(folder, Quantity::kLatency);
  const auto memory = read_dataset(folder, Quantity::kMemory);
  ASSERT_TRUE(latency && memory);
  EXPECT_THAT(latency->networks(), ElementsAre("resnet18", "resnet50", "squeezenet", "mobilenetv2"));
  // 3646 rows in the file; none is lost.
  EXPECT_EQ(latency->samples.size() + memory->samples.size() +
                static_cast<size_t>(latency->rows_without_layers + memory->rows_without_layers),
            3646U);
  EXPECT_EQ(memory->levels_without_layers.size(), 3 * 6U);
  EXPECT_THAT(memory->note(), HasSubstr("mobilenetv2 levels 5,15,40,55,60,80; resnet18 levels 5,15,"));
}

TEST(ReadDataset, NamesTheFile) {
  const test::ScratchFolder scratch;
  EXPECT_THAT(read_dataset(scratch.path(), Quantity::kMemory).error().to_string(), HasSubstr("layers.csv"));
}

TEST(ReadDataset, NeverTakesSeveralStagesOrEnginesForOne) {
  const test::ScratchFolder scratch;
  ASSERT_TRUE(write_file(scratch / "layers.csv", format_layer_lists(two_lists())));
  const std::string net = two_lists()[0].net;
  std::string rows = "net,level,bs,quantity,value,unit,passed,stage,engine,error\n";
  for (const char* row : {"latency,5,ms,1,training,torch,", "latency,2,ms,1,inference,torch,",
                          "latency,1,ms,1,inference,openvino,", "memory,9,MiB,1,training,torch,",
                          "latency,,ms,0,training,torch,out of memory: 3 MiB", "latency,,ms,0,training,torch,timeout"})
    rows += net + ",0,8," + row + "\n";
  ASSERT_TRUE(write_file(scratch / "measurements.csv", rows));
  const auto read = [&](const RowFilter& filter) { return read_dataset(scratch.path(), Quantity::kLatency, filter); };
  EXPECT_THAT(read({}).error().to_string(), HasSubstr("several stages (inference, training); choose with --stage"));
  EXPECT_THAT(read({"inference", "", ""}).error().to_string(),
              HasSubstr("several engines (openvino, torch); choose with --engine"));
  EXPECT_EQ(read({"inference", "openvino", ""})->samples.at(0).value, 1);
  const auto training = read({"training", "", ""});
  ASSERT_TRUE(training) << training.error().to_string();
  ASSERT_EQ(training->samples.size(), 2U);  // what ran out of time says nothing of what fits
  EXPECT_FALSE(training->samples[1].passed);
  EXPECT_THAT(training->note(), HasSubstr("1 measurement that failed for another reason"));
  EXPECT_TRUE(read_dataset(scratch.path(), Quantity::kMemory));
  EXPECT_THAT(read({"training", "opencv", ""}).error().to_string(), HasSubstr("no latency of training of opencv"));
}

TEST(ReadDataset, NeverTakesSeveralDevicesForOne) {
  const test::ScratchFolder scratch;
  ASSERT_TRUE(write_file(scratch / "layers.csv", format_layer_lists(two_lists())));
  const std::string net = two_lists()[0].net;
  std::string rows = "net,level,bs,quantity,value,unit,passed,stage,engine,device\n";
  rows += net + ",0,8,latency,5,ms,1,inference,torch,cpu\n" + net + ",0,8,latency,1,ms,1,inference,torch,cuda:0\n";
  ASSERT_TRUE(write_file(scratch / "measurements.csv", rows));
  const auto read = [&](const RowFilter& filter) { return read_dataset(scratch.path(), Quantity::kLatency, filter); };
  EXPECT_THAT(read({}).error().to_string(), HasSubstr("several devices (cpu, cuda:0); choose with --device"));
  const auto gpu = read({"", "", "cuda:0"});
  ASSERT_TRUE(gpu) << gpu.error().to_string();
  EXPECT_EQ(gpu->samples.at(0).value, 1);
  EXPECT_FALSE(gpu->samples.at(0).setting.host);
}

TEST(ParseQuantity, NamesTheTwo) {
  EXPECT_EQ(*parse_quantity("memory"), Quantity::kMemory);
  EXPECT_EQ(parse_quantity("power").error().to_string(), "quantity 'power', expected latency or memory");
}

}  // namespace
}  // namespace strobe::predict
