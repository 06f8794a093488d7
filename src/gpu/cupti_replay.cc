#include "gpu/cupti_replay.h"

#include "gpu/cupti.h"

namespace strobe::gpu {

Result<CuptiReplay> CuptiReplay::load() {
  CuptiReplay table;
  STROBE_ASSIGN(table.metrics, CuptiMetrics::load());
  STROBE_ASSIGN(const Library library, Cupti::open_library());
  const char* missing = nullptr;
  const auto need = [&](auto*& function, const char* name) {
    library.find(function, name);
    if (function == nullptr && missing == nullptr) missing = name;
  };
  need(table.enable_callback, "cuptiEnableCallback");
  need(table.callback_name, "cuptiGetCallbackName");
  need(table.device_of, "cuptiGetDeviceId");
  need(table.enable, "cuptiRangeProfilerEnable");
  need(table.disable, "cuptiRangeProfilerDisable");
  need(table.start, "cuptiRangeProfilerStart");
  need(table.stop, "cuptiRangeProfilerStop");
  need(table.configure, "cuptiRangeProfilerSetConfig");
  need(table.decode, "cuptiRangeProfilerDecodeData");
  need(table.data_size, "cuptiRangeProfilerGetCounterDataSize");
  need(table.data_initialize, "cuptiRangeProfilerCounterDataImageInitialize");
  need(table.data_info, "cuptiRangeProfilerGetCounterDataInfo");
  if (missing != nullptr)
    return unsupported(library.path() + ": this CUPTI cannot replay kernels, it lacks " + missing +
                       " (CUDA 12.6 or newer has it)");
  library.find(table.availability, "cuptiProfilerGetCounterAvailability");
  return table;
}

}  // namespace strobe::gpu
