#include "gpu/timeline/gpu_timeline.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "base/gpu_words.h"
#include "gpu/collector.h"
#include "gpu/log_file.h"
#include "gpu/nvml.h"
#include "gpu/timeline/log_timeline.h"
#include "gpu/timeline/replay_table.h"
#include "record/gpu_collection.h"

namespace strobe::gpu {
namespace {

namespace fs = std::filesystem;
using Facts = std::map<std::string, std::string>;
using record::kClockAfterKey;
using record::kClockKey;

// Each mark lies between a reading before it, which it carries itself, and one after it, which the next one of its
// thread carries: the tightest bounds of all, and of them the middle.
std::optional<int64_t> zero_of_marks(const trace::Timeline& timeline) {
  std::optional<int64_t> least, most;
  std::map<int32_t, int64_t> last;  // by lane: time of the last mark of a clock
  const trace::MarkArguments& arguments = timeline.mark_arguments;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const auto key = timeline.strings[arguments.key[i]];
    const auto* value = std::get_if<int64_t>(&arguments.value[i]);
    const auto mark = static_cast<size_t>(arguments.mark[i]);
    if (value == nullptr || (key != kClockKey && key != kClockAfterKey)) continue;
    int64_t difference = 0;
    if (key == kClockKey) {
      if (__builtin_sub_overflow(*value, timeline.marks.time_ns[mark], &difference)) continue;
      least = least ? std::max(*least, difference) : difference;
    } else {
      const auto before = last.find(timeline.marks.lane[mark]);
      if (before != last.end() && !__builtin_sub_overflow(*value, before->second, &difference))
        most = most ? std::min(*most, difference) : difference;
      last[timeline.marks.lane[mark]] = timeline.marks.time_ns[mark];
    }
  }
  if (!least || !most || *most < *least) return least;
  return *least + (*most - *least) / 2;
}

// Without such a mark: over the wall clock.
int64_t zero_of_wall_clock(const trace::Timeline& timeline, const LogIndex& index) {
  if (index.clocks.empty()) return 0;
  const ClockPair& pair = index.clocks.front();
  if (timeline.utc_start_ns == 0) return pair.monotonic_ns;
  return timeline.utc_start_ns - (pair.realtime_ns - pair.monotonic_ns);
}

void add_device_facts(const LogIndex& index, Places& places, int32_t pid, bool of_sampler, Facts& facts) {
  for (const auto& [id, device] : index.devices) {
    const int gpu = places.gpu(device.uuid, static_cast<int>(id & 0xffff));
    const std::string prefix = "gpu." + std::to_string(gpu) + ".";
    const auto put = [&](const char* key, uint64_t value) {
      if (value != 0) facts[prefix + key] = std::to_string(value);
    };
    if (const auto& name = index.device_names.at(id); !name.empty()) facts[prefix + "name"] = name;
    put("memory_bytes", device.memory_bytes);
    if (of_sampler) continue;
    put("memory_bytes_per_s", device.memory_kb_per_s * 1000);
    put("l2_bytes", device.l2_bytes);
    put("clock_hz", uint64_t{device.clock_khz} * 1000);
    put("sm_count", device.multiprocessors);
    put("copy_engines", device.copy_engines);
    put("threads_per_warp", device.threads_per_warp);
    put("warps_per_sm", device.warps_per_sm);
    put("blocks_per_sm", device.blocks_per_sm);
    put("shared_bytes_per_sm", device.shared_per_sm);
    put("registers_per_sm", device.registers_per_sm);
    facts[prefix + "compute_major"] = std::to_string(device.compute_major);
    facts[prefix + "compute_minor"] = std::to_string(device.compute_minor);
    const std::string of_process = std::to_string(pid) + "." + std::to_string(id);
    facts["gpu.of." + of_process] = std::to_string(gpu);
    // Its place in names of counters (gpu_words::of_instance()).
    if (device.is_mig != 0 && device.gpu_instance != kNoNumber)
      facts["gpu.mig_of." + of_process] =
          std::to_string(device.gpu_instance) + "." + std::to_string(device.compute_instance);
  }
}

void add_place_facts(const LogIndex& index, int32_t pid, Facts& facts) {
  for (const auto& [id, context] : index.contexts)
    if (context.is_green != 0)
      facts["gpu.green_context." + std::to_string(pid) + "." + std::to_string(id)] =
          std::to_string(context.multiprocessors) + " SMs of context " + std::to_string(context.parent);
  for (const auto& [key, stream] : index.streams)
    if (stream.priority != 0)
      facts["gpu.stream_priority." + std::to_string(pid) + "." + std::to_string(key.first) + "." +
            std::to_string(key.second)] = std::to_string(stream.priority);
}

struct OneLog {
  fs::path path;
  int32_t pid = 0;
  LogIndex index;
  bool of_sampler() const { return index.facts.count("gpu.sampler") != 0; }
  // NVML numbers all devices of the machine, so its numbers come first.
  int rank() const {
    const auto found = index.facts.find("gpu.sampler");
    return found == index.facts.end() ? 2 : found->second == "nvml" ? 0 : 1;
  }
};

// "gpu.N.rest" of a log with N as all logs number the device.
std::string renumbered(const std::string& key, const LogIndex& index, Places& places) {
  const auto parsed = gpu_words::parse_counter(key);
  if (!parsed) return key;
  const auto device = index.devices.find(static_cast<uint32_t>(parsed->first));
  if (device == index.devices.end()) return key;
  return "gpu." + std::to_string(places.gpu(device->second.uuid, parsed->first)) + "." + std::string(parsed->second);
}

// What calls an instance of a device by its own id means the device.
void add_instances(const LogIndex& index, Places& places) {
  for (const auto& [key, value] : index.facts) {
    const auto parsed = gpu_words::parse_counter(key);
    if (!parsed || !parsed->second.starts_with("mig.") || !parsed->second.ends_with(".uuid")) continue;
    const auto device = index.devices.find(static_cast<uint32_t>(parsed->first));
    const auto uuid = uuid_bytes(value);
    if (uuid && device != index.devices.end())
      places.also_called(*uuid, places.gpu(device->second.uuid, parsed->first));
  }
}

class Merge {
 public:
  Merge(trace::Timeline& timeline, std::vector<OneLog> logs)
      : timeline_(timeline), logs_(std::move(logs)), places_(timeline), zero_ns_(zero_of_marks(timeline)) {}

