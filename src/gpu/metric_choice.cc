#include "gpu/metric_choice.h"

#include <utility>

#include "base/gpu_words.h"

namespace strobe::gpu {
namespace {

namespace words = gpu_words;

#define STROBE_OF_PEAK ".avg.pct_of_peak_sustained_elapsed"

// "_realtime": counters that follow the hardware at once, which a sampler needs; "Triage": those that NVIDIA made to be
// sampled together. What matters most comes first: on small chips the last ones find no counter free.
constexpr double kSectorBytes = 32;
struct Figure {
  const char* name;
  double scale;
  std::vector<const char*> metrics;
};
const std::vector<Figure>& figures() {
  static const std::vector<Figure> all{
      {words::kSmBusy, 1, {"TPC.TriageCompute.sm__cycles_active" STROBE_OF_PEAK, "sm__cycles_active" STROBE_OF_PEAK}},
      {words::kOccupancy, 1, {"sm__warps_active_realtime" STROBE_OF_PEAK, "sm__warps_active" STROBE_OF_PEAK}},
      {words::kTensor,
       1,
       {"TPC.TriageCompute.sm__pipe_tensor_cycles_active_realtime" STROBE_OF_PEAK,
        "sm__pipe_tensor_cycles_active_realtime" STROBE_OF_PEAK, "sm__pipe_tensor_cycles_active" STROBE_OF_PEAK}},
      {words::kDramRead, 1, {"dram__read_throughput" STROBE_OF_PEAK, "dramc__read_throughput" STROBE_OF_PEAK}},
      {words::kDramWrite, 1, {"dram__write_throughput" STROBE_OF_PEAK, "dramc__write_throughput" STROBE_OF_PEAK}},
      {words::kL2Hit,
       1,
       {"LTS.TriageCompute.lts__average_t_sector_hit_rate_realtime.pct",
        "lts__average_t_sector_hit_rate_realtime.pct"}},
      {words::kIssue,
       1,
       {"TPC.TriageCompute.sm__inst_executed_realtime" STROBE_OF_PEAK, "sm__inst_executed_realtime" STROBE_OF_PEAK}},
      {words::kFma,
       1,
       {"TPC.TriageCompute.sm__pipe_fma_cycles_active_realtime" STROBE_OF_PEAK,
        "TPC.TriageCompute.sm__inst_executed_pipe_fma_realtime" STROBE_OF_PEAK,
        "sm__inst_executed_pipe_fma_realtime" STROBE_OF_PEAK}},
      {words::kFp64, 1, {"TPC.TriageCompute.sm__pipe_fp64_cycles_active_realtime" STROBE_OF_PEAK}},
      {words::kL2ToSm,
       kSectorBytes,
       {"SM_A.TriageCompute.l1tex__m_xbar2l1tex_read_sectors_realtime.sum.per_second",
        "l1tex__m_xbar2l1tex_read_sectors_realtime.sum.per_second"}},
  };
  return all;
}

}  // namespace

Result<MetricChoice> MetricChoice::make(const CuptiMetrics& cupti, std::string chip,
                                        std::vector<uint8_t> availability) {
  MetricChoice choice(std::move(chip), std::move(availability));
  const auto make = [&](std::vector<const char*> names) {
    return MetricHost::make(cupti, cupti::kPmSampling, choice.chip_, choice.availability_, std::move(names));
  };
  if (const auto known = make({}); !known)
    return unsupported("counters of " + choice.chip_ + ": " + known.error().to_string());
  for (const Figure& figure : figures()) {
    std::string why = "not known of " + choice.chip_;
    bool taken = false;
    for (const char* metric : figure.metrics) {
      std::vector<const char*> names = choice.names();
      names.push_back(metric);
      auto host = make(std::move(names));
      if (!host) continue;
      if ((*host)->passes() != 1) {
        why = "does not fit into one pass with the others on " + choice.chip_;
        continue;
      }
      choice.metrics_.push_back({figure.name, metric, figure.scale});
      choice.host_ = std::move(*host);
      taken = true;
      break;
    }
    if (!taken) choice.left_out_[figure.name] = why;
  }
  if (choice.metrics_.empty()) return unsupported("this CUPTI has no counters of " + choice.chip_ + " to sample");
  return choice;
}

std::vector<const char*> MetricChoice::names() const {
  std::vector<const char*> all;
  for (const ChosenMetric& one : metrics_) all.push_back(one.metric);
  return all;
}

bool MetricChoice::evaluate(std::span<const uint8_t> image, size_t sample, std::vector<double>& values) const {
  if (!host_->evaluate(image, sample, values)) return false;
  for (size_t i = 0; i < values.size(); ++i) values[i] *= metrics_[i].scale;
  return true;
}

}  // namespace strobe::gpu
