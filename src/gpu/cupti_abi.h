// The binary interface of CUPTI as far as this library uses it: NVIDIA's headers of CUDA 13.0 describe it, these are
// declarations of our own, so that the program is the same one with and without those headers. tests/gpu/abi_test.cc
// holds them against the headers where those are installed.
//
// Records only ever grew at their end: a record of an older library is a prefix of the structure here, one of a newer
// library begins with it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strobe::gpu::cupti {

using Code = int;  // 0: done; cupti_errors.h
inline constexpr Code kSuccess = 0;
inline constexpr Code kMaxLimitReached = 12;
inline constexpr Code kInsufficientPrivileges = 35;
inline constexpr Code kMultipleSubscribers = 39;
inline constexpr Code kUnknownError = 999;

enum Kind : uint32_t {
  kMemcpy = 1,
  kMemset = 2,
  kDriver = 4,
  kRuntime = 5,
  kDevice = 8,
  kContext = 9,
  kConcurrentKernel = 10,
  kName = 11,
  kMarker = 12,
  kMarkerData = 13,
  kOverhead = 17,
  kEnvironment = 20,
  kMemcpy2 = 22,
  kCudaEvent = 36,
  kStream = 37,
  kSynchronization = 38,
  kExternalCorrelation = 39,
  kMemory2 = 49,
  kMemoryPool = 50,
  kGraphTrace = 51,
};

#define STROBE_CUPTI_RECORD struct __attribute__((packed, aligned(8)))

// Times: nanoseconds of CUPTI's clock. Pointers: into CUPTI's own memory, valid while the record is looked at.
STROBE_CUPTI_RECORD KernelRecord {
  uint32_t kind;
  uint8_t cache_config;
  uint8_t shared_memory_config;
  uint16_t registers_per_thread;
  int32_t partitioned_cache_requested;
  int32_t partitioned_cache_executed;
  uint64_t start, end;  // both 0: not measured
  uint64_t completed;
  uint32_t device, context, stream;
  int32_t grid[3];
  int32_t block[3];
  int32_t static_shared, dynamic_shared;
  uint32_t local_per_thread, local_total;
  uint32_t correlation;
  int64_t grid_id;
  uint64_t name;  // const char*, mangled
  uint64_t reserved0;
  uint64_t queued, submitted;  // 0: not measured
  uint8_t launch_type;
  uint8_t carveout_is_requested, carveout_requested, padding;
  uint32_t shared_executed;
  uint64_t graph_node;
  int32_t shared_limit_config;
  uint32_t graph;
  uint64_t access_policy_window;
  uint32_t channel;
  int32_t channel_type;
  uint32_t cluster[3];
  uint32_t cluster_scheduling;
  uint64_t local_total_v2;
  uint32_t max_potential_cluster, max_active_clusters;  // CUDA 12
  uint8_t is_device_launched;                           // CUDA 13
  uint8_t padding3[7];
};
static_assert(sizeof(KernelRecord) == 216 && offsetof(KernelRecord, name) == 104);

STROBE_CUPTI_RECORD MemcpyRecord {
  uint32_t kind;
  uint8_t copy_kind, source_kind, target_kind, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t correlation, runtime_correlation, pad;
  uint64_t reserved0;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
  int32_t channel_type;
  uint8_t is_device_launched;
  uint8_t pad2[3];
  uint64_t copy_count;
};
static_assert(sizeof(MemcpyRecord) == 96);

STROBE_CUPTI_RECORD MemcpyPeerRecord {
  uint32_t kind;
  uint8_t copy_kind, source_kind, target_kind, flags;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t source_device, source_context, target_device, target_context;
  uint32_t correlation;
  uint64_t reserved0;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
  int32_t channel_type;
};
static_assert(sizeof(MemcpyPeerRecord) == 96);

STROBE_CUPTI_RECORD MemsetRecord {
  uint32_t kind;
  uint32_t value;
  uint64_t bytes, start, end;
  uint32_t device, context, stream;
  uint32_t correlation;
  uint16_t flags, memory_kind;
  uint32_t pad;
  uint64_t reserved0;
  uint64_t graph_node;
  uint32_t graph;
  uint32_t channel;
  int32_t channel_type;
  uint8_t is_device_launched;
  uint8_t pad2[3];
};
static_assert(sizeof(MemsetRecord) == 88);

