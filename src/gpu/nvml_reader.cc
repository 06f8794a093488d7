#include "gpu/nvml_reader.h"

#include <sys/stat.h>

#include <algorithm>
#include <ctime>
#include <set>

#include "base/gpu_words.h"
#include "gpu/cupti_errors.h"
#include "gpu/nvml_list.h"

namespace strobe::gpu {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kSecond_ns = 1'000'000'000;
constexpr std::string_view kRing = ".ring";
constexpr const char* kGpm = "gpm";  // all of its figures

int64_t read_clock(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * kSecond_ns + now.tv_nsec;
}

}  // namespace

ProcessNumbers::ProcessNumbers(fs::path proc) : proc_(std::move(proc)) {
  constexpr ino_t kFirstPidNamespace = 0xEFFFFFFC;  // of the kernel, the same everywhere
  struct stat about {};
  ours_ = ::stat((proc_ / "self/ns/pid").c_str(), &about) == 0 && about.st_ino == kFirstPidNamespace;
}

bool ProcessNumbers::matches(uint32_t pid) {
  if (ours_) return true;
  if (const auto found = known_.find(pid); found != known_.end() && found->second) return true;
  bool uses_device = false;
  std::error_code failed;
  for (fs::directory_iterator it(proc_ / std::to_string(pid) / "fd", failed), end; !failed && it != end;
       it.increment(failed)) {
    std::error_code unreadable;
    if (fs::read_symlink(it->path(), unreadable).string().starts_with("/dev/nvidia")) uses_device = true;
  }
  return known_[pid] = uses_device;
}

NvmlReader::Part::Part(const Nvml& nvml, nvml::Device device, const NvmlInstance& instance)
    : handle(instance.handle),
      memory(gpu_words::of_instance(instance.gpu_instance, gpu_words::kMemoryUsed)),
      gpm(gpu_words::of_instance(instance.gpu_instance, kGpm)),
      counters(nvml, device, instance.gpu_instance) {
  for (const GpmFigure& figure : gpu::gpm_figures())
    gpm_figures.push_back(gpu_words::of_instance(instance.gpu_instance, figure.name));
}

NvmlReader::NvmlReader(const Nvml& nvml, const NvmlDevice& device, ProcessNumbers& processes)
    : nvml_(nvml), device_(device), processes_(processes), gpm_(nvml_, device_.handle) {
  use_told_ns_ = memory_use_told_ns_ = read_clock(CLOCK_MONOTONIC);
  use_seen_us_ = memory_use_seen_us_ = process_use_seen_us_ = static_cast<uint64_t>(read_clock(CLOCK_REALTIME) / 1000);
  nvml::Memory memory{};
  if (nvml_->memory != nullptr && nvml_->memory(device_.handle, &memory) == nvml::kSuccess)
    memory_bytes_ = memory.total;
  answered(kGpm, gpm_.start());
  std::set<unsigned> known;
  for (const NvmlInstance& one : device_.instances) {
    lists_.push_back(
        {one.handle, gpu_words::of_instance(one.gpu_instance, one.compute_instance, gpu_words::kProcessMemory)});
    if (!known.insert(one.gpu_instance).second) continue;
    Part& part = parts_.emplace_back(nvml_, device_.handle, one);
    answered_of(one.handle, part.gpm, part.counters.start());
  }
  // A device under MIG tells all processes to those with rights only, its instances their own.
  if (lists_.empty()) lists_.push_back({device_.handle, gpu_words::kProcessMemory});
}

bool NvmlReader::answered(const std::string& figure, nvml::Code code) {
  switch (code) {
    case nvml::kSuccess:
      return true;
    case nvml::kNotSupported:
    case nvml::kNoPermission:
    case nvml::kFunctionNotFound:
      off_.emplace(figure, nvml_error(code));
      return false;
    case nvml::kGpuIsLost:
    case nvml::kResetRequired:
    case nvml::kUninitialized:
      lost_ = nvml_error(code);
      return false;
    default:
      ++failed_;
      return false;
  }
}

