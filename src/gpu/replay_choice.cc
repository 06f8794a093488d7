#include "gpu/replay_choice.h"

#include <algorithm>
#include <utility>

namespace strobe::gpu {

#define STROBE_OF_PEAK ".avg.pct_of_peak_sustained_elapsed"

const std::vector<ReplayFigure>& replay_figures() {
  static const std::vector<ReplayFigure> all{
      {"time_ns", "time on the device, alone and at the clocks of the replay", {"gpu__time_duration.sum"}},
      {"sm_busy_percent",
       "cycles in which an SM had a warp, over all SMs and all the time",
       {"sm__cycles_active" STROBE_OF_PEAK}},
      {"achieved_occupancy_percent",
       "warps in flight, of the most there can be, over the cycles in which an SM had any",
       {"sm__warps_active.avg.pct_of_peak_sustained_active"}},
      {"tensor_percent",
       "cycles in which the tensor pipe worked",
       {"sm__pipe_tensor_cycles_active" STROBE_OF_PEAK, "sm__inst_executed_pipe_tensor" STROBE_OF_PEAK}},
      {"dram_percent",
       "of the memory's bandwidth, reads and writes",
       {"dram__throughput" STROBE_OF_PEAK, "gpu__dram_throughput" STROBE_OF_PEAK}},
      {"l2_hit_percent", "of L2's sector lookups", {"lts__t_sector_hit_rate.pct"}},
      {"fp32_efficiency_percent",
       "additions, multiplications and fused ones of 32 bits (without the tensor pipe), of the most there can be",
       {"smsp__sass_thread_inst_executed_ops_fadd_fmul_ffma_pred_on" STROBE_OF_PEAK}},
      {"fp16_efficiency_percent",
       "the same of 16 bits",
       {"smsp__sass_thread_inst_executed_ops_hadd_hmul_hfma_pred_on" STROBE_OF_PEAK}},
      {"fp64_efficiency_percent",
       "the same of 64 bits",
       {"smsp__sass_thread_inst_executed_ops_dadd_dmul_dfma_pred_on" STROBE_OF_PEAK}},
      {"global_load_requests",
       "requests of warps to load from global memory",
       {"l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum"}},
  };
  return all;
}

Result<std::vector<std::string>> parse_replay_figures(const std::string& list) {
  std::vector<std::string> wanted;
  std::string known;
  for (const ReplayFigure& figure : replay_figures()) {
    known += std::string(known.empty() ? "" : ", ") + figure.name;
    if (list.empty() || list == "all") wanted.emplace_back(figure.name);
  }
  if (!wanted.empty()) return wanted;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    std::string name = list.substr(begin, end - begin);
    const auto is = [&name](const ReplayFigure& figure) { return figure.name == name; };
    if (std::none_of(replay_figures().begin(), replay_figures().end(), is))
      return usage_error("replay metric '" + name + "': expected all or some of " + known);
    if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) wanted.push_back(std::move(name));
    begin = end + 1;
  }
  return wanted;
}

Result<ReplayChoice> ReplayChoice::make(const CuptiMetrics& cupti, const std::string& chip,
                                        const std::vector<uint8_t>& availability,
                                        const std::vector<std::string>& figures) {
  const auto host_of = [&](std::vector<const char*> names) {
    return MetricHost::make(cupti, cupti::kRangeProfiler, chip, availability, std::move(names));
  };
  if (const auto known = host_of({}); !known)
    return unsupported("counters of " + chip + ": " + known.error().to_string());
  ReplayChoice choice;
  std::vector<const char*> names;
  for (const ReplayFigure& figure : replay_figures()) {
    if (std::find(figures.begin(), figures.end(), figure.name) == figures.end()) continue;
    bool taken = false;
    for (const char* metric : figure.metrics) {
      names.push_back(metric);
      auto host = host_of(names);
      if (host) {
        choice.metrics_.push_back({figure.name, metric});
        choice.host_ = std::move(*host);
        taken = true;
        break;
      }
      names.pop_back();
    }
    if (!taken) choice.left_out_[figure.name] = "not known of " + chip;
  }
  if (choice.metrics_.empty()) return unsupported("this CUPTI has none of these counters of " + chip);
  return choice;
}

}  // namespace strobe::gpu
