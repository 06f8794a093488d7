// Our declarations of CUPTI's counters against NVIDIA's own headers, as abi_test.cc holds its records.
#include "gpu/cupti_metrics_abi.h"

#include <gtest/gtest.h>

#ifdef STROBE_HAVE_CUPTI_HEADERS
#include <cupti_pmsampling.h>
#include <cupti_profiler_host.h>
#include <cupti_profiler_target.h>
#include <cupti_target.h>

#include "gpu/same_layout.h"

namespace {

namespace abi = strobe::gpu::cupti;

SAME_STRUCT_SIZE(ProfilerInitialize, CUpti_Profiler_Initialize_Params);
SAME_STRUCT_SIZE(ChipName, CUpti_Device_GetChipName_Params);
SAME_PLACE(ChipName, device, CUpti_Device_GetChipName_Params, deviceIndex);
SAME_PLACE(ChipName, name, CUpti_Device_GetChipName_Params, pChipName);

SAME_STRUCT_SIZE(DeviceSupported, CUpti_Profiler_DeviceSupported_Params);
SAME_PLACE(DeviceSupported, device, CUpti_Profiler_DeviceSupported_Params, cuDevice);
SAME_PLACE(DeviceSupported, supported, CUpti_Profiler_DeviceSupported_Params, isSupported);
SAME_PLACE(DeviceSupported, architecture, CUpti_Profiler_DeviceSupported_Params, architecture);
SAME_PLACE(DeviceSupported, sli, CUpti_Profiler_DeviceSupported_Params, sli);
SAME_PLACE(DeviceSupported, vgpu, CUpti_Profiler_DeviceSupported_Params, vGpu);
SAME_PLACE(DeviceSupported, confidential, CUpti_Profiler_DeviceSupported_Params, confidentialCompute);
SAME_PLACE(DeviceSupported, mining_card, CUpti_Profiler_DeviceSupported_Params, cmp);
SAME_PLACE(DeviceSupported, wsl, CUpti_Profiler_DeviceSupported_Params, wsl);
SAME_PLACE(DeviceSupported, api, CUpti_Profiler_DeviceSupported_Params, api);

SAME_STRUCT_SIZE(HostInitialize, CUpti_Profiler_Host_Initialize_Params);
SAME_PLACE(HostInitialize, type, CUpti_Profiler_Host_Initialize_Params, profilerType);
SAME_PLACE(HostInitialize, chip, CUpti_Profiler_Host_Initialize_Params, pChipName);
SAME_PLACE(HostInitialize, availability, CUpti_Profiler_Host_Initialize_Params, pCounterAvailabilityImage);
SAME_PLACE(HostInitialize, host, CUpti_Profiler_Host_Initialize_Params, pHostObject);
SAME_STRUCT_SIZE(HostObject, CUpti_Profiler_Host_Deinitialize_Params);
SAME_PLACE(HostObject, host, CUpti_Profiler_Host_Deinitialize_Params, pHostObject);
SAME_STRUCT_SIZE(HostAddMetrics, CUpti_Profiler_Host_ConfigAddMetrics_Params);
SAME_PLACE(HostAddMetrics, names, CUpti_Profiler_Host_ConfigAddMetrics_Params, ppMetricNames);
SAME_PLACE(HostAddMetrics, count, CUpti_Profiler_Host_ConfigAddMetrics_Params, numMetrics);
SAME_STRUCT_SIZE(HostImageSize, CUpti_Profiler_Host_GetConfigImageSize_Params);
SAME_PLACE(HostImageSize, size, CUpti_Profiler_Host_GetConfigImageSize_Params, configImageSize);
SAME_STRUCT_SIZE(HostImage, CUpti_Profiler_Host_GetConfigImage_Params);
SAME_PLACE(HostImage, size, CUpti_Profiler_Host_GetConfigImage_Params, configImageSize);
SAME_PLACE(HostImage, image, CUpti_Profiler_Host_GetConfigImage_Params, pConfigImage);
SAME_STRUCT_SIZE(HostPasses, CUpti_Profiler_Host_GetNumOfPasses_Params);
SAME_PLACE(HostPasses, size, CUpti_Profiler_Host_GetNumOfPasses_Params, configImageSize);
SAME_PLACE(HostPasses, image, CUpti_Profiler_Host_GetNumOfPasses_Params, pConfigImage);
SAME_PLACE(HostPasses, passes, CUpti_Profiler_Host_GetNumOfPasses_Params, numOfPasses);
SAME_STRUCT_SIZE(HostEvaluate, CUpti_Profiler_Host_EvaluateToGpuValues_Params);
SAME_PLACE(HostEvaluate, image, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pCounterDataImage);
SAME_PLACE(HostEvaluate, image_size, CUpti_Profiler_Host_EvaluateToGpuValues_Params, counterDataImageSize);
SAME_PLACE(HostEvaluate, index, CUpti_Profiler_Host_EvaluateToGpuValues_Params, rangeIndex);
SAME_PLACE(HostEvaluate, names, CUpti_Profiler_Host_EvaluateToGpuValues_Params, ppMetricNames);
SAME_PLACE(HostEvaluate, count, CUpti_Profiler_Host_EvaluateToGpuValues_Params, numMetrics);
SAME_PLACE(HostEvaluate, values, CUpti_Profiler_Host_EvaluateToGpuValues_Params, pMetricValues);

SAME_STRUCT_SIZE(PmAvailability, CUpti_PmSampling_GetCounterAvailability_Params);
SAME_PLACE(PmAvailability, device, CUpti_PmSampling_GetCounterAvailability_Params, deviceIndex);
SAME_PLACE(PmAvailability, size, CUpti_PmSampling_GetCounterAvailability_Params, counterAvailabilityImageSize);
SAME_PLACE(PmAvailability, image, CUpti_PmSampling_GetCounterAvailability_Params, pCounterAvailabilityImage);
SAME_STRUCT_SIZE(PmEnable, CUpti_PmSampling_Enable_Params);
SAME_PLACE(PmEnable, device, CUpti_PmSampling_Enable_Params, deviceIndex);
SAME_PLACE(PmEnable, sampling, CUpti_PmSampling_Enable_Params, pPmSamplingObject);
SAME_STRUCT_SIZE(PmObject, CUpti_PmSampling_Start_Params);
SAME_STRUCT_SIZE(PmObject, CUpti_PmSampling_Stop_Params);
SAME_STRUCT_SIZE(PmObject, CUpti_PmSampling_Disable_Params);
SAME_PLACE(PmObject, sampling, CUpti_PmSampling_Start_Params, pPmSamplingObject);
SAME_STRUCT_SIZE(PmConfig, CUpti_PmSampling_SetConfig_Params);
SAME_PLACE(PmConfig, size, CUpti_PmSampling_SetConfig_Params, configSize);
SAME_PLACE(PmConfig, image, CUpti_PmSampling_SetConfig_Params, pConfig);
SAME_PLACE(PmConfig, hardware_bytes, CUpti_PmSampling_SetConfig_Params, hardwareBufferSize);
SAME_PLACE(PmConfig, interval, CUpti_PmSampling_SetConfig_Params, samplingInterval);
SAME_PLACE(PmConfig, trigger, CUpti_PmSampling_SetConfig_Params, triggerMode);
SAME_PLACE(PmConfig, append, CUpti_PmSampling_SetConfig_Params, hwBufferAppendMode);
SAME_STRUCT_SIZE(PmDataSize, CUpti_PmSampling_GetCounterDataSize_Params);
SAME_PLACE(PmDataSize, names, CUpti_PmSampling_GetCounterDataSize_Params, pMetricNames);
SAME_PLACE(PmDataSize, count, CUpti_PmSampling_GetCounterDataSize_Params, numMetrics);
SAME_PLACE(PmDataSize, samples, CUpti_PmSampling_GetCounterDataSize_Params, maxSamples);
SAME_PLACE(PmDataSize, size, CUpti_PmSampling_GetCounterDataSize_Params, counterDataSize);
SAME_STRUCT_SIZE(PmDataInitialize, CUpti_PmSampling_CounterDataImage_Initialize_Params);
SAME_PLACE(PmDataInitialize, size, CUpti_PmSampling_CounterDataImage_Initialize_Params, counterDataSize);
SAME_PLACE(PmDataInitialize, image, CUpti_PmSampling_CounterDataImage_Initialize_Params, pCounterData);
SAME_STRUCT_SIZE(PmDecode, CUpti_PmSampling_DecodeData_Params);
SAME_PLACE(PmDecode, image, CUpti_PmSampling_DecodeData_Params, pCounterDataImage);
SAME_PLACE(PmDecode, size, CUpti_PmSampling_DecodeData_Params, counterDataImageSize);
SAME_PLACE(PmDecode, stop, CUpti_PmSampling_DecodeData_Params, decodeStopReason);
SAME_PLACE(PmDecode, overflow, CUpti_PmSampling_DecodeData_Params, overflow);
SAME_STRUCT_SIZE(PmDataInfo, CUpti_PmSampling_GetCounterDataInfo_Params);
SAME_PLACE(PmDataInfo, image, CUpti_PmSampling_GetCounterDataInfo_Params, pCounterDataImage);
SAME_PLACE(PmDataInfo, total, CUpti_PmSampling_GetCounterDataInfo_Params, numTotalSamples);
SAME_PLACE(PmDataInfo, populated, CUpti_PmSampling_GetCounterDataInfo_Params, numPopulatedSamples);
SAME_PLACE(PmDataInfo, completed, CUpti_PmSampling_GetCounterDataInfo_Params, numCompletedSamples);
SAME_STRUCT_SIZE(PmSampleInfo, CUpti_PmSampling_CounterData_GetSampleInfo_Params);
SAME_PLACE(PmSampleInfo, image, CUpti_PmSampling_CounterData_GetSampleInfo_Params, pCounterDataImage);
SAME_PLACE(PmSampleInfo, index, CUpti_PmSampling_CounterData_GetSampleInfo_Params, sampleIndex);
SAME_PLACE(PmSampleInfo, start, CUpti_PmSampling_CounterData_GetSampleInfo_Params, startTimestamp);
SAME_PLACE(PmSampleInfo, end, CUpti_PmSampling_CounterData_GetSampleInfo_Params, endTimestamp);

TEST(CuptiMetricsAbi, NumbersAreThoseOfTheHeaders) {
  EXPECT_EQ(abi::kRangeProfiler, CUPTI_PROFILER_TYPE_RANGE_PROFILER);
  EXPECT_EQ(abi::kPmSampling, CUPTI_PROFILER_TYPE_PM_SAMPLING);
  EXPECT_EQ(abi::kLevelUnknown, CUPTI_PROFILER_CONFIGURATION_UNKNOWN);
  EXPECT_EQ(abi::kLevelUnsupported, CUPTI_PROFILER_CONFIGURATION_UNSUPPORTED);
  EXPECT_EQ(abi::kLevelDisabled, CUPTI_PROFILER_CONFIGURATION_DISABLED);
  EXPECT_EQ(abi::kLevelSupported, CUPTI_PROFILER_CONFIGURATION_SUPPORTED);
  EXPECT_EQ(abi::kApiPmSampling, CUPTI_PROFILER_PM_SAMPLING);
  EXPECT_EQ(abi::kEverySystemCycles, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_SYSCLK_INTERVAL);
  EXPECT_EQ(abi::kEveryNanoseconds, CUPTI_PM_SAMPLING_TRIGGER_MODE_GPU_TIME_INTERVAL);
  EXPECT_EQ(abi::kKeepOldest, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_OLDEST);
  EXPECT_EQ(abi::kKeepLatest, CUPTI_PM_SAMPLING_HARDWARE_BUFFER_APPEND_MODE_KEEP_LATEST);
  EXPECT_EQ(abi::kStoppedOtherwise, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_OTHER);
  EXPECT_EQ(abi::kImageIsFull, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_COUNTER_DATA_FULL);
  EXPECT_EQ(abi::kEndOfRecords, CUPTI_PM_SAMPLING_DECODE_STOP_REASON_END_OF_RECORDS);
  EXPECT_EQ(abi::kInvalidOperation, CUPTI_ERROR_INVALID_OPERATION);
  EXPECT_EQ(abi::kOutOfMemory, CUPTI_ERROR_OUT_OF_MEMORY);
}

}  // namespace
#else
TEST(CuptiMetricsAbi, NumbersAreThoseOfTheHeaders) {
  GTEST_SKIP() << "NVIDIA's headers are not here (wheels nvidia-cuda-cupti and nvidia-cuda-runtime)";
}
#endif
