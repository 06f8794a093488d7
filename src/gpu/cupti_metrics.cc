#include "gpu/cupti_metrics.h"

#include <dlfcn.h>

#include <filesystem>

#include "gpu/cupti.h"

namespace strobe::gpu {
namespace {

// CUPTI opens these by their names alone when the first metric is asked for. The loader does not look beside CUPTI,
// where a wheel has them; one that the process has already is found by its name.
void open_companions(const std::filesystem::path& cupti) {
  for (const char* name : {"libnvperf_host.so", "libnvperf_target.so"})
    ::dlopen((cupti.parent_path() / name).c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

}  // namespace

Result<CuptiMetrics> CuptiMetrics::load() {
  STROBE_ASSIGN(const Library library, Cupti::open_library());
  CuptiMetrics table;
  table.path = library.path();
  open_companions(table.path);
  const char* missing = nullptr;
  const auto need = [&](auto*& function, const char* name) {
    library.find(function, name);
    if (function == nullptr && missing == nullptr) missing = name;
  };
  need(table.timestamp, "cuptiGetTimestamp");
  need(table.chip_name, "cuptiDeviceGetChipName");
  need(table.host_initialize, "cuptiProfilerHostInitialize");
  need(table.host_deinitialize, "cuptiProfilerHostDeinitialize");
  need(table.host_add_metrics, "cuptiProfilerHostConfigAddMetrics");
  need(table.host_image_size, "cuptiProfilerHostGetConfigImageSize");
  need(table.host_image, "cuptiProfilerHostGetConfigImage");
  need(table.host_passes, "cuptiProfilerHostGetNumOfPasses");
  need(table.host_evaluate, "cuptiProfilerHostEvaluateToGpuValues");
  need(table.pm_enable, "cuptiPmSamplingEnable");
  need(table.pm_disable, "cuptiPmSamplingDisable");
  need(table.pm_configure, "cuptiPmSamplingSetConfig");
  need(table.pm_start, "cuptiPmSamplingStart");
  need(table.pm_stop, "cuptiPmSamplingStop");
  need(table.pm_data_size, "cuptiPmSamplingGetCounterDataSize");
  need(table.pm_data_initialize, "cuptiPmSamplingCounterDataImageInitialize");
  need(table.pm_decode, "cuptiPmSamplingDecodeData");
  need(table.pm_data_info, "cuptiPmSamplingGetCounterDataInfo");
  need(table.pm_sample_info, "cuptiPmSamplingCounterDataGetSampleInfo");
  if (missing != nullptr)
    return unsupported(table.path + ": this CUPTI cannot sample counters, it lacks " + missing +
                       " (CUDA 12.6 or newer has it)");
  library.find(table.initialize, "cuptiProfilerInitialize");
  library.find(table.device_supported, "cuptiProfilerDeviceSupported");
  library.find(table.pm_availability, "cuptiPmSamplingGetCounterAvailability");
  cupti::Code (*get_version)(uint32_t*) = nullptr;
  library.find(get_version, "cuptiGetVersion");
  if (get_version != nullptr && get_version(&table.version) != cupti::kSuccess) table.version = 0;
  return table;
}

}  // namespace strobe::gpu
