// A set of CUPTI's metrics of a chip: how the hardware is set up for them, and what its counters say of them. No GPU is
// needed for it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "gpu/cupti_metrics.h"
#include "strobe/base/result.h"

namespace strobe::gpu {

class MetricHost {
 public:
  // type: cupti::ProfilerType; chip: as CUPTI calls it ("GH100"); availability: which counters this device has free, or
  // empty; names: CUPTI's, which must outlive it. The table must, too. Without names: only whether the chip is known.
  // Errors: kUnsupported, with CUPTI's code.
  static Result<std::unique_ptr<MetricHost>> make(const CuptiMetrics& cupti, int type, const std::string& chip,
                                                  const std::vector<uint8_t>& availability,
                                                  std::vector<const char*> names);
  MetricHost(const MetricHost&) = delete;
  MetricHost& operator=(const MetricHost&) = delete;
  ~MetricHost();

  size_t passes() const { return passes_; }
  // What the hardware is set up with.
  const std::vector<uint8_t>& configuration() const { return configuration_; }
  const std::vector<const char*>& names() const { return names_; }
  // The values of a sample or range of a counter data image, in the order of the names; not a number: none in it.
  // False: the library cannot.
  bool evaluate(std::span<const uint8_t> image, size_t index, std::vector<double>& values) const;

 private:
  MetricHost(const CuptiMetrics& cupti, void* object, std::vector<const char*> names)
      : cupti_(cupti), object_(object), names_(std::move(names)) {}
  const CuptiMetrics& cupti_;
  void* object_;
  std::vector<const char*> names_;
  std::vector<uint8_t> configuration_;
  size_t passes_ = 0;
};

}  // namespace strobe::gpu