STROBE_CUPTI_RECORD ApiRecord {  // kRuntime, kDriver
  uint32_t kind;
  uint32_t function;
  uint64_t start, end;
  uint32_t process, thread;
  uint32_t correlation;
  uint32_t return_value;
};
static_assert(sizeof(ApiRecord) == 40);

STROBE_CUPTI_RECORD SynchronizationRecord {
  uint32_t kind;
  int32_t type;
  uint64_t start, end;
  uint32_t correlation, context, stream;
  uint32_t event;
  uint64_t event_sync;  // CUDA 12.8
  uint32_t return_value, pad;
};
static_assert(sizeof(SynchronizationRecord) == 56);

STROBE_CUPTI_RECORD CudaEventRecord {
  uint32_t kind;
  uint32_t correlation, context, stream;
  uint32_t event, pad;
  uint32_t device, pad2;  // from here on CUDA 12.8
  uint64_t reserved0;
  uint64_t device_time;
  uint64_t event_sync;
};
static_assert(sizeof(CudaEventRecord) == 56);

// Which of the numbers count depends on the object: a process or thread has two, the others three.
enum Object : int32_t { kObjectProcess = 1, kObjectThread, kObjectDevice, kObjectContext, kObjectStream };
union ObjectId {
  struct {
    uint32_t process, thread;
  } of_thread;
  struct {
    uint32_t device, context, stream;
  } of_stream;
};

STROBE_CUPTI_RECORD OverheadRecord {
  uint32_t kind;
  int32_t overhead_kind;
  int32_t object_kind;
  ObjectId object;
  uint64_t start, end;
  uint32_t correlation;  // CUDA 12.2
  uint32_t reserved0;
  uint64_t data;
};
static_assert(sizeof(OverheadRecord) == 56);

STROBE_CUPTI_RECORD ExternalCorrelationRecord {
  uint32_t kind;
  int32_t external_kind;
  uint64_t external;
  uint32_t correlation, reserved;
};
static_assert(sizeof(ExternalCorrelationRecord) == 24);

inline constexpr uint32_t kMarkerInstant = 1, kMarkerStart = 2, kMarkerEnd = 4;
STROBE_CUPTI_RECORD MarkerRecord {
  uint32_t kind;
  uint32_t flags;
  uint64_t time;
  uint32_t id;
  int32_t object_kind;
  ObjectId object;
  uint32_t pad;
  uint64_t name, domain;  // const char*; of an end null
};
static_assert(sizeof(MarkerRecord) == 56);

STROBE_CUPTI_RECORD DeviceRecord {
  uint32_t kind;
  uint32_t flags;
  uint64_t memory_bandwidth;  // KB/s
  uint64_t memory_bytes;
  uint32_t constant_memory, l2_bytes, threads_per_warp;
  uint32_t core_clock;  // kHz
  uint32_t copy_engines, multiprocessors, max_ipc;
  uint32_t warps_per_sm, blocks_per_sm, shared_per_sm, registers_per_sm, registers_per_block, shared_per_block,
      threads_per_block;
  uint32_t max_block[3];
  uint32_t max_grid[3];
  uint32_t compute_major, compute_minor;
  uint32_t id;
  uint32_t ecc;
  uint8_t uuid[16];
  uint64_t name;  // const char*
  uint8_t is_visible, is_mig;
  uint8_t reserved[6];
  uint32_t gpu_instance, compute_instance;
  uint8_t mig_uuid[16];
  uint32_t is_numa_node, numa_id;  // CUDA 12.4
};
static_assert(sizeof(DeviceRecord) == 184);

STROBE_CUPTI_RECORD ContextRecord {
  uint32_t kind;
  uint32_t context, device;
  uint16_t api, null_stream;
  uint32_t parent;  // from here on CUDA 12
  uint8_t is_green, padding;
  uint16_t multiprocessors;
  int32_t cig_mode;
  uint32_t padding2;
};
static_assert(sizeof(ContextRecord) == 32);

