// HTA's rules against what HolisticTraceAnalysis itself computes of real traces.
#include "analyze/idle_hta.h"

#include <gmock/gmock.h>

#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "analyze/idle.h"
#include "analyze/launches.h"
#include "importers/importer.h"
#include "support/test_data.h"

namespace strobe::analyze {
namespace {

using Json = nlohmann::json;

TEST(HtaType, NamesAsHtaGroupsThem) {
  EXPECT_EQ(hta_type("volta_sgemm_128x64_nn"), WorkType::kCompute);
  EXPECT_EQ(hta_type("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)"), WorkType::kCommunication);
  EXPECT_EQ(hta_type("void ncclKernel_x"), WorkType::kCommunication);
  EXPECT_EQ(hta_type("Memcpy HtoD (Pageable -> Device)"), WorkType::kMemory);
  EXPECT_EQ(hta_type("Memset (Device)"), WorkType::kMemory);
  EXPECT_EQ(hta_type("SyncBatchNorm_kernel"), WorkType::kOther);
  EXPECT_EQ(hta_type("Stream Wait Event"), WorkType::kOther);
}

constexpr int64_t kUs = 1000;

std::filesystem::path folder() {
  return test::shared_data("traces/kineto");
}

Json expected_figures() {
  std::ifstream file(folder() / "expected.json");
  return Json::parse(file)["hta_0_6_1"];
}

// "computation + memory" -> "COMPUTATION overlapping MEMORY"
std::string in_hta_words(std::string name) {
  for (size_t at = name.find(" + "); at != std::string::npos; at = name.find(" + "))
    name.replace(at, 3, " overlapping ");
  for (const char* word : {"computation", "communication", "memory"})
    if (const size_t at = name.find(word); at != std::string::npos)
      for (size_t i = at; i < at + std::string(word).size(); ++i) name[i] = static_cast<char>(std::toupper(name[i]));
  return name;
}

class HtaOnRealTraces : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    STROBE_REQUIRE_DATA(folder() / GetParam());
    auto imported = importers::import_trace(folder() / GetParam(), {});
    ASSERT_TRUE(imported) << imported.error().to_string();
    timeline_ = std::move(*imported);
    expected_ = expected_figures()[GetParam()];
    hta_.rules = IdleRules::kHta;
  }
  // HTA takes an operator that has an argument "stream" for device work: in this file one of 94 us with the name of the
  // one kernel, which takes 1 us. Strobe knows by the category that it ran on the host.
  static bool has_operator_as_kernel() { return std::string(GetParam()) == "triton_example.json.gz"; }
  static void near_us(double ns, double us, const std::string& what) { EXPECT_NEAR(ns / kUs, us, 1) << what; }

  trace::Timeline timeline_;
  Json expected_;
  IdleOptions hta_;
};

TEST_P(HtaOnRealTraces, TemporalBreakdown) {
  const Table table = idle(timeline_, hta_);
  const Json& figures = expected_["temporal_breakdown"];
  if (figures.contains("error")) {  // HTA fails where there is no device at all
    EXPECT_EQ(table.row_count(), 0U);
    return;
  }
  ASSERT_GT(table.row_count(), 0U);
  if (has_operator_as_kernel()) {
    near_us(*table.number(0, "span_ns"), 1, "span");
    near_us(*table.number(0, "compute_ns"), 1, "compute");
    return;
  }
  near_us(*table.number(0, "span_ns"), figures["kernel_time(us)"], "span");
  near_us(*table.number(0, "compute_ns"), figures["compute_time(us)"], "compute");
  near_us(*table.number(0, "non_compute_ns"), figures["non_compute_time(us)"], "non-compute");
  near_us(*table.number(0, "idle_ns"), figures["idle_time(us)"], "idle");
  EXPECT_NEAR(100 * *table.number(0, "idle_share"), figures["idle_time_pctg"].get<double>(), 0.0051);
}