// An instance may be taken away while others work on.
bool NvmlReader::answered_of(nvml::Device handle, const std::string& figure, nvml::Code code) {
  if (handle == device_.handle || (code != nvml::kInvalidArgument && code != nvml::kNotFound))
    return answered(figure, code);
  off_.emplace(figure, "the instance is not there any more (" + nvml_error(code) + ")");
  return false;
}

template <typename Function, typename... Arguments>
bool NvmlReader::ask_of(nvml::Device handle, const std::string& figure, Function* function, Arguments... arguments) {
  if (!lost_.empty() || off_.count(figure) != 0) return false;
  return answered_of(handle, figure, function == nullptr ? nvml::kFunctionNotFound : function(handle, arguments...));
}
template <typename Function, typename... Arguments>
bool NvmlReader::ask(const char* figure, Function* function, Arguments... arguments) {
  return ask_of(device_.handle, figure, function, arguments...);
}

std::optional<int64_t> NvmlReader::time_of(uint64_t realtime_us, uint64_t last_us) const {
  // A slot that was not filled or was given before; another clock than the one that is expected.
  if (realtime_us <= last_us || realtime_us > static_cast<uint64_t>((now_ns_ + realtime_ahead_ns_ + kSecond_ns) / 1000))
    return std::nullopt;
  return static_cast<int64_t>(realtime_us) * 1000 - realtime_ahead_ns_;
}

bool NvmlReader::read(const Put& put) {
  if (!lost_.empty()) return false;
  now_ns_ = read_clock(CLOCK_MONOTONIC);
  realtime_ahead_ns_ = read_clock(CLOCK_REALTIME) - now_ns_;
  // What changes fastest comes first, near the time that it gets.
  read_power(put);
  unsigned value = 0;
  if (ask(gpu_words::kSmClock, nvml_->clock, nvml::kSmClock, &value)) put(now_ns_, gpu_words::kSmClock, value, 0);
  if (ask(gpu_words::kMemoryClock, nvml_->clock, nvml::kMemoryClock, &value))
    put(now_ns_, gpu_words::kMemoryClock, value, 0);
  unsigned long long reasons = 0;  // NOLINT(google-runtime-int)
  if (ask(gpu_words::kClockReasons, nvml_->clock_reasons, &reasons))
    put(now_ns_, gpu_words::kClockReasons, static_cast<double>(reasons), 0);
  read_use(put);
  read_memory(device_.handle, gpu_words::kMemoryUsed, put);
  if (ask(gpu_words::kTemperature, nvml_->temperature, nvml::kTemperatureOfGpu, &value))
    put(now_ns_, gpu_words::kTemperature, value, 0);
  unsigned period = 0;
  if (ask(gpu_words::kEncoder, nvml_->encoder, &value, &period)) put(now_ns_, gpu_words::kEncoder, value, 0);
  if (ask(gpu_words::kDecoder, nvml_->decoder, &value, &period)) put(now_ns_, gpu_words::kDecoder, value, 0);
  read_gpm(put);
  read_parts(put);
  read_processes(put);
  read_process_use(put);
  return lost_.empty();
}

bool NvmlReader::read_ring(int kind, const char* figure, uint64_t& last_us, const Put& put) {
  const std::string name = std::string(figure).append(kRing);
  if (nvml_->samples == nullptr || !lost_.empty() || off_.count(name) != 0) return false;
  int type = nvml::kUnsigned32;
  const nvml::Code code = read_nvml_list(ring_, [&](unsigned* count, nvml::Sample* samples) {
    return nvml_->samples(device_.handle, kind, last_us, &type, count, samples);
  });
  if (code == nvml::kNotFound || !answered(name, code)) return false;
  bool any = false;
  uint64_t newest = last_us;
  for (const nvml::Sample& sample : ring_) {
    const auto time = time_of(sample.time_us, last_us);
    if (!time) continue;
    const double value = type == nvml::kDouble ? sample.value.real : static_cast<double>(sample.value.unsigned32);
    put(*time, figure, value, 0);
    newest = std::max(newest, sample.time_us);
    any = true;
  }
  last_us = newest;
  return any;
}

