#include "trace/nsys_schema.h"

#include <string_view>

namespace strobe::trace::nsys {

namespace {

// Of an operation of a device: its range, its lane, what is known beyond. The columns that all of them begin with.
#define STROBE_FROM_DEVICE \
  " FROM STROBE_RANGE r JOIN STROBE_LANE l ON l.id = r.laneId LEFT JOIN STROBE_DEVICE_OP d ON d.rangeId = r.id "
#define STROBE_FROM_MARK " FROM STROBE_MARK m JOIN STROBE_LANE l ON l.id = m.laneId "
// The nine columns of payload at the end of NVTX_EVENTS.
#define STROBE_NO_PAYLOAD ", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL"
#define STROBE_FROM_THREAD " FROM STROBE_RANGE r JOIN STROBE_LANE l ON l.id = r.laneId "
// A stream of every kind of number: -1, "none", is 4294967295 in an export.
#define STROBE_DEVICE_HEAD                                                                    \
  "r.start, r.end, COALESCE(l.device, 0), COALESCE(l.context, 0), NULL, l.tid & 4294967295, " \
  "d.correlation, l.globalPid"
#define STROBE_DEVICE_COLUMNS                                                                              \
  "start INTEGER NOT NULL, end INTEGER NOT NULL, deviceId INTEGER NOT NULL, "                              \
  "contextId INTEGER NOT NULL, greenContextId INTEGER, streamId INTEGER NOT NULL, correlationId INTEGER, " \
  "globalPid INTEGER, "
#define STROBE_FACT_OF_GPU(key) "(SELECT value FROM STROBE_FACT WHERE name = 'gpu.' || g.id || '." key "')"
#define STROBE_NUMBER_OF_GPU(key) "CAST(" STROBE_FACT_OF_GPU(key) " AS INTEGER)"

constexpr TableDefinition kDerived[] =
    {
        {"NVTX_EVENTS",
         "start INTEGER NOT NULL, end INTEGER, eventType INTEGER NOT NULL, rangeId INTEGER, category INTEGER, "
         "color INTEGER, text TEXT, globalTid INTEGER, endGlobalTid INTEGER, textId INTEGER, domainId INTEGER, "
         "uint64Value INTEGER, int64Value INTEGER, doubleValue REAL, uint32Value INTEGER, int32Value INTEGER, "
         "floatValue REAL, jsonTextId INTEGER, jsonText TEXT, binaryData TEXT",
         // Names stand for the numbers of domains and categories: the default domain is 0. Domains and categories have
         // rows of their own, once a process.
         "SELECT r.start, CASE r.open WHEN 0 THEN r.end END, CASE r.isAsync WHEN 0 THEN 59 ELSE 60 END, NULL, "
         "c.categoryId, NULL, NULL, l.globalTid, CASE r.isAsync WHEN 0 THEN NULL ELSE l.globalTid END, r.nameId, "
         "COALESCE(c.domainId, 0)" STROBE_NO_PAYLOAD STROBE_FROM_THREAD
         "LEFT JOIN STROBE_RANGE_CATEGORY c ON c.rangeId = r.id WHERE r.kind IN (0, 1) AND l.kind = 0 UNION ALL "
         "SELECT m.time, NULL, 34, NULL, c.categoryId, NULL, NULL, l.globalTid, NULL, m.nameId, "
         "COALESCE(c.domainId, 0)" STROBE_NO_PAYLOAD STROBE_FROM_MARK
         "LEFT JOIN STROBE_MARK_CATEGORY c ON c.markId = m.id UNION ALL "
         "SELECT 0, NULL, 75, NULL, NULL, NULL, s.value, d.globalPid, NULL, NULL, d.domainId" STROBE_NO_PAYLOAD
         " FROM (SELECT l.globalPid, c.domainId FROM STROBE_RANGE_CATEGORY c JOIN STROBE_RANGE r ON r.id = c.rangeId "
         "JOIN STROBE_LANE l ON l.id = r.laneId WHERE r.kind IN (0, 1) AND l.kind = 0 UNION "
         "SELECT l.globalPid, c.domainId FROM STROBE_MARK_CATEGORY c JOIN STROBE_MARK m ON m.id = c.markId "
         "JOIN STROBE_LANE l ON l.id = m.laneId) d JOIN StringIds s ON s.id = d.domainId UNION ALL "
         "SELECT 0, NULL, 33, NULL, d.categoryId, NULL, s.value, d.globalPid, NULL, NULL, "
         "COALESCE(d.domainId, 0)" STROBE_NO_PAYLOAD
         " FROM (SELECT l.globalPid, c.domainId, c.categoryId FROM STROBE_RANGE_CATEGORY c "
         "JOIN STROBE_RANGE r ON r.id = c.rangeId JOIN STROBE_LANE l ON l.id = r.laneId "
         "WHERE r.kind IN (0, 1) AND l.kind = 0 UNION SELECT l.globalPid, c.domainId, c.categoryId "
         "FROM STROBE_MARK_CATEGORY c JOIN STROBE_MARK m ON m.id = c.markId JOIN STROBE_LANE l ON l.id = m.laneId) d "
         "JOIN StringIds s ON s.id = d.categoryId"},
        {"CUPTI_ACTIVITY_KIND_RUNTIME",
         "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, "
         "correlationId INTEGER, nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, callchainId INTEGER",
         "SELECT r.start, r.end, s.value GLOB 'cu[A-Z]*', l.globalTid, a.correlation, r.nameId, 0, "
         "NULL" STROBE_FROM_THREAD
         "JOIN StringIds s ON s.id = r.nameId LEFT JOIN STROBE_API_CALL a ON a.rangeId = r.id WHERE r.kind = 2"},
        {"OSRT_API",
         "start INTEGER NOT NULL, end INTEGER NOT NULL, eventClass INTEGER NOT NULL, globalTid INTEGER, "
         "nameId INTEGER NOT NULL, returnValue INTEGER NOT NULL, nestingLevel INTEGER, callchainId INTEGER NOT NULL, "
         "argumentsId INTEGER NOT NULL",
         "SELECT r.start, r.end, 27, l.globalTid, r.nameId, 0, NULL, 0, 0" STROBE_FROM_THREAD "WHERE r.kind = 3"},
        {"PROFILER_OVERHEAD",
         "start INTEGER NOT NULL, end INTEGER NOT NULL, globalTid INTEGER, nameId INTEGER NOT NULL, "
         "overheadType INTEGER NOT NULL",
         "SELECT r.start, r.end, l.globalTid, r.nameId, 0" STROBE_FROM_THREAD "WHERE r.kind = 4"},
        {"CUPTI_ACTIVITY_KIND_KERNEL",
         STROBE_DEVICE_COLUMNS
         "demangledName INTEGER NOT NULL, shortName INTEGER NOT NULL, mangledName INTEGER, launchType INTEGER, "
         "cacheConfig INTEGER, registersPerThread INTEGER NOT NULL, gridX INTEGER NOT NULL, gridY INTEGER NOT NULL, "
         "gridZ INTEGER NOT NULL, blockX INTEGER NOT NULL, blockY INTEGER NOT NULL, blockZ INTEGER NOT NULL, "
         "staticSharedMemory INTEGER NOT NULL, dynamicSharedMemory INTEGER NOT NULL, "
         "localMemoryPerThread INTEGER NOT NULL, localMemoryTotal INTEGER NOT NULL, gridId INTEGER NOT NULL, "
         "sharedMemoryExecuted INTEGER, graphNodeId INTEGER, sharedMemoryLimitConfig INTEGER, qmdBulkReleaseDone "
         "INTEGER, "
         "qmdPreexitDone INTEGER, qmdLastCtaDone INTEGER, graphId INTEGER, clusterX INTEGER, clusterY INTEGER, "
         "clusterZ INTEGER, clusterSchedulingPolicy INTEGER, maxPotentialClusterSize INTEGER, maxActiveClusters "
         "INTEGER, "
         "sharedMemoryRequestedPercentage INTEGER, tensorSizeMinusOneElements TEXT NOT NULL",
         "SELECT " STROBE_DEVICE_HEAD
         ", r.nameId, r.nameId, NULL, 0, NULL, COALESCE(d.registers, 0), COALESCE(d.gridX, 0), COALESCE(d.gridY, 0), "
         "COALESCE(d.gridZ, 0), COALESCE(d.blockX, 0), COALESCE(d.blockY, 0), COALESCE(d.blockZ, 0), "
         "COALESCE(d.staticShared, 0), COALESCE(d.dynamicShared, 0), 0, 0, r.id, NULL, NULL, NULL, NULL, NULL, NULL, "
         "NULL, "
         "NULL, NULL, NULL, NULL, NULL, NULL, NULL, ''" STROBE_FROM_DEVICE "WHERE r.kind = 5"},
        {"CUPTI_ACTIVITY_KIND_MEMCPY",
         STROBE_DEVICE_COLUMNS "bytes INTEGER NOT NULL, copyKind INTEGER NOT NULL, deprecatedSrcId INTEGER, srcKind "
                               "INTEGER, dstKind INTEGER, "
                               "srcDeviceId INTEGER, srcContextId INTEGER, dstDeviceId INTEGER, dstContextId INTEGER, "
                               "migrationCause INTEGER, "
                               "graphNodeId INTEGER, virtualAddress INTEGER, copyCount INTEGER",
         "SELECT " STROBE_DEVICE_HEAD ", COALESCE(d.bytes, 0), COALESCE(d.copyKind, 0), NULL, d.sourceKind, "
         "d.targetKind, NULL, NULL, NULL, NULL, NULL, "
         "NULL, NULL, NULL" STROBE_FROM_DEVICE "WHERE r.kind = 6"},
        {"CUPTI_ACTIVITY_KIND_MEMSET",
         STROBE_DEVICE_COLUMNS "value INTEGER NOT NULL, bytes INTEGER NOT NULL, graphNodeId INTEGER, memKind INTEGER",
         "SELECT " STROBE_DEVICE_HEAD ", 0, COALESCE(d.bytes, 0), NULL, d.targetKind" STROBE_FROM_DEVICE
         "WHERE r.kind = 7"},
        {"CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
         STROBE_DEVICE_COLUMNS
         "deprecatedSyncType INTEGER, syncType INTEGER NOT NULL, eventId INTEGER NOT NULL, eventSyncId INTEGER",
         "SELECT " STROBE_DEVICE_HEAD ", NULL, COALESCE(d.syncType, 0), COALESCE(d.syncCorrelation, 4294967295), "
         "d.syncCorrelation" STROBE_FROM_DEVICE "WHERE r.kind = 8"},
        // What a wait waits for: the numbers of the call that recorded the event stand for the event.
        {"CUPTI_ACTIVITY_KIND_CUDA_EVENT",
         "timestamp INTEGER, deviceId INTEGER NOT NULL, contextId INTEGER NOT NULL, greenContextId INTEGER, "
         "streamId INTEGER NOT NULL, correlationId INTEGER, globalPid INTEGER, eventId INTEGER NOT NULL, "
         "eventSyncId INTEGER",
         "SELECT DISTINCT 0, COALESCE(l.device, 0), COALESCE(l.context, 0), NULL, COALESCE(d.syncStream, -1) & "
         "4294967295, "
         "d.syncCorrelation, l.globalPid, d.syncCorrelation, d.syncCorrelation FROM STROBE_DEVICE_OP d "
         "JOIN STROBE_RANGE r ON r.id = d.rangeId JOIN STROBE_LANE l ON l.id = r.laneId "
         "WHERE r.kind = 8 AND d.syncCorrelation IS NOT NULL"},
        {"CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
         STROBE_DEVICE_COLUMNS "graphId INTEGER NOT NULL, graphExecId INTEGER NOT NULL",
         "SELECT " STROBE_DEVICE_HEAD
         ", CASE WHEN s.value GLOB 'CUDA graph [0-9]*' THEN CAST(substr(s.value, 12) AS INTEGER) ELSE r.nameId END, "
         "r.nameId" STROBE_FROM_DEVICE "JOIN StringIds s ON s.id = r.nameId WHERE r.kind = 9"},
        {"PROCESSES", "globalPid INTEGER, pid INTEGER, name TEXT",
         "SELECT 281474976710656 | ((p.pid & 16777215) << 24), p.pid, s.value FROM STROBE_PROCESS p "
         "JOIN StringIds s ON s.id = p.nameId"},
        {"ThreadNames", "nameId INTEGER NOT NULL, priority INTEGER, globalTid INTEGER",
         "SELECT l.nameId, NULL, l.globalTid FROM STROBE_LANE l WHERE l.kind = 0 AND l.nameId <> 0"},
        {"TARGET_INFO_CUDA_STREAM",
         "streamId INTEGER NOT NULL, hwId INTEGER NOT NULL, vmId INTEGER NOT NULL, processId INTEGER NOT NULL, "
         "contextId INTEGER NOT NULL, priority INTEGER NOT NULL, flag INTEGER NOT NULL",
         "SELECT l.tid & 4294967295, 0, 1, l.pid, COALESCE(l.context, 0), 0, 0 FROM STROBE_LANE l WHERE l.kind = 1"},
        // "gpu.of.PID.DEVICE" says which GPU a process sees as its device.
        {"TARGET_INFO_CUDA_DEVICE", "gpuId INTEGER, cudaId INTEGER NOT NULL, pid INTEGER NOT NULL",
         "SELECT CAST(f.value AS INTEGER), CAST(substr(f.name, 8 + instr(substr(f.name, 8), '.')) AS INTEGER), "
         "CAST(substr(f.name, 8) AS INTEGER) FROM STROBE_FACT f WHERE f.name GLOB 'gpu.of.[0-9]*.[0-9]*'"},
        {"TARGET_INFO_GPU",
         "vmId INTEGER NOT NULL, id INTEGER NOT NULL, name TEXT, busLocation TEXT, isDiscrete INTEGER, "
         "l2CacheSize INTEGER, totalMemory INTEGER, memoryBandwidth INTEGER, clockRate INTEGER, smCount INTEGER, "
         "pwGpuId INTEGER, uuid TEXT, luid INTEGER, chipName TEXT, cuDevice INTEGER, ctxswDevPath TEXT, ctrlDevPath "
         "TEXT, "
         "revision INTEGER, nodeMask INTEGER, constantMemory INTEGER, maxIPC INTEGER, maxRegistersPerBlock INTEGER, "
         "maxShmemPerBlock INTEGER, maxShmemPerBlockOptin INTEGER, maxShmemPerSm INTEGER, maxRegistersPerSm INTEGER, "
         "threadsPerWarp INTEGER, asyncEngines INTEGER, maxWarpsPerSm INTEGER, maxBlocksPerSm INTEGER, "
         "maxThreadsPerBlock INTEGER, maxBlockDimX INTEGER, maxBlockDimY INTEGER, maxBlockDimZ INTEGER, "
         "maxGridDimX INTEGER, maxGridDimY INTEGER, maxGridDimZ INTEGER, computeMajor INTEGER, computeMinor INTEGER, "
         "smMajor INTEGER, smMinor INTEGER",
         "SELECT 281474976710656, g.id, " STROBE_FACT_OF_GPU("name") ", NULL, NULL, " STROBE_NUMBER_OF_GPU("l2_bytes") ", " STROBE_NUMBER_OF_GPU("memory_bytes") ", " STROBE_NUMBER_OF_GPU("memory_bytes_per_s") ", " STROBE_NUMBER_OF_GPU("clock_hz") ", " STROBE_NUMBER_OF_GPU("sm_count") ", NULL, NULL, NULL, " STROBE_FACT_OF_GPU("chip") ", NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, " STROBE_NUMBER_OF_GPU("shared_bytes_per_sm") ", " STROBE_NUMBER_OF_GPU(
             "registers_per_sm") ", " STROBE_NUMBER_OF_GPU("threads_per_warp") ", " STROBE_NUMBER_OF_GPU("copy_engines") ", " STROBE_NUMBER_OF_GPU("warps_per_sm") ", " STROBE_NUMBER_OF_GPU("blocks_per_sm") ", "
                                                                                                                                                                                                              "NULL, NULL, NULL, NULL, NULL, NULL, NULL, " STROBE_NUMBER_OF_GPU(
                                                                                                                                                                                                                  "compute_major") ", " STROBE_NUMBER_OF_GPU("compute_minor") ", NULL, NULL "
                                                                                                                                                                                                                                                                              "FROM (SELECT CAST(substr(name, 5) AS INTEGER) AS id FROM STROBE_FACT WHERE name GLOB 'gpu.[0-9]*.name') g"},
};

#undef STROBE_FROM_DEVICE
#undef STROBE_FROM_THREAD
#undef STROBE_FROM_MARK
#undef STROBE_NO_PAYLOAD
#undef STROBE_DEVICE_HEAD
#undef STROBE_DEVICE_COLUMNS
#undef STROBE_FACT_OF_GPU
#undef STROBE_NUMBER_OF_GPU

// "start INTEGER NOT NULL, end INTEGER" -> "start, end"
std::string names_of(std::string_view columns) {
  std::string names;
  while (!columns.empty()) {
    const size_t end = columns.find(',');
    const std::string_view column = columns.substr(0, end);
    const size_t begin = column.find_first_not_of(' ');
    if (!names.empty()) names += ", ";
    names += column.substr(begin, column.find(' ', begin) - begin);
    columns = end == std::string_view::npos ? std::string_view() : columns.substr(end + 1);
  }
  return names;
}

}  // namespace

std::span<const TableDefinition> derived_tables() {
  return kDerived;
}

std::string view_of(const TableDefinition& table) {
  return std::string("CREATE VIEW ") + table.name + " (" + names_of(table.columns) + ") AS " + table.select + ";";
}

std::string table_of(const TableDefinition& table) {
  return std::string("CREATE TABLE ") + table.name + " (" + table.columns + ");";
}

const char* const kCommonTables = R"(
CREATE TABLE META_DATA_EXPORT (name TEXT NOT NULL, value TEXT);
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER, utcTime TEXT, localTime TEXT, systemClockNs INTEGER);
CREATE TABLE ANALYSIS_DETAILS (globalVid INTEGER NOT NULL, duration INTEGER NOT NULL, startTime INTEGER NOT NULL,
  stopTime INTEGER NOT NULL);
