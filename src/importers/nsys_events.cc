#include "importers/nsys_events.h"

#include <algorithm>

namespace strobe::importers {

using trace::DeviceOp;
using trace::kNone;
using trace::RangeKind;
using trace::StringId;

namespace {

constexpr int64_t kFarthestTime = int64_t{1} << 60;
constexpr int64_t kNoNumber = 0xffffffff;  // what an export says for "none" where it demands a number

#define STROBE_DEVICE_COLUMNS "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"
constexpr int kAfterDevice = 7;

// Labels of ENUM_CUDA_MEMCPY_OPER and ENUM_CUPTI_SYNC_TYPE, the same in all versions of the schema.
constexpr const char* kCopies[] = {
    "Unknown",        "Host-to-Device",         "Device-to-Host",         "Host-to-Array",           "Array-to-Host",
    "Array-to-Array", "Array-to-Device",        "Device-to-Array",        "Device-to-Device",        "Host-to-Host",
    "Peer-to-Peer",   "Unified Host-to-Device", "Unified Device-to-Host", "Unified Device-to-Device"};
constexpr const char* kSyncs[] = {"Unknown sync", "Event sync", "Stream wait sync", "Stream sync", "Context sync"};

uint8_t small(int64_t value, uint8_t none) {
  return value >= 0 && value <= 255 ? static_cast<uint8_t>(value) : none;
}
uint32_t size(int64_t value) {
  return value >= 0 && value <= 0xffffffff ? static_cast<uint32_t>(value) : 0;
}
int32_t amount(int64_t value) {
  return value >= 0 && value <= INT32_MAX ? static_cast<int32_t>(value) : -1;
}
// Of a device, context or stream, all of which are 32 bits; -1 and 4294967295 are "none".
int32_t number(int64_t value) {
  return static_cast<int32_t>(static_cast<uint32_t>(value));
}

}  // namespace

const std::initializer_list<const char*> NsysEvents::kTables = {"NVTX_EVENTS",
                                                                "CUPTI_ACTIVITY_KIND_RUNTIME",
                                                                "CUDNN_EVENTS",
                                                                "CUBLAS_EVENTS",
                                                                "OSRT_API",
                                                                "PROFILER_OVERHEAD",
                                                                "CUPTI_ACTIVITY_KIND_OVERHEAD",
                                                                "CUPTI_ACTIVITY_KIND_KERNEL",
                                                                "CUPTI_ACTIVITY_KIND_MEMCPY",
                                                                "CUPTI_ACTIVITY_KIND_MEMSET",
                                                                "CUPTI_ACTIVITY_KIND_CUDA_EVENT",
                                                                "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
                                                                "CUPTI_ACTIVITY_KIND_GRAPH_TRACE"};

void NsysEvents::read() {
  read_nvtx_names();
  read_nvtx();
  read_calls("CUPTI_ACTIVITY_KIND_RUNTIME", RangeKind::kApi);
  read_calls("CUDNN_EVENTS", RangeKind::kOperator);
  read_calls("CUBLAS_EVENTS", RangeKind::kOperator);
  read_calls("OSRT_API", RangeKind::kOs);
  read_overhead("PROFILER_OVERHEAD");
  read_overhead("CUPTI_ACTIVITY_KIND_OVERHEAD");
  read_kernels();
  read_copies();
  read_sets();
  read_recorded_events();
  read_syncs();
  read_graphs();
}

bool NsysEvents::see(int64_t time_ns) {
  if (time_ns < -kFarthestTime || time_ns > kFarthestTime) return false;
  first_ns_ = std::min(first_ns_, time_ns);
  last_ns_ = std::max(last_ns_, time_ns);
  return true;
}

int32_t NsysEvents::add_range(RangeKind kind, StringId name, int32_t lane, const NsysRow& row, int start_column) {
  const int64_t start = row.integer(start_column);
  const bool open = row.is_null(start_column + 1);
  const int64_t end = open ? start : row.integer(start_column + 1);
  if (row.is_null(start_column) || !see(start) || !see(end)) {
    ++timeline_.losses.faults["event at a time that cannot be"];
    return kNone;
  }
  trace::Ranges& ranges = timeline_.ranges;
  ranges.start_ns.push_back(start);
  ranges.end_ns.push_back(end);
  ranges.name.push_back(name);
  ranges.lane.push_back(lane);
  ranges.frame.push_back(trace::kNoFrame);
  ranges.is_async.push_back(0);
  ranges.open.push_back(open ? 1 : 0);
  ranges.kind.push_back(kind);
  return static_cast<int32_t>(ranges.size() - 1);
}

void NsysEvents::add_argument(int32_t range, const char* key, Value value) {
  timeline_.arguments.range.push_back(range);
  timeline_.arguments.key.push_back(timeline_.strings.intern(key));
  timeline_.arguments.value.push_back(value);
}

int32_t NsysEvents::process_of(const NsysRow& row, int column) {
  return row.is_null(column) ? places_.only_process() : places_.process(row.integer(column));
}

void NsysEvents::read_calls(const char* table, RangeKind kind) {
  file_.each(table, {"start", "end", "globalTid", "nameId", "correlationId", "returnValue"}, [&](const NsysRow& row) {
    const int32_t lane = places_.thread(row.integer(2));
    const int32_t range = add_range(kind, places_.function(row.integer(3)), lane, row, 0);
    if (range == kNone || kind != RangeKind::kApi) return;
    timeline_.api_calls.push_back({range, row.integer(4)});
    if (row.integer(5) != 0) add_argument(range, "return_value", row.integer(5));
  });
}

// It may lie across calls and annotations of its thread without nesting in them.
void NsysEvents::read_overhead(const char* table) {
  file_.each(table, {"start", "end", "globalTid", "nameId"}, [&](const NsysRow& row) {
    const StringId name = row.is_null(3) ? timeline_.strings.intern("overhead") : places_.text(row.integer(3));
    const int32_t range = add_range(RangeKind::kOverhead, name, places_.thread(row.integer(2)), row, 0);
    if (range != kNone) timeline_.ranges.is_async.back() = 1;
  });
}

DeviceOp NsysEvents::add_op(RangeKind kind, StringId name, const NsysRow& row) {
  const int32_t device = number(row.integer(2, -1)), context = number(row.integer(3, -1));
  const int32_t lane = places_.stream(process_of(row, 6), device, context, number(row.integer(4, -1)));
  DeviceOp op;
  op.range = add_range(kind, name, lane, row, 0);
  op.correlation = row.integer(5);
  return op;
}

void NsysEvents::read_kernels() {
  file_.each("CUPTI_ACTIVITY_KIND_KERNEL",
             {STROBE_DEVICE_COLUMNS, "demangledName", "shortName", "registersPerThread", "staticSharedMemory",
              "dynamicSharedMemory", "gridX", "gridY", "gridZ", "blockX", "blockY", "blockZ"},
             [&](const NsysRow& row) {
               const int name = row.is_null(kAfterDevice) ? kAfterDevice + 1 : kAfterDevice;
               DeviceOp op = add_op(RangeKind::kKernel, places_.text(row.integer(name)), row);
               if (op.range == kNone) return;
               op.registers = amount(row.integer(kAfterDevice + 2, -1));
               op.static_shared = amount(row.integer(kAfterDevice + 3, -1));
               op.dynamic_shared = amount(row.integer(kAfterDevice + 4, -1));
               for (int axis = 0; axis < 3; ++axis) {
                 op.grid[axis] = size(row.integer(kAfterDevice + 5 + axis));
                 op.block[axis] = size(row.integer(kAfterDevice + 8 + axis));
               }
               timeline_.device_ops.push_back(op);
             });
}

void NsysEvents::read_copies() {
  file_.each("CUPTI_ACTIVITY_KIND_MEMCPY", {STROBE_DEVICE_COLUMNS, "bytes", "copyKind", "srcKind", "dstKind"},
             [&](const NsysRow& row) {
               const uint8_t kind = small(row.integer(kAfterDevice + 1), 0);
               const char* label = kCopies[kind < std::size(kCopies) ? kind : 0];
               // As the summaries of Nsight Systems name it.
               const StringId name = timeline_.strings.intern(std::string("[CUDA memcpy ") + label + "]");
               DeviceOp op = add_op(RangeKind::kCopy, name, row);
               if (op.range == kNone) return;
               op.bytes = row.integer(kAfterDevice, -1);
               op.copy_kind = kind;
               op.source_kind = small(row.integer(kAfterDevice + 2, 7), 7);
               op.target_kind = small(row.integer(kAfterDevice + 3, 7), 7);
               timeline_.device_ops.push_back(op);
             });
}

void NsysEvents::read_sets() {
  const StringId name = timeline_.strings.intern("[CUDA memset]");
  file_.each("CUPTI_ACTIVITY_KIND_MEMSET", {STROBE_DEVICE_COLUMNS, "bytes", "memKind"}, [&](const NsysRow& row) {
    DeviceOp op = add_op(RangeKind::kSet, name, row);
    if (op.range == kNone) return;
    op.bytes = row.integer(kAfterDevice, -1);
    op.target_kind = small(row.integer(kAfterDevice + 1, 7), 7);
    timeline_.device_ops.push_back(op);
  });
}

void NsysEvents::read_recorded_events() {
  file_.each("CUPTI_ACTIVITY_KIND_CUDA_EVENT", {"globalPid", "eventSyncId", "streamId", "correlationId"},
             [&](const NsysRow& row) {
               if (!row.is_null(1) && row.integer(1) != kNoNumber)
                 recorded_[{process_of(row, 0), row.integer(1)}] = {number(row.integer(2, -1)), row.integer(3)};
             });
}

// Handles of events are used again, so that only eventSyncId says which record a wait waits for.
void NsysEvents::read_syncs() {
  file_.each("CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
             {STROBE_DEVICE_COLUMNS, "syncType", "deprecatedSyncType", "eventSyncId"}, [&](const NsysRow& row) {
               const int column = row.is_null(kAfterDevice) ? kAfterDevice + 1 : kAfterDevice;
               const uint8_t type = small(row.integer(column), 0);
               const StringId name = timeline_.strings.intern(kSyncs[type < std::size(kSyncs) ? type : 0]);
               DeviceOp op = add_op(RangeKind::kSync, name, row);
               if (op.range == kNone) return;
               op.sync_type = type;
               const auto found = recorded_.find({process_of(row, 6), row.integer(kAfterDevice + 2, kNoNumber)});
               if (found != recorded_.end() && (type == 1 || type == 2)) {
                 op.sync_correlation = found->second.second;
                 if (type == 2) op.sync_stream = found->second.first;
               }
               timeline_.device_ops.push_back(op);
             });
}

void NsysEvents::read_graphs() {
  file_.each(
      "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", {STROBE_DEVICE_COLUMNS, "graphId", "graphExecId"}, [&](const NsysRow& row) {
        const StringId name = timeline_.strings.intern("CUDA graph " + std::to_string(row.integer(kAfterDevice)));
        const DeviceOp op = add_op(RangeKind::kGraph, name, row);
        if (op.range == kNone) return;
        if (!row.is_null(kAfterDevice + 1)) add_argument(op.range, "graph_exec", row.integer(kAfterDevice + 1));
        timeline_.device_ops.push_back(op);
      });
}

void NsysEvents::finish() {
  const int64_t first = first_ns();
  trace::Ranges& ranges = timeline_.ranges;
  for (size_t i = 0; i < ranges.size(); ++i) {
    ranges.start_ns[i] -= first;
    ranges.end_ns[i] = (ranges.open[i] ? last_ns_ : ranges.end_ns[i]) - first;
  }
  for (int64_t& time : timeline_.marks.time_ns) time -= first;
  timeline_.duration_ns = empty() ? 0 : last_ns_ - first;
}

}  // namespace strobe::importers
