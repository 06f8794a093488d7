#include "gpu/metric_host.h"

#include <utility>

#include "gpu/cupti_errors.h"

namespace strobe::gpu {

Result<std::unique_ptr<MetricHost>> MetricHost::make(const CuptiMetrics& cupti, int type, const std::string& chip,
                                                     const std::vector<uint8_t>& availability,
                                                     std::vector<const char*> names) {
  auto start = cupti::sized<cupti::HostInitialize>();
  start.type = type;
  start.chip = chip.c_str();
  start.availability = availability.empty() ? nullptr : availability.data();
  if (const auto code = cupti.host_initialize(&start); code != cupti::kSuccess) return unsupported(cupti_error(code));
  std::unique_ptr<MetricHost> host(new MetricHost(cupti, start.host, std::move(names)));
  if (host->names_.empty()) return host;
  auto add = cupti::sized<cupti::HostAddMetrics>();
  add.host = host->object_, add.names = host->names_.data(), add.count = host->names_.size();
  if (const auto code = cupti.host_add_metrics(&add); code != cupti::kSuccess) return unsupported(cupti_error(code));
  auto size = cupti::sized<cupti::HostImageSize>();
  size.host = host->object_;
  if (const auto code = cupti.host_image_size(&size); code != cupti::kSuccess) return unsupported(cupti_error(code));
  host->configuration_.assign(size.size, 0);
  auto image = cupti::sized<cupti::HostImage>();
  image.host = host->object_, image.size = host->configuration_.size(), image.image = host->configuration_.data();
  if (const auto code = cupti.host_image(&image); code != cupti::kSuccess) return unsupported(cupti_error(code));
  auto count = cupti::sized<cupti::HostPasses>();
  count.size = host->configuration_.size(), count.image = host->configuration_.data();
  if (const auto code = cupti.host_passes(&count); code != cupti::kSuccess) return unsupported(cupti_error(code));
  host->passes_ = count.passes;
  return host;
}

MetricHost::~MetricHost() {
  auto params = cupti::sized<cupti::HostObject>();
  params.host = object_;
  cupti_.host_deinitialize(&params);
}

bool MetricHost::evaluate(std::span<const uint8_t> image, size_t index, std::vector<double>& values) const {
  std::vector<const char*> wanted = names_;
  values.assign(wanted.size(), 0);
  auto params = cupti::sized<cupti::HostEvaluate>();
  params.host = object_;
  params.image = image.data(), params.image_size = image.size();
  params.index = index;
  params.names = wanted.data(), params.count = wanted.size();
  params.values = values.data();
  return cupti_.host_evaluate(&params) == cupti::kSuccess;
}

}  // namespace strobe::gpu
