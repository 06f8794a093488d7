#include "gpu/decode.h"

#include <algorithm>
#include <cstring>

#include "gpu/cupti_abi.h"

namespace strobe::gpu {
namespace {

constexpr size_t kLongestText = 64 << 10;

// Sizes in records are signed or not; what cannot be is 0.
uint32_t size_of(int32_t value) {
  return value > 0 ? static_cast<uint32_t>(value) : 0;
}

}  // namespace

std::string_view text_in_memory(uint64_t address) {
  const auto* text = reinterpret_cast<const char*>(address);
  return {text, ::strnlen(text, kLongestText)};
}

uint64_t DecodeFaults::total() const {
  uint64_t sum = short_records + broken_buffers;
  for (const auto& [kind, count] : unknown_kinds) sum += count;
  return sum;
}

template <typename Raw>
bool ActivityDecoder::read(std::span<const std::byte> bytes, size_t shortest, Raw& raw) {
  if (bytes.size() < shortest) {
    ++faults_.short_records;
    return false;
  }
  raw = Raw{};
  std::memcpy(static_cast<void*>(&raw), bytes.data(), std::min(bytes.size(), sizeof raw));
  return true;
}

TextId ActivityDecoder::text(uint64_t address) {
  return address == 0 ? TextId{} : sources_.intern(sources_.text_at(address));
}

bool ActivityDecoder::decode(std::span<const std::byte> bytes, Record& record) {
  uint32_t kind = 0;
  if (bytes.size() < sizeof kind) {
    ++faults_.short_records;
    return false;
  }
  std::memcpy(&kind, bytes.data(), sizeof kind);
  switch (kind) {
    case cupti::kConcurrentKernel: {
      cupti::KernelRecord raw;
      if (!read(bytes, offsetof(cupti::KernelRecord, cluster), raw)) return false;
      Kernel kernel;
      kernel.start = {raw.start}, kernel.end = {raw.end};
      kernel.queued = {raw.queued}, kernel.submitted = {raw.submitted};
      kernel.place = {raw.device, raw.context, raw.stream};
      kernel.correlation = raw.correlation;
      kernel.name = text(raw.name);
      for (size_t axis = 0; axis < 3; ++axis) {
        kernel.grid[axis] = size_of(raw.grid[axis]);
        kernel.block[axis] = size_of(raw.block[axis]);
        kernel.cluster[axis] = raw.cluster[axis];
      }
      kernel.registers = raw.registers_per_thread;
      kernel.static_shared = raw.static_shared, kernel.dynamic_shared = raw.dynamic_shared;
      kernel.local_bytes = raw.local_total_v2 != 0 ? raw.local_total_v2 : raw.local_total;
      kernel.shared_executed = raw.shared_executed;
      kernel.graph_node = raw.graph_node, kernel.graph = raw.graph;
      kernel.launch_type = raw.launch_type;
      record = kernel;
      return true;
    }
    case cupti::kMemcpy: {
      cupti::MemcpyRecord raw;
      if (!read(bytes, offsetof(cupti::MemcpyRecord, graph), raw)) return false;
      Copy copy;
      copy.start = {raw.start}, copy.end = {raw.end};
      copy.place = {raw.device, raw.context, raw.stream};
      copy.correlation = raw.correlation;
      copy.copy_kind = raw.copy_kind, copy.source_kind = raw.source_kind, copy.target_kind = raw.target_kind;
      copy.is_async = raw.flags & 1U;
      copy.bytes = raw.bytes, copy.graph_node = raw.graph_node;
      copy.count = std::max<uint64_t>(1, raw.copy_count);
      record = copy;
      return true;
    }
    case cupti::kMemcpy2: {
      cupti::MemcpyPeerRecord raw;
      if (!read(bytes, offsetof(cupti::MemcpyPeerRecord, graph), raw)) return false;
      Copy copy;
      copy.start = {raw.start}, copy.end = {raw.end};
      copy.place = {raw.device, raw.context, raw.stream};
      copy.correlation = raw.correlation;
      copy.copy_kind = raw.copy_kind, copy.source_kind = raw.source_kind, copy.target_kind = raw.target_kind;
      copy.is_async = raw.flags & 1U;
      copy.bytes = raw.bytes, copy.graph_node = raw.graph_node;
      copy.source_device = raw.source_device, copy.target_device = raw.target_device;
      record = copy;
      return true;
    }
    case cupti::kMemset: {
      cupti::MemsetRecord raw;
      if (!read(bytes, offsetof(cupti::MemsetRecord, graph), raw)) return false;
      record = Set{{raw.start},     {raw.end}, {raw.device, raw.context, raw.stream},
                   raw.correlation, raw.value, raw.memory_kind,
                   raw.flags & 1U,  raw.bytes, raw.graph_node};
      return true;
    }
    case cupti::kRuntime:
    case cupti::kDriver: {
      cupti::ApiRecord raw;
      if (!read(bytes, sizeof raw, raw)) return false;
      record = Call{{raw.start},     {raw.end},       kind == cupti::kDriver ? 1U : 0U,
                    raw.function,    raw.process,     raw.thread,
                    raw.correlation, raw.return_value};
      return true;
    }
    case cupti::kSynchronization: {
      cupti::SynchronizationRecord raw;
      if (!read(bytes, offsetof(cupti::SynchronizationRecord, event_sync), raw)) return false;
      record = Sync{{raw.start}, {raw.end},       size_of(raw.type), raw.context,
                    raw.stream,  raw.correlation, raw.event,         raw.event_sync};
      return true;
    }
    case cupti::kCudaEvent: {
      cupti::CudaEventRecord raw;
      if (!read(bytes, offsetof(cupti::CudaEventRecord, device), raw)) return false;
      const bool has_device = bytes.size() > offsetof(cupti::CudaEventRecord, device);
      record = EventRecorded{{has_device ? raw.device : kNoNumber, raw.context, raw.stream},
                             raw.correlation,
                             raw.event,
                             raw.event_sync,
                             {raw.device_time}};
      return true;
    }
    case cupti::kOverhead: {
      cupti::OverheadRecord raw;
      if (!read(bytes, offsetof(cupti::OverheadRecord, correlation), raw)) return false;
      const bool of_thread = raw.object_kind == cupti::kObjectProcess || raw.object_kind == cupti::kObjectThread;
      record = Overhead{{raw.start},
                        {raw.end},
                        static_cast<uint32_t>(raw.overhead_kind),
                        of_thread ? raw.object.of_thread.process : 0,
                        raw.object_kind == cupti::kObjectThread ? raw.object.of_thread.thread : 0,
                        raw.correlation};
      return true;
    }
    case cupti::kExternalCorrelation: {
      cupti::ExternalCorrelationRecord raw;
      if (!read(bytes, sizeof raw, raw)) return false;
      record = External{static_cast<uint32_t>(raw.external_kind), raw.correlation, raw.external};
      return true;
    }
    case cupti::kMarker: {
      cupti::MarkerRecord raw;
      if (!read(bytes, offsetof(cupti::MarkerRecord, domain), raw)) return false;
      const bool of_thread = raw.object_kind == cupti::kObjectThread;
      record = Marker{{raw.time},
                      raw.flags,
                      raw.id,
                      of_thread ? raw.object.of_thread.process : 0,
                      of_thread ? raw.object.of_thread.thread : 0,
                      text(raw.name),
                      text(raw.domain)};
      return true;
    }
    case cupti::kDevice: {
      cupti::DeviceRecord raw;
      if (!read(bytes, offsetof(cupti::DeviceRecord, is_visible), raw)) return false;
      Device device;
      device.id = raw.id;
      device.name = text(raw.name);
      std::memcpy(device.uuid.data(), raw.uuid, sizeof raw.uuid);
      device.memory_bytes = raw.memory_bytes, device.memory_kb_per_s = raw.memory_bandwidth;
      device.l2_bytes = raw.l2_bytes, device.clock_khz = raw.core_clock;
      device.multiprocessors = raw.multiprocessors, device.copy_engines = raw.copy_engines;
      device.threads_per_warp = raw.threads_per_warp, device.warps_per_sm = raw.warps_per_sm;
      device.blocks_per_sm = raw.blocks_per_sm, device.shared_per_sm = raw.shared_per_sm;
      device.registers_per_sm = raw.registers_per_sm;
      device.compute_major = raw.compute_major, device.compute_minor = raw.compute_minor;
      device.is_mig = raw.is_mig, device.gpu_instance = raw.gpu_instance;
      device.compute_instance = raw.compute_instance;
      record = device;
      return true;
    }
    case cupti::kContext: {
      cupti::ContextRecord raw;
      if (!read(bytes, offsetof(cupti::ContextRecord, parent), raw)) return false;
      record = Context{raw.context, raw.device, raw.null_stream, raw.parent, raw.is_green, raw.multiprocessors};
      return true;
    }
    case cupti::kStream: {
      cupti::StreamRecord raw;
      if (!read(bytes, sizeof raw, raw)) return false;
      record = Stream{raw.context, raw.stream, static_cast<int32_t>(raw.priority), static_cast<uint32_t>(raw.flag)};
      return true;
    }
    case cupti::kName: {
      cupti::NameRecord raw;
      if (!read(bytes, sizeof raw, raw)) return false;
      ObjectName name;
      name.object = size_of(raw.object_kind);
      if (raw.object_kind == cupti::kObjectProcess || raw.object_kind == cupti::kObjectThread) {
        name.process = raw.object.of_thread.process;
        name.thread = raw.object_kind == cupti::kObjectThread ? raw.object.of_thread.thread : 0;
      } else {
        name.place = {raw.object.of_stream.device, raw.object.of_stream.context, raw.object.of_stream.stream};
      }
      name.name = text(raw.name);
      record = name;
      return true;
    }
    case cupti::kGraphTrace: {
      cupti::GraphTraceRecord raw;
      if (!read(bytes, offsetof(cupti::GraphTraceRecord, reserved), raw)) return false;
      record = GraphLaunch{{raw.start}, {raw.end}, {raw.device, raw.context, raw.stream}, raw.correlation, raw.graph};
      return true;
    }
    case cupti::kMemory2: {
      cupti::MemoryRecord raw;
      if (!read(bytes, offsetof(cupti::MemoryRecord, pool), raw)) return false;
      record = Memory{{raw.time},
                      raw.operation == 2 ? 1U : 0U,
                      size_of(raw.memory_kind),
                      raw.correlation,
                      raw.process,
                      raw.device,
                      raw.context,
                      raw.stream,
                      raw.is_async,
                      raw.address,
                      raw.bytes,
                      raw.pool.size,
                      raw.pool.utilized};
      return true;
    }
    case cupti::kMemoryPool: {
      cupti::MemoryPoolRecord raw;
      if (!read(bytes, offsetof(cupti::MemoryPoolRecord, utilized), raw)) return false;
      record = MemoryPool{{raw.time}, size_of(raw.operation), raw.device, raw.address, raw.size, raw.utilized};
      return true;
    }
    case cupti::kEnvironment: {
      cupti::EnvironmentRecord raw;
      if (!read(bytes, offsetof(cupti::EnvironmentRecord, values) + sizeof(uint32_t), raw)) return false;
      Environment environment{{raw.time}, raw.device, size_of(raw.environment_kind), {}};
      for (size_t i = 0; i < environment.values.size(); ++i) environment.values[i] = raw.values[i];
      record = environment;
      return true;
    }
    default:
      ++faults_.unknown_kinds[kind];
      return false;
  }
}

bool walk_records(std::span<const std::byte> buffer, const std::function<bool(const std::byte*& record)>& next,
                  const std::function<void(std::span<const std::byte> record)>& each) {
  constexpr size_t kSmallest = 8;  // records are aligned to 8 bytes
  const std::byte* const end = buffer.data() + buffer.size();
  const std::byte* at = nullptr;
  const std::byte* record = nullptr;
  while (next(record)) {
    const auto address = reinterpret_cast<uintptr_t>(record);
    const auto low = reinterpret_cast<uintptr_t>(at == nullptr ? buffer.data() : at + kSmallest);
    if (address < low || address + kSmallest > reinterpret_cast<uintptr_t>(end)) return false;
    if (at != nullptr) each({at, record});
    at = record;
  }
  if (at != nullptr) each({at, end});
  return true;
}

}  // namespace strobe::gpu
