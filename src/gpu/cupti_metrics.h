// CUPTI's hardware counters as a table of functions.
#pragma once

#include <string>

#include "base/library.h"
#include "gpu/cupti_metrics_abi.h"
#include "strobe/base/result.h"

namespace strobe::gpu {

struct CuptiMetrics {
  // The library that Cupti::load() finds. Errors: kNotFound; kUnsupported (one of before CUDA 12.6: names what it
  // lacks).
  static Result<CuptiMetrics> load();

  std::string path;
  uint32_t version = 0;  // CUPTI_API_VERSION; 0: it does not say

  cupti::Code (*timestamp)(uint64_t*) = nullptr;
  cupti::Code (*chip_name)(cupti::ChipName*) = nullptr;
  cupti::Code (*host_initialize)(cupti::HostInitialize*) = nullptr;
  cupti::Code (*host_deinitialize)(cupti::HostObject*) = nullptr;
  cupti::Code (*host_add_metrics)(cupti::HostAddMetrics*) = nullptr;
  cupti::Code (*host_image_size)(cupti::HostImageSize*) = nullptr;
  cupti::Code (*host_image)(cupti::HostImage*) = nullptr;
  cupti::Code (*host_passes)(cupti::HostPasses*) = nullptr;
  cupti::Code (*host_evaluate)(cupti::HostEvaluate*) = nullptr;
  cupti::Code (*pm_enable)(cupti::PmEnable*) = nullptr;
  cupti::Code (*pm_disable)(cupti::PmObject*) = nullptr;
  cupti::Code (*pm_configure)(cupti::PmConfig*) = nullptr;
  cupti::Code (*pm_start)(cupti::PmObject*) = nullptr;
  cupti::Code (*pm_stop)(cupti::PmObject*) = nullptr;
  cupti::Code (*pm_data_size)(cupti::PmDataSize*) = nullptr;
  cupti::Code (*pm_data_initialize)(cupti::PmDataInitialize*) = nullptr;
  cupti::Code (*pm_decode)(cupti::PmDecode*) = nullptr;
  cupti::Code (*pm_data_info)(cupti::PmDataInfo*) = nullptr;
  cupti::Code (*pm_sample_info)(cupti::PmSampleInfo*) = nullptr;

  // May be missing.
  cupti::Code (*initialize)(cupti::ProfilerInitialize*) = nullptr;
  cupti::Code (*device_supported)(cupti::DeviceSupported*) = nullptr;
  cupti::Code (*pm_availability)(cupti::PmAvailability*) = nullptr;
};

}  // namespace strobe::gpu
