// CUPTI's range profiler as a table of functions.
#pragma once

#include "gpu/cupti_metrics.h"
#include "gpu/cupti_replay_abi.h"

namespace strobe::gpu {

struct CuptiReplay {
  // The library that Cupti::load() finds. Errors: kNotFound; kUnsupported (one of before CUDA 12.6: names what it
  // lacks).
  static Result<CuptiReplay> load();

  CuptiMetrics metrics;  // the host's side
  cupti::Code (*enable_callback)(uint32_t enable, cupti::Subscriber, int domain, uint32_t function) = nullptr;
  cupti::Code (*callback_name)(int domain, uint32_t function, const char** name) = nullptr;
  cupti::Code (*device_of)(void* context, uint32_t* device) = nullptr;
  cupti::Code (*availability)(cupti::ContextAvailability*) = nullptr;
  cupti::Code (*enable)(cupti::RangeEnable*) = nullptr;
  cupti::Code (*disable)(cupti::RangeObject*) = nullptr;
  cupti::Code (*start)(cupti::RangeObject*) = nullptr;
  cupti::Code (*stop)(cupti::RangeStop*) = nullptr;
  cupti::Code (*configure)(cupti::RangeConfig*) = nullptr;
  cupti::Code (*decode)(cupti::RangeDecode*) = nullptr;
  cupti::Code (*data_size)(cupti::RangeDataSize*) = nullptr;
  cupti::Code (*data_initialize)(cupti::RangeDataInitialize*) = nullptr;
  cupti::Code (*data_info)(cupti::RangeDataInfo*) = nullptr;
};

}  // namespace strobe::gpu
