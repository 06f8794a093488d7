#include "gpu/device_support.h"

#include <utility>

#include "gpu/cupti_errors.h"

namespace strobe::gpu {
namespace {

std::string why_not(const cupti::DeviceSupported& level) {
  const std::pair<int, const char*> reasons[] = {
      {level.architecture, "its architecture is too old"},
      {level.vgpu, level.vgpu == cupti::kLevelDisabled ? "the hypervisor of this virtual GPU does not allow profiling"
                                                       : "it is a virtual GPU"},
      {level.confidential, "confidential computing is on"},
      {level.sli, "SLI is on"},
      {level.mining_card, "it is a mining card"},
      {level.wsl, "WSL does not support it"},
  };
  for (const auto& [one, text] : reasons)
    if (one == cupti::kLevelUnsupported || one == cupti::kLevelDisabled) return text;
  return "CUPTI does not say why";
}

}  // namespace

Result<std::string> chip_of(const CuptiMetrics& cupti, int device_number) {
  if (cupti.initialize != nullptr) {
    auto params = cupti::sized<cupti::ProfilerInitialize>();
    if (const auto code = cupti.initialize(&params); code != cupti::kSuccess) return unsupported(cupti_error(code));
  }
  auto chip = cupti::sized<cupti::ChipName>();
  chip.device = static_cast<size_t>(device_number);
  if (const auto code = cupti.chip_name(&chip); code != cupti::kSuccess || chip.name == nullptr)
    return unsupported("the chip's name: " + cupti_error(code));
  return std::string(chip.name);
}

Result<void> check_support(const CuptiMetrics& cupti, int handle, const std::string& chip, int api) {
  if (cupti.device_supported == nullptr) return {};
  auto level = cupti::sized<cupti::DeviceSupported>();
  level.device = handle, level.api = api;
  if (const auto code = cupti.device_supported(&level);
      code == cupti::kSuccess && level.supported != cupti::kLevelSupported && level.supported != cupti::kLevelUnknown)
    return unsupported("counters of this device (" + chip + ") cannot be " +
                       (api == cupti::kApiPmSampling ? "sampled: " : "had by replay: ") + why_not(level));
  return {};
}

}  // namespace strobe::gpu
