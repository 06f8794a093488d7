// Which of CUPTI's metrics give our figures (base/gpu_words.h) on a chip. Their names differ by chip, and a sampler has
// one pass: each figure has a list of metrics, of which the first is taken that still fits with those before it.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/metric_host.h"
#include "strobe/base/result.h"

namespace strobe::gpu {

struct ChosenMetric {
  const char* figure;
  const char* metric;  // CUPTI's name
  double scale;        // of CUPTI's value to ours
};

class MetricChoice {
 public:
  // No GPU is needed for it. chip: as CUPTI calls it ("GH100"); availability: which counters this device has free, or
  // empty. The table must outlive the choice. Errors: kUnsupported (the chip is not known to the library, or none of
  // the figures is).
  static Result<MetricChoice> make(const CuptiMetrics& cupti, std::string chip, std::vector<uint8_t> availability);

  const std::vector<ChosenMetric>& metrics() const { return metrics_; }
  // By figure: why there is none.
  const std::map<std::string, std::string>& left_out() const { return left_out_; }
  // What the hardware is set up with.
  const std::vector<uint8_t>& configuration() const { return host_->configuration(); }
  // One a metric; what a call into the library takes.
  std::vector<const char*> names() const;
  // The figures of one sample of a counter data image, in the order of metrics(); not a number: none in this sample.
  // False: the library cannot.
  bool evaluate(std::span<const uint8_t> image, size_t sample, std::vector<double>& values) const;

 private:
  MetricChoice(std::string chip, std::vector<uint8_t> availability)
      : chip_(std::move(chip)), availability_(std::move(availability)) {}

  std::string chip_;
  std::vector<uint8_t> availability_;
  std::vector<ChosenMetric> metrics_;
  std::map<std::string, std::string> left_out_;
  std::unique_ptr<MetricHost> host_;
};

}  // namespace strobe::gpu