// The driver's ring has a finer curve than the last period's value, which stands in where it gives nothing.
void NvmlReader::read_use(const Put& put) {
  if (read_ring(nvml::kGpuUseSamples, gpu_words::kBusy, use_seen_us_, put)) use_told_ns_ = now_ns_;
  if (read_ring(nvml::kMemoryUseSamples, gpu_words::kMemoryBusy, memory_use_seen_us_, put))
    memory_use_told_ns_ = now_ns_;
  const auto is_silent = [&](const char* figure, int64_t told_ns) {
    return nvml_->samples == nullptr || off_.count(std::string(figure).append(kRing)) != 0 ||
           now_ns_ - told_ns > kSecond_ns;
  };
  const bool wants_use = is_silent(gpu_words::kBusy, use_told_ns_);
  const bool wants_memory_use = is_silent(gpu_words::kMemoryBusy, memory_use_told_ns_);
  nvml::Utilization last{};
  if (!(wants_use || wants_memory_use) || !ask(gpu_words::kBusy, nvml_->utilization, &last)) return;
  if (wants_use) put(now_ns_, gpu_words::kBusy, last.gpu, 0);
  if (wants_memory_use) put(now_ns_, gpu_words::kMemoryBusy, last.memory, 0);
}

void NvmlReader::read_memory(nvml::Device handle, const std::string& figure, const Put& put) {
  // The newer call leaves out what the driver keeps for itself, as nvidia-smi does.
  nvml::MemoryV2 newer{.version = nvml::kMemoryVersion, .total = 0, .reserved = 0, .free = 0, .used = 0};
  if (lost_.empty() && nvml_->memory_v2 != nullptr && nvml_->memory_v2(handle, &newer) == nvml::kSuccess) {
    put(now_ns_, figure.c_str(), static_cast<double>(newer.used), 0);
    return;
  }
  nvml::Memory memory{};
  if (ask_of(handle, figure, nvml_->memory, &memory)) put(now_ns_, figure.c_str(), static_cast<double>(memory.used), 0);
}

void NvmlReader::read_power(const Put& put) {
  constexpr double kMilli = 1e-3;
  nvml::FieldValue field{};
  field.field = nvml::kInstantPower;
  instant_power_ = ask("power_w.instant", nvml_->fields, 1, &field) && answered("power_w.instant", field.code);
  if (instant_power_) {
    const double mw = field.type == nvml::kDouble ? field.value.real
                      : field.type == nvml::kUnsigned32 || field.type == nvml::kSigned32
                          ? static_cast<double>(field.value.unsigned32)
                          : static_cast<double>(field.value.unsigned64);
    put(now_ns_, gpu_words::kPower, mw * kMilli, 0);
  } else if (unsigned mw = 0; ask(gpu_words::kPower, nvml_->power, &mw)) {
    put(now_ns_, gpu_words::kPower, mw * kMilli, 0);
  }
  unsigned long long energy_mj = 0;  // NOLINT(google-runtime-int)
  if (!ask(gpu_words::kEnergy, nvml_->energy, &energy_mj)) return;
  if (!has_energy_ || energy_mj < first_energy_mj_) first_energy_mj_ = energy_mj;  // the driver was loaded anew
  has_energy_ = true;
  put(now_ns_, gpu_words::kEnergy, static_cast<double>(energy_mj - first_energy_mj_) * kMilli, 0);
}