CREATE TABLE DIAGNOSTIC_EVENT (timestamp INTEGER NOT NULL, timestampType INTEGER NOT NULL, source INTEGER NOT NULL,
  severity INTEGER NOT NULL, text TEXT NOT NULL, globalPid INTEGER);
CREATE TABLE ENUM_NSYS_EVENT_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_NSYS_EVENT_CLASS (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_DIAGNOSTIC_SEVERITY_LEVEL (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_DIAGNOSTIC_SOURCE_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_MEMCPY_OPER (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_MEM_KIND (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUDA_KERNEL_LAUNCH_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUPTI_SYNC_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUPTI_OVERHEAD_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
CREATE TABLE ENUM_CUPTI_STREAM_TYPE (id INTEGER NOT NULL PRIMARY KEY, name TEXT, label TEXT);
INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES (33, 'NvtxCategory', 'NvtxCategory'),
  (34, 'NvtxMark', 'NvtxMark'), (75, 'NvtxDomainCreate', 'NvtxDomainCreate'), (59, 'NvtxPushPopRange', 'NvtxPushPopRange'),
  (60, 'NvtxStartEndRange', 'NvtxStartEndRange');
INSERT INTO ENUM_NSYS_EVENT_CLASS VALUES (0, 'TRACE_PROCESS_EVENT_CUDA_RUNTIME', 'CUDA runtime'),
  (1, 'TRACE_PROCESS_EVENT_CUDA_DRIVER', 'CUDA driver'), (27, 'TRACE_PROCESS_EVENT_OS_RUNTIME', 'OSRT runtime');
INSERT INTO ENUM_DIAGNOSTIC_SEVERITY_LEVEL VALUES (1, 'Info', 'Info'), (2, 'Warning', 'Warning'), (3, 'Error', 'Error');
INSERT INTO ENUM_DIAGNOSTIC_SOURCE_TYPE VALUES (1, 'Injection', 'Injection'), (3, 'Analysis', 'Analysis');
INSERT INTO ENUM_DIAGNOSTIC_TIMESTAMP_SOURCE VALUES (1, 'TargetTimestamp', 'Target timestamp');
INSERT INTO ENUM_CUDA_MEMCPY_OPER VALUES (0, 'CUDA_MEMCPY_KIND_UNKNOWN', 'Unknown'),
  (1, 'CUDA_MEMCPY_KIND_HTOD', 'Host-to-Device'), (2, 'CUDA_MEMCPY_KIND_DTOH', 'Device-to-Host'),
  (3, 'CUDA_MEMCPY_KIND_HTOA', 'Host-to-Array'), (4, 'CUDA_MEMCPY_KIND_ATOH', 'Array-to-Host'),
  (5, 'CUDA_MEMCPY_KIND_ATOA', 'Array-to-Array'), (6, 'CUDA_MEMCPY_KIND_ATOD', 'Array-to-Device'),
  (7, 'CUDA_MEMCPY_KIND_DTOA', 'Device-to-Array'), (8, 'CUDA_MEMCPY_KIND_DTOD', 'Device-to-Device'),
  (9, 'CUDA_MEMCPY_KIND_HTOH', 'Host-to-Host'), (10, 'CUDA_MEMCPY_KIND_PTOP', 'Peer-to-Peer'),
  (11, 'CUDA_MEMCPY_KIND_UVM_HTOD', 'Unified Host-to-Device'),
  (12, 'CUDA_MEMCPY_KIND_UVM_DTOH', 'Unified Device-to-Host'),
  (13, 'CUDA_MEMCPY_KIND_UVM_DTOD', 'Unified Device-to-Device');
INSERT INTO ENUM_CUDA_MEM_KIND VALUES (0, 'CUDA_MEMOPR_MEMORY_KIND_PAGEABLE', 'Pageable'),
  (1, 'CUDA_MEMOPR_MEMORY_KIND_PINNED', 'Pinned'), (2, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE', 'Device'),
  (3, 'CUDA_MEMOPR_MEMORY_KIND_ARRAY', 'Array'), (4, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED', 'Managed'),
  (5, 'CUDA_MEMOPR_MEMORY_KIND_DEVICE_STATIC', 'Device Static'),
  (6, 'CUDA_MEMOPR_MEMORY_KIND_MANAGED_STATIC', 'Managed Static'),
  (7, 'CUDA_MEMOPR_MEMORY_KIND_UNKNOWN', 'Unknown');
INSERT INTO ENUM_CUDA_KERNEL_LAUNCH_TYPE VALUES (0, 'CUDA_KERNEL_LAUNCH_TYPE_UNKNOWN', 'Unknown');
INSERT INTO ENUM_CUPTI_SYNC_TYPE VALUES (0, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_UNKNOWN', 'Unknown'),
  (1, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_EVENT_SYNCHRONIZE', 'Event sync'),
  (2, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT', 'Stream wait sync'),
  (3, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE', 'Stream sync'),
  (4, 'CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_CONTEXT_SYNCHRONIZE', 'Context sync');
INSERT INTO ENUM_CUPTI_OVERHEAD_TYPE VALUES (0, 'OVERHEAD_UNDEFINED', 'Undefined');
INSERT INTO ENUM_CUPTI_STREAM_TYPE VALUES
  (0, 'CUPTI_ACTIVITY_STREAM_CREATE_FLAG_UNKNOWN', 'Unknown stream type');
)";

}  // namespace strobe::trace::nsys