TEST_P(HtaOnRealTraces, IdleBreakdownByStream) {
  if (!expected_["idle_time_breakdown"].is_array()) return;
  const Table table = idle(timeline_, hta_);
  std::map<int64_t, std::map<std::string, double>> streams;
  for (const Json& row : expected_["idle_time_breakdown"])
    streams[row["stream"].get<int64_t>()][row["idle_category"].get<std::string>()] = row["idle_time"].get<double>();
  size_t found = 0;
  for (size_t row = 0; row < table.row_count(); ++row) {
    if (!table.number(row, "stream")) continue;
    const auto stream = static_cast<int64_t>(*table.number(row, "stream"));
    ASSERT_EQ(streams.count(stream), 1U) << stream;
    ++found;
    for (const char* category : {"host_wait", "kernel_wait", "other"})
      near_us(*table.number(row, std::string(category) + "_ns"), streams[stream][category],
              category + (" of stream " + std::to_string(stream)));
  }
  EXPECT_EQ(found, streams.size());
}

TEST_P(HtaOnRealTraces, KindsOfKernels) {
  const Table table = work_types(timeline_, hta_);
  std::map<std::string, double> ours;
  for (size_t row = 0; row < table.row_count(); ++row)
    ours[in_hta_words(table.text(row, "work"))] += *table.number(row, "time_ns");
  for (const Json& type : expected_["kernel_breakdown"]["types"]) {
    const auto name = type["kernel_type"].get<std::string>();
    near_us(ours[name], has_operator_as_kernel() ? 1 : type["sum"].get<double>(), name);
    ours.erase(name);
  }
  for (const auto& [name, ns] : ours) near_us(ns, 0, name);
}

// Of names that HTA shows by themselves; the rest it adds up as "others".
TEST_P(HtaOnRealTraces, SumsOfKernels) {
  const HtaView view(timeline_);
  std::map<std::string, double> ours;
  for (const HtaView::Op& op : view.ops())
    ours[std::string(timeline_.strings[timeline_.ranges.name[static_cast<size_t>(op.range)]])] +=
        static_cast<double>(view.end_ns(op.range) - view.start_ns(op.range));
  for (const Json& kernel : expected_["kernel_breakdown"]["top"]) {
    const auto name = kernel["name"].get<std::string>();
    if (name == "others") continue;
    near_us(ours[name], kernel["sum (us)"].get<double>() - (has_operator_as_kernel() ? 94 : 0), name);
  }
}

TEST_P(HtaOnRealTraces, Launches) {
  const Table table = launches(timeline_, IdleRules::kHta);
  double operations = 0, call_ns = 0, device_ns = 0, delay_ns = 0;
  for (const char* call : {"cudaLaunchKernel", "cudaLaunchKernelExC", "cudaMemcpyAsync", "cudaMemsetAsync"})
    for (size_t row = 0; row < table.row_count(); ++row) {
      if (table.text(row, "call") != call) continue;
      operations += *table.number(row, "operations");
      call_ns += *table.number(row, "call_total_ns");
      device_ns += *table.number(row, "device_total_ns");
      delay_ns += *table.number(row, "delay_total_ns");
    }
  EXPECT_EQ(operations, expected_["launch_count"].get<double>());
  near_us(call_ns, expected_["launch_sums"]["cpu_duration_sum"], "calls");
  near_us(device_ns, expected_["launch_sums"]["gpu_duration_sum"], "operations");
  near_us(delay_ns, expected_["launch_sums"]["launch_delay_sum"], "delay");
}

INSTANTIATE_TEST_SUITE_P(All, HtaOnRealTraces,
                         testing::Values("cp_simple_add.json.gz", "cp_event_sync.json.gz",
                                         "ns_resolution_v100_rank0.json.gz", "sampled_rank0.json.gz",
                                         "sampled_rank1.json.gz", "trace_diff_control_a100.json.gz",
                                         "trace_diff_test_v100.json.gz", "amd_mi250_minitoy.json.gz",
                                         "triton_example.json.gz", "cpu_only.json.gz", "compare_base.json.gz",
                                         "compare_test.json.gz", "nccl_data_a100.json.gz", "big_v100_216k.json.gz",
                                         "resnet50_train_nw0_a.json.gz", "resnet50_train_nw0_b.json.gz",
                                         "resnet50_train_nw4_a.json.gz"),
                         [](const auto& file) {
                           std::string name = file.param;
                           name.resize(name.find('.'));
                           return name;
                         });

}  // namespace
}  // namespace strobe::analyze
