// Which of CUPTI's metrics say what on a chip when kernels are replayed, and how many passes they take together.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gpu/metric_host.h"

namespace strobe::gpu {

// A figure by our name and in words, with its metrics as ncu calls them, of which the first is taken that a chip has.
struct ReplayFigure {
  const char* name;
  const char* words;
  std::vector<const char*> metrics;
};
const std::vector<ReplayFigure>& replay_figures();
// "" and "all": all of them; else names with commas between. Errors: kUsage naming them.
Result<std::vector<std::string>> parse_replay_figures(const std::string& list);

class ReplayChoice {
 public:
  struct Chosen {
    const char* figure;
    const char* metric;  // CUPTI's name
  };
  // No GPU is needed for it. As MetricHost::make; figures: names of replay_figures(). Errors: kUnsupported (the chip is
  // not known to the library, or has none of them).
  static Result<ReplayChoice> make(const CuptiMetrics& cupti, const std::string& chip,
                                   const std::vector<uint8_t>& availability, const std::vector<std::string>& figures);

  const std::vector<Chosen>& metrics() const { return metrics_; }
  // By figure: why there is none.
  const std::map<std::string, std::string>& left_out() const { return left_out_; }
  size_t passes() const { return host_->passes(); }
  const MetricHost& host() const { return *host_; }

 private:
  std::vector<Chosen> metrics_;
  std::map<std::string, std::string> left_out_;
  std::unique_ptr<MetricHost> host_;
};

}  // namespace strobe::gpu
