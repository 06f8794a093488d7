// Our declarations of CUPTI's range profiler against NVIDIA's own headers, as abi_test.cc holds its records.
#include "gpu/cupti_replay_abi.h"

#include <gtest/gtest.h>

#ifdef STROBE_HAVE_CUPTI_HEADERS
#include <cuda.h>
#include <cupti_callbacks.h>
#include <cupti_profiler_target.h>
#include <cupti_range_profiler.h>

#include "gpu/same_layout.h"

namespace {

namespace abi = strobe::gpu::cupti;

SAME_STRUCT_SIZE(ContextAvailability, CUpti_Profiler_GetCounterAvailability_Params);
SAME_PLACE(ContextAvailability, context, CUpti_Profiler_GetCounterAvailability_Params, ctx);
SAME_PLACE(ContextAvailability, size, CUpti_Profiler_GetCounterAvailability_Params, counterAvailabilityImageSize);
SAME_PLACE(ContextAvailability, image, CUpti_Profiler_GetCounterAvailability_Params, pCounterAvailabilityImage);
SAME_STRUCT_SIZE(RangeEnable, CUpti_RangeProfiler_Enable_Params);
SAME_PLACE(RangeEnable, context, CUpti_RangeProfiler_Enable_Params, ctx);
SAME_PLACE(RangeEnable, profiler, CUpti_RangeProfiler_Enable_Params, pRangeProfilerObject);
SAME_STRUCT_SIZE(RangeObject, CUpti_RangeProfiler_Start_Params);
SAME_STRUCT_SIZE(RangeObject, CUpti_RangeProfiler_Disable_Params);
SAME_PLACE(RangeObject, profiler, CUpti_RangeProfiler_Start_Params, pRangeProfilerObject);
SAME_STRUCT_SIZE(RangeStop, CUpti_RangeProfiler_Stop_Params);
SAME_PLACE(RangeStop, pass, CUpti_RangeProfiler_Stop_Params, passIndex);
SAME_PLACE(RangeStop, nesting, CUpti_RangeProfiler_Stop_Params, targetNestingLevel);
SAME_PLACE(RangeStop, all_submitted, CUpti_RangeProfiler_Stop_Params, isAllPassSubmitted);
SAME_STRUCT_SIZE(RangeConfig, CUpti_RangeProfiler_SetConfig_Params);
SAME_PLACE(RangeConfig, size, CUpti_RangeProfiler_SetConfig_Params, configSize);
SAME_PLACE(RangeConfig, configuration, CUpti_RangeProfiler_SetConfig_Params, pConfig);
SAME_PLACE(RangeConfig, image_size, CUpti_RangeProfiler_SetConfig_Params, counterDataImageSize);
SAME_PLACE(RangeConfig, image, CUpti_RangeProfiler_SetConfig_Params, pCounterDataImage);
SAME_PLACE(RangeConfig, range, CUpti_RangeProfiler_SetConfig_Params, range);
SAME_PLACE(RangeConfig, replay, CUpti_RangeProfiler_SetConfig_Params, replayMode);
SAME_PLACE(RangeConfig, most_ranges, CUpti_RangeProfiler_SetConfig_Params, maxRangesPerPass);
SAME_PLACE(RangeConfig, nesting_levels, CUpti_RangeProfiler_SetConfig_Params, numNestingLevels);
SAME_PLACE(RangeConfig, least_nesting, CUpti_RangeProfiler_SetConfig_Params, minNestingLevel);
SAME_PLACE(RangeConfig, pass, CUpti_RangeProfiler_SetConfig_Params, passIndex);
SAME_PLACE(RangeConfig, target_nesting, CUpti_RangeProfiler_SetConfig_Params, targetNestingLevel);
SAME_STRUCT_SIZE(RangeDecode, CUpti_RangeProfiler_DecodeData_Params);
SAME_PLACE(RangeDecode, dropped, CUpti_RangeProfiler_DecodeData_Params, numOfRangeDropped);
SAME_STRUCT_SIZE(RangeDataSize, CUpti_RangeProfiler_GetCounterDataSize_Params);
SAME_PLACE(RangeDataSize, names, CUpti_RangeProfiler_GetCounterDataSize_Params, pMetricNames);
SAME_PLACE(RangeDataSize, count, CUpti_RangeProfiler_GetCounterDataSize_Params, numMetrics);
SAME_PLACE(RangeDataSize, most_ranges, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumOfRanges);
SAME_PLACE(RangeDataSize, most_nodes, CUpti_RangeProfiler_GetCounterDataSize_Params, maxNumRangeTreeNodes);
SAME_PLACE(RangeDataSize, size, CUpti_RangeProfiler_GetCounterDataSize_Params, counterDataSize);
SAME_STRUCT_SIZE(RangeDataInitialize, CUpti_RangeProfiler_CounterDataImage_Initialize_Params);
SAME_PLACE(RangeDataInitialize, size, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, counterDataSize);
SAME_PLACE(RangeDataInitialize, image, CUpti_RangeProfiler_CounterDataImage_Initialize_Params, pCounterData);
SAME_STRUCT_SIZE(RangeDataInfo, CUpti_RangeProfiler_GetCounterDataInfo_Params);
SAME_PLACE(RangeDataInfo, image, CUpti_RangeProfiler_GetCounterDataInfo_Params, pCounterDataImage);
SAME_PLACE(RangeDataInfo, ranges, CUpti_RangeProfiler_GetCounterDataInfo_Params, numTotalRanges);

static_assert(sizeof(abi::CallbackData) == sizeof(CUpti_CallbackData));
SAME_PLACE(CallbackData, site, CUpti_CallbackData, callbackSite);
SAME_PLACE(CallbackData, params, CUpti_CallbackData, functionParams);
SAME_PLACE(CallbackData, return_value, CUpti_CallbackData, functionReturnValue);
SAME_PLACE(CallbackData, symbol, CUpti_CallbackData, symbolName);
SAME_PLACE(CallbackData, context, CUpti_CallbackData, context);
static_assert(offsetof(CUlaunchConfig, gridDimX) == offsetof(abi::LaunchSizes, grid) &&
              offsetof(CUlaunchConfig, blockDimX) == offsetof(abi::LaunchSizes, block));

TEST(CuptiReplayAbi, NumbersAreThoseOfTheHeaders) {
  EXPECT_EQ(abi::kApiRangeProfiling, CUPTI_PROFILER_RANGE_PROFILING);
  EXPECT_EQ(abi::kAutoRange, CUPTI_AutoRange);
  EXPECT_EQ(abi::kKernelReplay, CUPTI_KernelReplay);
  EXPECT_EQ(abi::kCallEnter, CUPTI_API_ENTER);
  EXPECT_EQ(abi::kCallExit, CUPTI_API_EXIT);
  EXPECT_EQ(abi::kContextCreated, CUPTI_CBID_RESOURCE_CONTEXT_CREATED);
  EXPECT_EQ(abi::kContextDestroyed, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING);
}

}  // namespace
#else
TEST(CuptiReplayAbi, NumbersAreThoseOfTheHeaders) {
  GTEST_SKIP() << "NVIDIA's headers are not here (wheels nvidia-cuda-cupti and nvidia-cuda-runtime)";
}
#endif
