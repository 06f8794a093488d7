// Our declarations of NVML against NVIDIA's own header, where a CUDA toolkit with it or the wheel nvidia-nvml-dev is
// installed.
#include "gpu/nvml_abi.h"

#include <gtest/gtest.h>

#ifdef STROBE_HAVE_NVML_HEADER
#include <nvml.h>

#include <type_traits>

#include "base/gpu_words.h"
#include "gpu/nvml.h"

#include "gpu/same_layout.h"

namespace {

namespace abi = strobe::gpu::nvml;
namespace words = strobe::gpu_words;

SAME_SIZE(Utilization, nvmlUtilization_t);
SAME_PLACE(Utilization, memory, nvmlUtilization_t, memory);
SAME_SIZE(Memory, nvmlMemory_t);
SAME_PLACE(Memory, used, nvmlMemory_t, used);
SAME_SIZE(MemoryV2, nvmlMemory_v2_t);
SAME_PLACE(MemoryV2, total, nvmlMemory_v2_t, total);
SAME_PLACE(MemoryV2, used, nvmlMemory_v2_t, used);
static_assert(abi::kMemoryVersion == nvmlMemory_v2);
SAME_SIZE(Process, nvmlProcessInfo_t);
SAME_PLACE(Process, memory, nvmlProcessInfo_t, usedGpuMemory);
SAME_PLACE(Process, compute_instance, nvmlProcessInfo_t, computeInstanceId);
SAME_SIZE(Attributes, nvmlDeviceAttributes_t);
SAME_PLACE(Attributes, processors, nvmlDeviceAttributes_t, multiprocessorCount);
SAME_PLACE(Attributes, compute_slices, nvmlDeviceAttributes_t, computeInstanceSliceCount);
SAME_PLACE(Attributes, memory_mib, nvmlDeviceAttributes_t, memorySizeMB);
SAME_SIZE(ProcessUse, nvmlProcessUtilizationSample_t);
SAME_PLACE(ProcessUse, time_us, nvmlProcessUtilizationSample_t, timeStamp);
SAME_PLACE(ProcessUse, sm, nvmlProcessUtilizationSample_t, smUtil);
SAME_PLACE(ProcessUse, memory, nvmlProcessUtilizationSample_t, memUtil);
SAME_PLACE(ProcessUse, enc, nvmlProcessUtilizationSample_t, encUtil);
SAME_PLACE(ProcessUse, dec, nvmlProcessUtilizationSample_t, decUtil);
SAME_SIZE(Value, nvmlValue_t);
SAME_SIZE(Sample, nvmlSample_t);
SAME_PLACE(Sample, value, nvmlSample_t, sampleValue);
SAME_SIZE(FieldValue, nvmlFieldValue_t);
SAME_PLACE(FieldValue, scope, nvmlFieldValue_t, scopeId);
SAME_PLACE(FieldValue, time_us, nvmlFieldValue_t, timestamp);
SAME_PLACE(FieldValue, type, nvmlFieldValue_t, valueType);
SAME_PLACE(FieldValue, code, nvmlFieldValue_t, nvmlReturn);
SAME_PLACE(FieldValue, value, nvmlFieldValue_t, value);

SAME_SIZE(GpmSupport, nvmlGpmSupport_t);
SAME_PLACE(GpmSupport, supported, nvmlGpmSupport_t, isSupportedDevice);
SAME_SIZE(GpmMetric, nvmlGpmMetric_t);
SAME_PLACE(GpmMetric, code, nvmlGpmMetric_t, nvmlReturn);
SAME_PLACE(GpmMetric, value, nvmlGpmMetric_t, value);
SAME_PLACE(GpmRequest, count, nvmlGpmMetricsGet_t, numMetrics);
SAME_PLACE(GpmRequest, from, nvmlGpmMetricsGet_t, sample1);
SAME_PLACE(GpmRequest, to, nvmlGpmMetricsGet_t, sample2);
static_assert(offsetof(abi::GpmMetric, short_name) == offsetof(nvmlGpmMetric_t, metricInfo));
static_assert(sizeof(abi::GpmRequest) == offsetof(nvmlGpmMetricsGet_t, metrics));
static_assert(abi::kGpmVersion == NVML_GPM_METRICS_GET_VERSION && abi::kGpmVersion == NVML_GPM_SUPPORT_VERSION);

TEST(NvmlAbi, NumbersAreThoseOfTheHeader) {
  EXPECT_EQ(abi::kInvalidArgument, NVML_ERROR_INVALID_ARGUMENT);
  EXPECT_EQ(abi::kNotSupported, NVML_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(abi::kNoPermission, NVML_ERROR_NO_PERMISSION);
  EXPECT_EQ(abi::kNotFound, NVML_ERROR_NOT_FOUND);
  EXPECT_EQ(abi::kInsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE);
  EXPECT_EQ(abi::kFunctionNotFound, NVML_ERROR_FUNCTION_NOT_FOUND);
  EXPECT_EQ(abi::kGpuIsLost, NVML_ERROR_GPU_IS_LOST);
  EXPECT_EQ(abi::kResetRequired, NVML_ERROR_RESET_REQUIRED);
  EXPECT_EQ(abi::kUninitialized, NVML_ERROR_UNINITIALIZED);
  EXPECT_EQ(abi::kGpuUseSamples, NVML_GPU_UTILIZATION_SAMPLES);
  EXPECT_EQ(abi::kMemoryUseSamples, NVML_MEMORY_UTILIZATION_SAMPLES);
  EXPECT_EQ(abi::kDouble, NVML_VALUE_TYPE_DOUBLE);
  EXPECT_EQ(abi::kUnsigned32, NVML_VALUE_TYPE_UNSIGNED_INT);
  EXPECT_EQ(abi::kUnsignedLong, NVML_VALUE_TYPE_UNSIGNED_LONG);
  EXPECT_EQ(abi::kUnsigned64, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
  EXPECT_EQ(abi::kSigned64, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
  EXPECT_EQ(abi::kSigned32, NVML_VALUE_TYPE_SIGNED_INT);
  EXPECT_EQ(abi::kInstantPower, NVML_FI_DEV_POWER_INSTANT);
  EXPECT_EQ(abi::kGraphicsClock, NVML_CLOCK_GRAPHICS);
  EXPECT_EQ(abi::kSmClock, NVML_CLOCK_SM);
  EXPECT_EQ(abi::kMemoryClock, NVML_CLOCK_MEM);
  EXPECT_EQ(abi::kTemperatureOfGpu, NVML_TEMPERATURE_GPU);
  EXPECT_EQ(abi::kGpmSmUse, static_cast<uint32_t>(NVML_GPM_METRIC_SM_UTIL));
  EXPECT_EQ(abi::kGpmOccupancy, static_cast<uint32_t>(NVML_GPM_METRIC_SM_OCCUPANCY));
  EXPECT_EQ(abi::kGpmIntegerUse, static_cast<uint32_t>(NVML_GPM_METRIC_INTEGER_UTIL));
  EXPECT_EQ(abi::kGpmTensorUse, static_cast<uint32_t>(NVML_GPM_METRIC_ANY_TENSOR_UTIL));
  EXPECT_EQ(abi::kGpmDramUse, static_cast<uint32_t>(NVML_GPM_METRIC_DRAM_BW_UTIL));
  EXPECT_EQ(abi::kGpmFp64Use, static_cast<uint32_t>(NVML_GPM_METRIC_FP64_UTIL));
  EXPECT_EQ(abi::kGpmFp32Use, static_cast<uint32_t>(NVML_GPM_METRIC_FP32_UTIL));
  EXPECT_EQ(abi::kGpmFp16Use, static_cast<uint32_t>(NVML_GPM_METRIC_FP16_UTIL));
  EXPECT_EQ(abi::kGpmPcieSent, static_cast<uint32_t>(NVML_GPM_METRIC_PCIE_TX_PER_SEC));
  EXPECT_EQ(abi::kGpmPcieReceived, static_cast<uint32_t>(NVML_GPM_METRIC_PCIE_RX_PER_SEC));
  EXPECT_EQ(words::kIdle, nvmlClocksThrottleReasonGpuIdle);
  EXPECT_EQ(words::kApplicationClocks, nvmlClocksThrottleReasonApplicationsClocksSetting);
  EXPECT_EQ(words::kPowerCap, nvmlClocksThrottleReasonSwPowerCap);
  EXPECT_EQ(words::kHardwareSlowdown, nvmlClocksThrottleReasonHwSlowdown);
  EXPECT_EQ(words::kSyncBoost, nvmlClocksThrottleReasonSyncBoost);
  EXPECT_EQ(words::kThermal, nvmlClocksThrottleReasonSwThermalSlowdown);
  EXPECT_EQ(words::kHardwareThermal, nvmlClocksThrottleReasonHwThermalSlowdown);
  EXPECT_EQ(words::kPowerBrake, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
  EXPECT_EQ(words::kDisplayClocks, nvmlClocksThrottleReasonDisplayClockSetting);
}

// As many parameters, each as wide: what a call passes in registers.
template <typename... Theirs, typename... Ours>
constexpr bool same_call(nvmlReturn_t (*)(Theirs...), abi::Code (*)(Ours...)) {
  if constexpr (sizeof...(Theirs) != sizeof...(Ours)) {
    return false;
  } else {
    return ((sizeof(Theirs) == sizeof(Ours) && std::is_pointer_v<Theirs> == std::is_pointer_v<Ours>)&&...);
  }
}
#define SAME_CALL(ours, theirs) \
  static_assert(same_call(static_cast<decltype(&(theirs))>(nullptr), decltype(strobe::gpu::NvmlFunctions::ours){}))
SAME_CALL(count, nvmlDeviceGetCount_v2);
SAME_CALL(by_index, nvmlDeviceGetHandleByIndex_v2);
SAME_CALL(uuid, nvmlDeviceGetUUID);
SAME_CALL(name, nvmlDeviceGetName);
SAME_CALL(driver_version, nvmlSystemGetDriverVersion);
SAME_CALL(most_instances, nvmlDeviceGetMaxMigDeviceCount);
SAME_CALL(instance_by_index, nvmlDeviceGetMigDeviceHandleByIndex);
SAME_CALL(gpu_instance, nvmlDeviceGetGpuInstanceId);
SAME_CALL(compute_instance, nvmlDeviceGetComputeInstanceId);
SAME_CALL(attributes, nvmlDeviceGetAttributes_v2);
SAME_CALL(utilization, nvmlDeviceGetUtilizationRates);
SAME_CALL(samples, nvmlDeviceGetSamples);
SAME_CALL(memory, nvmlDeviceGetMemoryInfo);
SAME_CALL(memory_v2, nvmlDeviceGetMemoryInfo_v2);
SAME_CALL(clock, nvmlDeviceGetClockInfo);
SAME_CALL(max_clock, nvmlDeviceGetMaxClockInfo);
SAME_CALL(clock_reasons, nvmlDeviceGetCurrentClocksThrottleReasons);
SAME_CALL(temperature, nvmlDeviceGetTemperature);
SAME_CALL(power, nvmlDeviceGetPowerUsage);
SAME_CALL(energy, nvmlDeviceGetTotalEnergyConsumption);
SAME_CALL(fields, nvmlDeviceGetFieldValues);
SAME_CALL(encoder, nvmlDeviceGetEncoderUtilization);
SAME_CALL(decoder, nvmlDeviceGetDecoderUtilization);
SAME_CALL(processes, nvmlDeviceGetComputeRunningProcesses_v3);
SAME_CALL(process_use, nvmlDeviceGetProcessUtilization);
SAME_CALL(gpm_support, nvmlGpmQueryDeviceSupport);
SAME_CALL(gpm_alloc, nvmlGpmSampleAlloc);
SAME_CALL(gpm_free, nvmlGpmSampleFree);
SAME_CALL(gpm_sample, nvmlGpmSampleGet);
SAME_CALL(gpm_instance_sample, nvmlGpmMigSampleGet);
SAME_CALL(gpm_metrics, nvmlGpmMetricsGet);
SAME_CALL(performance_state, nvmlDeviceGetPerformanceState);
SAME_CALL(persistence, nvmlDeviceGetPersistenceMode);
SAME_CALL(set_persistence, nvmlDeviceSetPersistenceMode);
SAME_CALL(power_limit, nvmlDeviceGetPowerManagementLimit);
SAME_CALL(power_limits, nvmlDeviceGetPowerManagementLimitConstraints);
SAME_CALL(set_power_limit, nvmlDeviceSetPowerManagementLimit);
SAME_CALL(lock_gpu_clocks, nvmlDeviceSetGpuLockedClocks);
SAME_CALL(reset_gpu_clocks, nvmlDeviceResetGpuLockedClocks);
SAME_CALL(lock_memory_clocks, nvmlDeviceSetMemoryLockedClocks);
SAME_CALL(reset_memory_clocks, nvmlDeviceResetMemoryLockedClocks);

}  // namespace
#else
TEST(NvmlAbi, NumbersAreThoseOfTheHeader) {
  GTEST_SKIP() << "NVIDIA's nvml.h is not here (CUDA toolkit, or wheel nvidia-nvml-dev)";
}
#endif