STROBE_CUPTI_RECORD StreamRecord {
  uint32_t kind;
  uint32_t context, stream;
  uint32_t priority;  // a signed number in fact: less is more urgent
  int32_t flag;
  uint32_t correlation;
};
static_assert(sizeof(StreamRecord) == 24);

STROBE_CUPTI_RECORD NameRecord {
  uint32_t kind;
  int32_t object_kind;
  ObjectId object;
  uint32_t pad;
  uint64_t name;  // const char*
};
static_assert(sizeof(NameRecord) == 32);

struct GraphTraceRecord {
  uint32_t kind;
  uint32_t correlation;
  uint64_t start, end;
  uint32_t device, graph, context, stream;
  uint64_t reserved;
  uint32_t end_device, end_context;  // CUDA 12.8
};
static_assert(sizeof(GraphTraceRecord) == 56);

STROBE_CUPTI_RECORD MemoryPoolConfig {
  int32_t type;
  uint32_t pad;
  uint64_t address, release_threshold;
  uint64_t size;
  uint64_t utilized;
};
STROBE_CUPTI_RECORD MemoryRecord {
  uint32_t kind;
  int32_t operation;  // 1 allocation, 2 release
  int32_t memory_kind;
  uint32_t correlation;
  uint64_t address, bytes, time, pc;
  uint32_t process, device, context, stream;
  uint64_t name;  // const char*
  uint32_t is_async, pad1;
  MemoryPoolConfig pool;
  uint64_t source;  // const char*; CUDA 12.8
};
static_assert(sizeof(MemoryRecord) == 128);

STROBE_CUPTI_RECORD MemoryPoolRecord {
  uint32_t kind;
  int32_t operation;  // 1 created, 2 destroyed, 3 trimmed
  int32_t pool_type;
  uint32_t correlation;
  uint32_t process, device;
  uint64_t min_bytes_to_keep, address, size, release_threshold, time, utilized;
  uint8_t is_managed;
  uint8_t pad2[7];
};
static_assert(sizeof(MemoryPoolRecord) == 80);

enum EnvironmentKind : int32_t { kSpeed = 1, kTemperature, kPower, kCooling };
STROBE_CUPTI_RECORD EnvironmentRecord {
  uint32_t kind;
  uint32_t device;
  uint64_t time;
  int32_t environment_kind;
  // kSpeed: SM and memory clock in MHz, PCIe generation and width, reasons; kTemperature: degrees; kPower: mW and its
  // limit; kCooling: percent.
  uint32_t values[5];
};
static_assert(sizeof(EnvironmentRecord) == 40);

// What programs that use CUPTI give and get.
using Subscriber = void*;
using BufferRequested = void (*)(uint8_t** buffer, size_t* size, size_t* max_records);
using BufferCompleted = void (*)(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid_size);
using Callback = void (*)(void* user, int domain, uint32_t function, const void* data);
struct SubscriberParams {
  size_t struct_size;
  const char* name;
  char* old_name;
  size_t old_name_size;
};
inline constexpr size_t kOldNameBytes = 64;
enum Domain : int { kDomainDriver = 1, kDomainRuntime = 2, kDomainResource = 3 };
// Functions of the resource domain, and what comes with them.
inline constexpr uint32_t kGraphNodeCreated = 13, kGraphNodeCloned = 20;
struct ResourceData {
  void* context;
  void* stream;
  void* descriptor;  // of what concerns graphs: GraphData
};
struct GraphData {
  void *graph, *original_graph;
  void *node, *original_node;
  int node_type;
  void *dependency, *executable;
};
enum Attribute : int { kZeroedOutBuffer = 5 };
inline constexpr int kSystemThreadIds = 1;
inline constexpr uint32_t kFlushForced = 1;
// Before this version (CUDA 12.9) a refused buffer could crash the library.
inline constexpr uint32_t kFirstVersionThatTakesNoBuffer = 27;

}  // namespace strobe::gpu::cupti
