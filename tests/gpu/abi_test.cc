// Our declarations of CUPTI's records against NVIDIA's own headers, where the wheels nvidia-cuda-cupti and
// nvidia-cuda-runtime are installed.
#include "gpu/cupti_abi.h"

#include <gtest/gtest.h>

#ifdef STROBE_HAVE_CUPTI_HEADERS
#include <cupti.h>

#include "gpu/same_layout.h"

namespace {

namespace abi = strobe::gpu::cupti;

SAME_SIZE(KernelRecord, CUpti_ActivityKernel10);
SAME_PLACE(KernelRecord, registers_per_thread, CUpti_ActivityKernel10, registersPerThread);
SAME_PLACE(KernelRecord, start, CUpti_ActivityKernel10, start);
SAME_PLACE(KernelRecord, end, CUpti_ActivityKernel10, end);
SAME_PLACE(KernelRecord, device, CUpti_ActivityKernel10, deviceId);
SAME_PLACE(KernelRecord, context, CUpti_ActivityKernel10, contextId);
SAME_PLACE(KernelRecord, stream, CUpti_ActivityKernel10, streamId);
static_assert(offsetof(abi::KernelRecord, grid) == offsetof(CUpti_ActivityKernel10, gridX));
static_assert(offsetof(abi::KernelRecord, block) == offsetof(CUpti_ActivityKernel10, blockX));
static_assert(offsetof(abi::KernelRecord, cluster) == offsetof(CUpti_ActivityKernel10, clusterX));
SAME_PLACE(KernelRecord, static_shared, CUpti_ActivityKernel10, staticSharedMemory);
SAME_PLACE(KernelRecord, dynamic_shared, CUpti_ActivityKernel10, dynamicSharedMemory);
SAME_PLACE(KernelRecord, local_total, CUpti_ActivityKernel10, localMemoryTotal);
SAME_PLACE(KernelRecord, correlation, CUpti_ActivityKernel10, correlationId);
SAME_PLACE(KernelRecord, name, CUpti_ActivityKernel10, name);
SAME_PLACE(KernelRecord, queued, CUpti_ActivityKernel10, queued);
SAME_PLACE(KernelRecord, submitted, CUpti_ActivityKernel10, submitted);
SAME_PLACE(KernelRecord, launch_type, CUpti_ActivityKernel10, launchType);
SAME_PLACE(KernelRecord, shared_executed, CUpti_ActivityKernel10, sharedMemoryExecuted);
SAME_PLACE(KernelRecord, graph_node, CUpti_ActivityKernel10, graphNodeId);
SAME_PLACE(KernelRecord, graph, CUpti_ActivityKernel10, graphId);
SAME_PLACE(KernelRecord, local_total_v2, CUpti_ActivityKernel10, localMemoryTotal_v2);
SAME_PLACE(KernelRecord, is_device_launched, CUpti_ActivityKernel10, isDeviceLaunched);
// Older structures are prefixes.
static_assert(offsetof(CUpti_ActivityKernel8, clusterX) == offsetof(CUpti_ActivityKernel10, clusterX));
static_assert(offsetof(CUpti_ActivityKernel9, maxActiveClusters) ==
              offsetof(CUpti_ActivityKernel10, maxActiveClusters));

SAME_SIZE(MemcpyRecord, CUpti_ActivityMemcpy6);
SAME_PLACE(MemcpyRecord, copy_kind, CUpti_ActivityMemcpy6, copyKind);
SAME_PLACE(MemcpyRecord, source_kind, CUpti_ActivityMemcpy6, srcKind);
SAME_PLACE(MemcpyRecord, target_kind, CUpti_ActivityMemcpy6, dstKind);
SAME_PLACE(MemcpyRecord, bytes, CUpti_ActivityMemcpy6, bytes);
SAME_PLACE(MemcpyRecord, end, CUpti_ActivityMemcpy6, end);
SAME_PLACE(MemcpyRecord, stream, CUpti_ActivityMemcpy6, streamId);
SAME_PLACE(MemcpyRecord, correlation, CUpti_ActivityMemcpy6, correlationId);
SAME_PLACE(MemcpyRecord, graph_node, CUpti_ActivityMemcpy6, graphNodeId);
SAME_PLACE(MemcpyRecord, copy_count, CUpti_ActivityMemcpy6, copyCount);

SAME_SIZE(MemcpyPeerRecord, CUpti_ActivityMemcpyPtoP4);
SAME_PLACE(MemcpyPeerRecord, stream, CUpti_ActivityMemcpyPtoP4, streamId);
SAME_PLACE(MemcpyPeerRecord, source_device, CUpti_ActivityMemcpyPtoP4, srcDeviceId);
SAME_PLACE(MemcpyPeerRecord, target_device, CUpti_ActivityMemcpyPtoP4, dstDeviceId);
SAME_PLACE(MemcpyPeerRecord, correlation, CUpti_ActivityMemcpyPtoP4, correlationId);
SAME_PLACE(MemcpyPeerRecord, graph_node, CUpti_ActivityMemcpyPtoP4, graphNodeId);

SAME_SIZE(MemsetRecord, CUpti_ActivityMemset4);
SAME_PLACE(MemsetRecord, value, CUpti_ActivityMemset4, value);
SAME_PLACE(MemsetRecord, bytes, CUpti_ActivityMemset4, bytes);
SAME_PLACE(MemsetRecord, stream, CUpti_ActivityMemset4, streamId);
SAME_PLACE(MemsetRecord, memory_kind, CUpti_ActivityMemset4, memoryKind);
SAME_PLACE(MemsetRecord, graph_node, CUpti_ActivityMemset4, graphNodeId);

SAME_SIZE(ApiRecord, CUpti_ActivityAPI);
SAME_PLACE(ApiRecord, function, CUpti_ActivityAPI, cbid);
SAME_PLACE(ApiRecord, start, CUpti_ActivityAPI, start);
SAME_PLACE(ApiRecord, thread, CUpti_ActivityAPI, threadId);
SAME_PLACE(ApiRecord, correlation, CUpti_ActivityAPI, correlationId);
SAME_PLACE(ApiRecord, return_value, CUpti_ActivityAPI, returnValue);

SAME_SIZE(SynchronizationRecord, CUpti_ActivitySynchronization2);
SAME_PLACE(SynchronizationRecord, type, CUpti_ActivitySynchronization2, type);
SAME_PLACE(SynchronizationRecord, correlation, CUpti_ActivitySynchronization2, correlationId);
SAME_PLACE(SynchronizationRecord, stream, CUpti_ActivitySynchronization2, streamId);
SAME_PLACE(SynchronizationRecord, event_sync, CUpti_ActivitySynchronization2, cudaEventSyncId);
static_assert(sizeof(CUpti_ActivitySynchronization) == offsetof(abi::SynchronizationRecord, event_sync));

SAME_SIZE(CudaEventRecord, CUpti_ActivityCudaEvent2);
SAME_PLACE(CudaEventRecord, stream, CUpti_ActivityCudaEvent2, streamId);
SAME_PLACE(CudaEventRecord, event, CUpti_ActivityCudaEvent2, eventId);
SAME_PLACE(CudaEventRecord, device, CUpti_ActivityCudaEvent2, deviceId);
SAME_PLACE(CudaEventRecord, device_time, CUpti_ActivityCudaEvent2, deviceTimestamp);
SAME_PLACE(CudaEventRecord, event_sync, CUpti_ActivityCudaEvent2, cudaEventSyncId);
static_assert(sizeof(CUpti_ActivityCudaEvent) == offsetof(abi::CudaEventRecord, device));

SAME_SIZE(OverheadRecord, CUpti_ActivityOverhead3);
SAME_PLACE(OverheadRecord, object, CUpti_ActivityOverhead3, objectId);
SAME_PLACE(OverheadRecord, start, CUpti_ActivityOverhead3, start);
SAME_PLACE(OverheadRecord, correlation, CUpti_ActivityOverhead3, correlationId);

SAME_SIZE(ExternalCorrelationRecord, CUpti_ActivityExternalCorrelation);
SAME_PLACE(ExternalCorrelationRecord, external, CUpti_ActivityExternalCorrelation, externalId);
SAME_PLACE(ExternalCorrelationRecord, correlation, CUpti_ActivityExternalCorrelation, correlationId);

SAME_SIZE(MarkerRecord, CUpti_ActivityMarker2);
SAME_PLACE(MarkerRecord, flags, CUpti_ActivityMarker2, flags);
SAME_PLACE(MarkerRecord, time, CUpti_ActivityMarker2, timestamp);
SAME_PLACE(MarkerRecord, id, CUpti_ActivityMarker2, id);
SAME_PLACE(MarkerRecord, object, CUpti_ActivityMarker2, objectId);
SAME_PLACE(MarkerRecord, name, CUpti_ActivityMarker2, name);
SAME_PLACE(MarkerRecord, domain, CUpti_ActivityMarker2, domain);

SAME_SIZE(DeviceRecord, CUpti_ActivityDevice5);
SAME_PLACE(DeviceRecord, memory_bytes, CUpti_ActivityDevice5, globalMemorySize);
SAME_PLACE(DeviceRecord, l2_bytes, CUpti_ActivityDevice5, l2CacheSize);
SAME_PLACE(DeviceRecord, core_clock, CUpti_ActivityDevice5, coreClockRate);
SAME_PLACE(DeviceRecord, multiprocessors, CUpti_ActivityDevice5, numMultiprocessors);
SAME_PLACE(DeviceRecord, registers_per_sm, CUpti_ActivityDevice5, maxRegistersPerMultiprocessor);
SAME_PLACE(DeviceRecord, compute_major, CUpti_ActivityDevice5, computeCapabilityMajor);
SAME_PLACE(DeviceRecord, id, CUpti_ActivityDevice5, id);
SAME_PLACE(DeviceRecord, uuid, CUpti_ActivityDevice5, uuid);
SAME_PLACE(DeviceRecord, name, CUpti_ActivityDevice5, name);
SAME_PLACE(DeviceRecord, gpu_instance, CUpti_ActivityDevice5, gpuInstanceId);

SAME_SIZE(ContextRecord, CUpti_ActivityContext3);
SAME_PLACE(ContextRecord, null_stream, CUpti_ActivityContext3, nullStreamId);
SAME_PLACE(ContextRecord, parent, CUpti_ActivityContext3, parentContextId);
SAME_PLACE(ContextRecord, is_green, CUpti_ActivityContext3, isGreenContext);
SAME_PLACE(ContextRecord, multiprocessors, CUpti_ActivityContext3, numMultiprocessors);

SAME_SIZE(StreamRecord, CUpti_ActivityStream);
SAME_PLACE(StreamRecord, priority, CUpti_ActivityStream, priority);
SAME_PLACE(StreamRecord, flag, CUpti_ActivityStream, flag);
SAME_SIZE(NameRecord, CUpti_ActivityName);
SAME_PLACE(NameRecord, object, CUpti_ActivityName, objectId);
SAME_PLACE(NameRecord, name, CUpti_ActivityName, name);

SAME_SIZE(GraphTraceRecord, CUpti_ActivityGraphTrace2);
SAME_PLACE(GraphTraceRecord, start, CUpti_ActivityGraphTrace2, start);
SAME_PLACE(GraphTraceRecord, graph, CUpti_ActivityGraphTrace2, graphId);
SAME_PLACE(GraphTraceRecord, stream, CUpti_ActivityGraphTrace2, streamId);
SAME_PLACE(GraphTraceRecord, end_device, CUpti_ActivityGraphTrace2, endDeviceId);

SAME_SIZE(MemoryRecord, CUpti_ActivityMemory4);
SAME_PLACE(MemoryRecord, operation, CUpti_ActivityMemory4, memoryOperationType);
SAME_PLACE(MemoryRecord, address, CUpti_ActivityMemory4, address);
SAME_PLACE(MemoryRecord, bytes, CUpti_ActivityMemory4, bytes);
SAME_PLACE(MemoryRecord, time, CUpti_ActivityMemory4, timestamp);
SAME_PLACE(MemoryRecord, stream, CUpti_ActivityMemory4, streamId);
SAME_PLACE(MemoryRecord, pool, CUpti_ActivityMemory4, memoryPoolConfig);
static_assert(offsetof(abi::MemoryPoolConfig, utilized) ==
              offsetof(CUpti_ActivityMemory4, memoryPoolConfig.utilizedSize) -
                  offsetof(CUpti_ActivityMemory4, memoryPoolConfig));
SAME_PLACE(MemoryRecord, source, CUpti_ActivityMemory4, source);

SAME_SIZE(MemoryPoolRecord, CUpti_ActivityMemoryPool3);
SAME_PLACE(MemoryPoolRecord, address, CUpti_ActivityMemoryPool3, address);
SAME_PLACE(MemoryPoolRecord, time, CUpti_ActivityMemoryPool3, timestamp);
SAME_PLACE(MemoryPoolRecord, utilized, CUpti_ActivityMemoryPool3, utilizedSize);
SAME_SIZE(EnvironmentRecord, CUpti_ActivityEnvironment);
SAME_PLACE(EnvironmentRecord, environment_kind, CUpti_ActivityEnvironment, environmentKind);
static_assert(offsetof(abi::EnvironmentRecord, values) == offsetof(CUpti_ActivityEnvironment, data));

static_assert(sizeof(abi::SubscriberParams) == sizeof(CUpti_SubscriberParams));
static_assert(offsetof(abi::SubscriberParams, old_name) == offsetof(CUpti_SubscriberParams, oldSubscriberName));

SAME_SIZE(ResourceData, CUpti_ResourceData);
SAME_PLACE(ResourceData, descriptor, CUpti_ResourceData, resourceDescriptor);
SAME_SIZE(GraphData, CUpti_GraphData);
SAME_PLACE(GraphData, graph, CUpti_GraphData, graph);
SAME_PLACE(GraphData, node, CUpti_GraphData, node);
SAME_PLACE(GraphData, original_node, CUpti_GraphData, originalNode);
SAME_PLACE(GraphData, node_type, CUpti_GraphData, nodeType);

TEST(CuptiAbi, NumbersAreThoseOfTheHeaders) {
  EXPECT_EQ(abi::kMemcpy, CUPTI_ACTIVITY_KIND_MEMCPY);
  EXPECT_EQ(abi::kMemset, CUPTI_ACTIVITY_KIND_MEMSET);
  EXPECT_EQ(abi::kDriver, CUPTI_ACTIVITY_KIND_DRIVER);
  EXPECT_EQ(abi::kRuntime, CUPTI_ACTIVITY_KIND_RUNTIME);
  EXPECT_EQ(abi::kDevice, CUPTI_ACTIVITY_KIND_DEVICE);
  EXPECT_EQ(abi::kContext, CUPTI_ACTIVITY_KIND_CONTEXT);
  EXPECT_EQ(abi::kConcurrentKernel, CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
  EXPECT_EQ(abi::kName, CUPTI_ACTIVITY_KIND_NAME);
  EXPECT_EQ(abi::kMarker, CUPTI_ACTIVITY_KIND_MARKER);
  EXPECT_EQ(abi::kOverhead, CUPTI_ACTIVITY_KIND_OVERHEAD);
  EXPECT_EQ(abi::kEnvironment, CUPTI_ACTIVITY_KIND_ENVIRONMENT);
  EXPECT_EQ(abi::kMemcpy2, CUPTI_ACTIVITY_KIND_MEMCPY2);
  EXPECT_EQ(abi::kCudaEvent, CUPTI_ACTIVITY_KIND_CUDA_EVENT);
  EXPECT_EQ(abi::kStream, CUPTI_ACTIVITY_KIND_STREAM);
  EXPECT_EQ(abi::kSynchronization, CUPTI_ACTIVITY_KIND_SYNCHRONIZATION);
  EXPECT_EQ(abi::kExternalCorrelation, CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION);
  EXPECT_EQ(abi::kMemory2, CUPTI_ACTIVITY_KIND_MEMORY2);
  EXPECT_EQ(abi::kMemoryPool, CUPTI_ACTIVITY_KIND_MEMORY_POOL);
  EXPECT_EQ(abi::kGraphTrace, CUPTI_ACTIVITY_KIND_GRAPH_TRACE);
  EXPECT_EQ(abi::kMaxLimitReached, CUPTI_ERROR_MAX_LIMIT_REACHED);
  EXPECT_EQ(abi::kInsufficientPrivileges, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES);
  EXPECT_EQ(abi::kMultipleSubscribers, CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED);
  EXPECT_EQ(abi::kZeroedOutBuffer, CUPTI_ACTIVITY_ATTR_ZEROED_OUT_ACTIVITY_BUFFER);
  EXPECT_EQ(abi::kSystemThreadIds, CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
  EXPECT_EQ(abi::kFlushForced, CUPTI_ACTIVITY_FLAG_FLUSH_FORCED);
  EXPECT_EQ(abi::kDomainDriver, CUPTI_CB_DOMAIN_DRIVER_API);
  EXPECT_EQ(abi::kDomainRuntime, CUPTI_CB_DOMAIN_RUNTIME_API);
  EXPECT_EQ(abi::kDomainResource, CUPTI_CB_DOMAIN_RESOURCE);
  EXPECT_EQ(abi::kGraphNodeCreated, CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED);
  EXPECT_EQ(abi::kGraphNodeCloned, CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED);
  EXPECT_EQ(abi::kObjectThread, CUPTI_ACTIVITY_OBJECT_THREAD);
  EXPECT_EQ(abi::kMarkerEnd, CUPTI_ACTIVITY_FLAG_MARKER_END);
  EXPECT_EQ(abi::kOldNameBytes, CUPTI_OLD_SUBSCRIBER_NAME_MIN_LEN);
}

}  // namespace
#else
TEST(CuptiAbi, NumbersAreThoseOfTheHeaders) {
  GTEST_SKIP() << "NVIDIA's headers are not here (wheels nvidia-cuda-cupti and nvidia-cuda-runtime)";
}
#endif