  Result<GpuSummary> run() {
    const int64_t ended_ns = timeline_.duration_ns;
    std::stable_sort(logs_.begin(), logs_.end(), [](const OneLog& a, const OneLog& b) { return a.rank() < b.rank(); });
    for (const OneLog& log : logs_) STROBE_TRY(add(log));
    // A range that was never ended lasts to the end of all.
    trace::Ranges& ranges = timeline_.ranges;
    for (size_t i = 0; i < ranges.size(); ++i)
      if (ranges.open[i] != 0 && ranges.end_ns[i] >= ended_ns) ranges.end_ns[i] = timeline_.duration_ns;
    add_facts();
    if (!replayed_.empty()) timeline_.tables.push_back(replayed_.table(timeline_.facts));
    auto faults = std::exchange(timeline_.losses.faults, {});
    timeline_.finish();
    // Finishing again counts again what it counted before.
    for (const auto& [kind, count] : faults)
      timeline_.losses.faults[kind] = std::max(timeline_.losses.faults[kind], count);
    for (const OneLog& log : logs_) summary_.logs += log.of_sampler() ? 0 : 1;
    return summary_;
  }

 private:
  Result<void> add(const OneLog& log) {
    const LogIndex& index = log.index;
    if (log.of_sampler()) add_instances(index, places_);
    LogTimeline events(timeline_, places_, index, log.pid, zero_ns_ ? *zero_ns_ : zero_of_wall_clock(timeline_, index));
    STROBE_ASSIGN(const GpuLog read, read_log(log.path, [&](const Record& record) {
                    events.add(record);
                    replayed_.add(log.pid, record);
                  }));
    events.finish(summary_);
    for (const auto& [kind, count] : read.faults) timeline_.losses.faults[kind] += count;
    for (const auto& [kind, count] : index.losses) {
      if (kind == "dropped")
        timeline_.losses.dropped_records += count;
      else
        timeline_.losses.faults[kind] += count;
    }
    if (index.flush_timed_out) ++timeline_.losses.faults["GPU records that CUPTI did not give back at the end"];
    Facts& facts = timeline_.facts;
    add_device_facts(index, places_, log.pid, log.of_sampler(), facts);
    add_place_facts(index, log.pid, facts);
    const std::string pid = "." + std::to_string(log.pid);
    for (const auto& [key, value] : index.facts) {
      if (log.of_sampler() && key != "gpu.sampler") facts[renumbered(key, index, places_)] = value;
      if (!log.of_sampler()) facts[key + pid] = value;
    }
    if (const auto found = index.facts.find("gpu.collection"); found != index.facts.end()) {
      std::string& overall = facts["gpu.collection"];
      if (overall != "on") overall = found->second;
    }
    if (log.of_sampler()) return {};
    steps_ += events.clock().steps();
    uncertainty_ns_ = std::max(uncertainty_ns_, events.clock().uncertainty_ns());
    if (!index.ended && index.complete_to != 0) add_end_mark(events.time_of({index.complete_to}), log.pid);
    if (index.complete_to != 0) facts["gpu.complete_to_ns" + pid] = std::to_string(events.time_of({index.complete_to}));
    return {};
  }