void NvmlReader::read_gpm(const Put& put) {
  if (!lost_.empty() || off_.count(kGpm) != 0) return;
  const nvml::Code code = gpm_.read(now_ns_, [&](const GpmFigure& figure, nvml::Code told, double value) {
    if (off_.count(figure.name) == 0 && answered(figure.name, told)) put(now_ns_, figure.name, value, 0);
  });
  answered(kGpm, code);
}

void NvmlReader::read_parts(const Put& put) {
  for (Part& part : parts_) {
    read_memory(part.handle, part.memory, put);
    if (!lost_.empty() || off_.count(part.gpm) != 0) continue;
    const nvml::Code code = part.counters.read(now_ns_, [&](const GpmFigure& figure, nvml::Code told, double value) {
      const std::string& name = part.gpm_figures[static_cast<size_t>(&figure - gpu::gpm_figures().data())];
      if (off_.count(name) == 0 && answered(name, told)) put(now_ns_, name.c_str(), value, 0);
    });
    answered_of(part.handle, part.gpm, code);
  }
}

void NvmlReader::read_processes(const Put& put) {
  if (nvml_->processes == nullptr) off_.emplace(gpu_words::kProcessMemory, nvml_error(nvml::kFunctionNotFound));
  if (nvml_->processes == nullptr || !lost_.empty()) return;
  std::map<uint32_t, double> held;
  double unmatched = 0;
  bool any_unmatched = false;
  for (const ProcessList& list : lists_) {
    if (off_.count(list.figure) != 0) continue;
    const nvml::Code code = read_nvml_list(running_, [&](unsigned* count, nvml::Process* processes) {
      return nvml_->processes(list.handle, count, processes);
    });
    if (!answered_of(list.handle, list.figure, code)) continue;
    for (const nvml::Process& process : running_) {
      if (process.memory == nvml::kNotAvailable) continue;
      const auto bytes = static_cast<double>(process.memory);
      if (processes_.matches(process.pid)) {
        held[process.pid] += bytes;
        if (list.handle != device_.handle) put(now_ns_, list.figure.c_str(), bytes, process.pid);
      } else {
        unmatched += bytes;
        any_unmatched = true;
      }
    }
  }
  for (const auto& [pid, bytes] : held) put(now_ns_, gpu_words::kProcessMemory, bytes, pid);
  if (any_unmatched) put(now_ns_, gpu_words::kUnmatchedMemory, unmatched, 0);
}

void NvmlReader::read_process_use(const Put& put) {
  const char* const figure = gpu_words::kProcessSm;
  if (nvml_->process_use == nullptr || !lost_.empty() || off_.count(figure) != 0) {
    if (nvml_->process_use == nullptr) off_.emplace(figure, nvml_error(nvml::kFunctionNotFound));
    return;
  }
  const nvml::Code code = read_nvml_list(use_, [&](unsigned* count, nvml::ProcessUse* use) {
    return nvml_->process_use(device_.handle, use, count, process_use_seen_us_);
  });
  if (code == nvml::kNotFound || !answered(figure, code)) return;  // not found: nobody was busy
  const uint64_t seen = process_use_seen_us_;
  double unmatched = 0;
  bool any_unmatched = false;
  for (const nvml::ProcessUse& use : use_) {
    const auto time = time_of(use.time_us, seen);
    if (!time || !use.possible()) continue;
    process_use_seen_us_ = std::max(process_use_seen_us_, use.time_us);
    if (!processes_.matches(use.pid)) {
      unmatched += use.sm;
      any_unmatched = true;
      continue;
    }
    put(*time, figure, use.sm, use.pid);
    put(*time, gpu_words::kProcessMemoryBusy, use.memory, use.pid);
    if (use.enc != 0) put(*time, gpu_words::kProcessEncoder, use.enc, use.pid);
    if (use.dec != 0) put(*time, gpu_words::kProcessDecoder, use.dec, use.pid);
  }
  if (any_unmatched) put(now_ns_, gpu_words::kUnmatchedSm, unmatched, 0);
}

}  // namespace strobe::gpu