  // The process was killed: what its device did after this is not known.
  void add_end_mark(int64_t time_ns, int32_t pid) {
    trace::Marks& marks = timeline_.marks;
    marks.time_ns.push_back(time_ns);
    marks.name.push_back(timeline_.strings.intern("GPU records are complete up to here"));
    marks.lane.push_back(places_.thread(pid, pid));
    marks.frame.push_back(trace::kNoFrame);
  }

  void add_facts() {
    Facts& facts = timeline_.facts;
    if (summary_.operations > 0) {
      facts["gpu.causality.operations"] = std::to_string(summary_.operations);
      facts["gpu.causality.before_their_call"] = std::to_string(summary_.before_call);
      facts["gpu.causality.worst_ns"] = std::to_string(summary_.worst_before_call_ns);
      facts["gpu.clock.uncertainty_ns"] = std::to_string(uncertainty_ns_);
      facts["gpu.clock.steps"] = std::to_string(steps_);
    }
    if (summary_.before_call > 0)
      timeline_.losses.faults["GPU operation that seems to begin before its call"] += summary_.before_call;
    if (steps_ > 0) timeline_.losses.faults["step of the system's clock while GPU work was recorded"] += steps_;
  }

  trace::Timeline& timeline_;
  std::vector<OneLog> logs_;
  Places places_;
  const std::optional<int64_t> zero_ns_;
  GpuSummary summary_;
  ReplayTable replayed_;
  uint64_t steps_ = 0;
  int64_t uncertainty_ns_ = 0;
};

}  // namespace

Result<GpuSummary> add_gpu_logs(trace::Timeline& timeline, const fs::path& folder) {
  std::vector<OneLog> logs;
  for (const fs::path& path : log_files(folder)) {
    OneLog log{path, 0, {}};
    STROBE_ASSIGN(const GpuLog read, read_log(path, [&log](const Record& record) { log.index.add(record); }));
    log.pid = read.pid;
    logs.push_back(std::move(log));
  }
  if (logs.empty()) return GpuSummary{};
  return Merge(timeline, std::move(logs)).run();
}

}  // namespace strobe::gpu
