// A stand-in for libnvidia-ml.so.1. Variables of the environment: FAKE_NVML_<function> is the code that the function
// gives instead of working; the others stand where they are used. Setters are written to the file FAKE_NVML_CALLS, so
// that a test sees what other processes did.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gpu/nvml_abi.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

namespace abi = strobe::gpu::nvml;
using Long = unsigned long long;  // NOLINT(google-runtime-int)

int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}
int forced(const char* function) {
  return static_cast<int>(setting((std::string("FAKE_NVML_") + function).c_str(), 0));
}

// Of a call about a device: after so many it is lost, or never comes back.
int gate(const char* function) {
  static std::atomic<int64_t> calls{0}, until_it_hangs{0};
  if (const int64_t last = setting("FAKE_NVML_HANGS_AFTER", -1); last >= 0 && ++until_it_hangs > last)
    for (;;) ::pause();
  if (const int64_t last = setting("FAKE_NVML_LOST_AFTER", -1); last >= 0 && ++calls > last) return abi::kGpuIsLost;
  return forced(function);
}
#define GATE(function)                                           \
  do {                                                           \
    if (const int code = gate(function); code != 0) return code; \
  } while (false)

abi::Device device_of(unsigned index) {
  return reinterpret_cast<abi::Device>(static_cast<uintptr_t>(index) + 1);
}
unsigned devices() {
  return static_cast<unsigned>(setting("FAKE_NVML_DEVICES", 1));
}

#ifndef FAKE_WITHOUT_OPTIONAL
struct Part {
  unsigned index, gpu_instance, compute_instance;
};
constexpr Part kParts[] = {{0, 1, 0}, {1, 1, 1}, {3, 2, 0}};
constexpr unsigned kFirstPart = 100;
unsigned number_of(abi::Device device) {
  return static_cast<unsigned>(reinterpret_cast<uintptr_t>(device)) - 1;
}
bool is_split(abi::Device device) {
  return number_of(device) == 0 && setting("FAKE_NVML_MIG", 0) != 0;
}
const Part* part_of(abi::Device device) {
  const unsigned at = number_of(device) - kFirstPart;
  return at < std::size(kParts) && setting("FAKE_NVML_MIG_GONE", -1) != at ? &kParts[at] : nullptr;
}
bool is_gone(abi::Device device) {
  return number_of(device) >= kFirstPart && part_of(device) == nullptr;
}
// What NVML does not have of devices under MIG, nor of their instances.
#define NOT_UNDER_MIG(device) \
  if (is_split(device) || number_of(device) >= kFirstPart) return abi::kNotSupported
// What it has of the instances, and of the device to those with the right.
#define GATE_OF_PARTS(device)                                                                 \
  do {                                                                                        \
    if (is_gone(device)) return abi::kInvalidArgument;                                        \
    if (is_split(device) && setting("FAKE_NVML_MIG_ROOT", 0) == 0) return abi::kNoPermission; \
  } while (false)

int64_t now_us(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000 + now.tv_nsec / 1000;
}
void note(const std::string& line) {
  const char* path = std::getenv("FAKE_NVML_CALLS");
  if (path == nullptr) return;
  const int file = ::open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  const std::string text = line + "\n";
  [[maybe_unused]] const ssize_t ignored = ::write(file, text.data(), text.size());
  ::close(file);
}
int put_note(const char* function, abi::Device device, const std::string& rest = "") {
  if (const int code = gate(function); code != 0) return code;
  note(std::string(function) + " " + std::to_string(number_of(device)) + rest);
  return 0;
}

std::vector<uint32_t> pids() {
  const char* text = std::getenv("FAKE_NVML_PIDS");
  if (text == nullptr) return {static_cast<uint32_t>(::getpid())};
  std::vector<uint32_t> all;
  for (const char* at = text; *at != 0;) {
    char* end = nullptr;
    all.push_back(static_cast<uint32_t>(std::strtoul(at, &end, 10)));
    at = *end == ',' ? end + 1 : end;
    if (end == at && *at != 0) break;
  }
  return all;
}

// What processes hold and how much of the device's time is theirs. FAKE_NVML_HELD names a file with lines "PID BYTES
// PERCENT", of which the last one of a process that lives counts.
struct Held {
  uint32_t pid;
  uint64_t bytes;
  uint32_t percent;
};
std::vector<Held> held() {
  std::vector<Held> all;
  const char* path = std::getenv("FAKE_NVML_HELD");
  if (path == nullptr) {
    for (const uint32_t pid : pids()) all.push_back({pid, uint64_t{3} << 30, 60});
    return all;
  }
  std::ifstream file(path);
  for (Held one{}; file >> one.pid >> one.bytes >> one.percent;) {
    std::erase_if(all, [&](const Held& other) { return other.pid == one.pid; });
    if (::kill(static_cast<pid_t>(one.pid), 0) == 0 || errno == EPERM) all.push_back(one);
  }
  return all;
}
uint64_t held_bytes() {
  uint64_t sum = 0;
  if (std::getenv("FAKE_NVML_HELD") == nullptr) return sum;
  for (const Held& one : held()) sum += one.bytes;
  return sum;
}

// Under MIG they are all in the last instance.
constexpr const Part& kHolder = kParts[2];
uint64_t of_part(const Part& part, uint64_t bytes) {
  return part.gpu_instance == kHolder.gpu_instance ? bytes : 0;
}

// As NVML gives lists: too little room is said together with what is needed. FAKE_NVML_GROWS: between the two calls
// the list gets longer by more than anybody left room for, so often.
template <typename Entry>
int give(const std::vector<Entry>& list, unsigned* room, Entry* into) {
  static std::atomic<int64_t> grown{0};
  auto needed = static_cast<unsigned>(list.size());
  if (into != nullptr && grown.load() < setting("FAKE_NVML_GROWS", 0)) {
    ++grown;
    needed = *room + 1;
  }
  if (into == nullptr || *room < needed) {
    *room = needed;
    return needed == 0 ? abi::kSuccess : abi::kInsufficientSize;
  }
  std::copy(list.begin(), list.end(), into);
  *room = needed;
  return 0;
}
#endif

}  // namespace

EXPORTED int nvmlInit_v2() {
  return forced("nvmlInit_v2");
}
EXPORTED int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = devices();
  return forced("nvmlDeviceGetCount_v2");
}
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned index, abi::Device* device) {
  if (setting("FAKE_NVML_DEAD_DEVICE", -1) == index) return abi::kGpuIsLost;
  if (index >= devices()) return 2;
  *device = device_of(index);
  return 0;
}
EXPORTED int nvmlDeviceGetPowerUsage(abi::Device, unsigned* mw) {
  GATE("nvmlDeviceGetPowerUsage");
  *mw = 240'000;
  return 0;
}

#ifndef FAKE_WITHOUT_OPTIONAL
EXPORTED int nvmlShutdown() {
  return 0;
}
EXPORTED int nvmlSystemGetDriverVersion(char* text, unsigned room) {
  std::snprintf(text, room, "580.00");
  return 0;
}
EXPORTED int nvmlDeviceGetUUID(abi::Device device, char* text, unsigned room) {
  if (const Part* part = part_of(device)) {
    std::snprintf(text, room, "MIG-31000000-0000-0000-0000-0000000000%02x", static_cast<unsigned>(part - kParts));
    return 0;
  }
  // The first one is that of fake_gpu.cc.
  const unsigned number = (number_of(device) + static_cast<unsigned>(setting("FAKE_NVML_TURNED_BY", 0))) % devices();
  std::snprintf(text, room, "GPU-ab%02x0000-0000-0000-0000-0000000000cd", number);
  return 0;
}
EXPORTED int nvmlDeviceGetName(abi::Device device, char* text, unsigned room) {
  if (part_of(device) != nullptr) {
    std::snprintf(text, room, "Fake GPU 9000 MIG 1g.10gb");
    return 0;
  }
  const bool differs = number_of(device) == 1 && setting("FAKE_NVML_DIFFERENT", 0) != 0;
  std::snprintf(text, room, "%s", differs ? "Fake GPU 500" : "Fake GPU 9000");
  return 0;
}

// MIG. FAKE_NVML_MIG=1: the first device has three compute instances, two of them in one GPU instance; between their
// numbers there is a gap. FAKE_NVML_MIG_GONE: that one was taken away.
EXPORTED int nvmlDeviceGetMaxMigDeviceCount(abi::Device device, unsigned* count) {
  *count = is_split(device) ? 7 : 0;
  return forced("nvmlDeviceGetMaxMigDeviceCount");
}
EXPORTED int nvmlDeviceGetMigDeviceHandleByIndex(abi::Device device, unsigned index, abi::Device* part) {
  if (!is_split(device)) return abi::kNotSupported;
  for (unsigned i = 0; i < std::size(kParts); ++i)
    if (kParts[i].index == index) {
      *part = device_of(kFirstPart + i);
      return forced("nvmlDeviceGetMigDeviceHandleByIndex");
    }
  return abi::kNotFound;
}
EXPORTED int nvmlDeviceGetGpuInstanceId(abi::Device device, unsigned* id) {
  const Part* part = part_of(device);
  if (part == nullptr) return abi::kInvalidArgument;
  *id = part->gpu_instance;
  return 0;
}
EXPORTED int nvmlDeviceGetComputeInstanceId(abi::Device device, unsigned* id) {
  const Part* part = part_of(device);
  if (part == nullptr) return abi::kInvalidArgument;
  *id = part->compute_instance;
  return 0;
}
EXPORTED int nvmlDeviceGetAttributes_v2(abi::Device device, abi::Attributes* attributes) {
  const Part* part = part_of(device);
  if (part == nullptr) return abi::kNotSupported;
  *attributes = {.processors = 16,
                 .copy_engines = 1,
                 .decoders = 0,
                 .encoders = 0,
                 .jpeg = 0,
                 .optical_flow = 0,
                 .gpu_slices = 1,
                 .compute_slices = 1,
                 .memory_mib = 10 << 10};
  return 0;
}
EXPORTED int nvmlDeviceGetUtilizationRates(abi::Device device, abi::Utilization* use) {
  GATE("nvmlDeviceGetUtilizationRates");
  NOT_UNDER_MIG(device);
  *use = {75, 30};
  return 0;
}
EXPORTED int nvmlDeviceGetSamples(abi::Device device, int kind, Long last_us, int* type, unsigned* count,
                                  abi::Sample* samples) {
  GATE("nvmlDeviceGetSamples");
  NOT_UNDER_MIG(device);
  constexpr Long kPeriod_us = 20'000;
  constexpr unsigned kRing = 100;
  *type = abi::kUnsigned32;
  if (samples == nullptr) {
    *count = kRing;
    return 0;
  }
  const auto now = static_cast<Long>(now_us(CLOCK_REALTIME));
  unsigned given = 0;
  for (unsigned i = kRing; i-- > 0 && given < *count;) {
    const Long time = now / kPeriod_us * kPeriod_us - i * kPeriod_us;
    if (time <= last_us) continue;
    samples[given].time_us = time;
    samples[given].value.unsigned64 = 0;
    samples[given++].value.unsigned32 = kind == abi::kGpuUseSamples ? 80 : 40;
  }
  *count = given;
  return given == 0 ? abi::kNotFound : abi::kSuccess;
}
EXPORTED int nvmlDeviceGetMemoryInfo(abi::Device device, abi::Memory* memory) {
  GATE("nvmlDeviceGetMemoryInfo");
  GATE_OF_PARTS(device);
  const uint64_t more = held_bytes();
  if (const Part* part = part_of(device)) {
    *memory = {uint64_t{10} << 30, (uint64_t{9} << 30) - of_part(*part, more),
               (uint64_t{1} << 30) + of_part(*part, more)};
    return 0;
  }
  *memory = {uint64_t{80} << 30, (uint64_t{74} << 30) - more, (uint64_t{6} << 30) + more};
  return 0;
}
EXPORTED int nvmlDeviceGetMemoryInfo_v2(abi::Device device, abi::MemoryV2* memory) {
  GATE("nvmlDeviceGetMemoryInfo_v2");
  GATE_OF_PARTS(device);
  if (memory->version != abi::kMemoryVersion) return 25;
  const uint64_t more = held_bytes();
  if (const Part* part = part_of(device)) {
    *memory = {memory->version, uint64_t{10} << 30, uint64_t{1} << 29, (uint64_t{9} << 30) - of_part(*part, more),
               (uint64_t{part->gpu_instance} << 28) + of_part(*part, more)};
    return 0;
  }
  *memory = {memory->version, uint64_t{80} << 30, uint64_t{1} << 30, (uint64_t{74} << 30) - more,
             (uint64_t{5} << 30) + more};
  return 0;
}
EXPORTED int nvmlDeviceGetClockInfo(abi::Device, int clock, unsigned* mhz) {
  GATE("nvmlDeviceGetClockInfo");
  *mhz = clock == abi::kMemoryClock ? 2619 : static_cast<unsigned>(setting("FAKE_NVML_SM_CLOCK", 1755));
  return 0;
}
EXPORTED int nvmlDeviceGetMaxClockInfo(abi::Device, int clock, unsigned* mhz) {
  GATE("nvmlDeviceGetMaxClockInfo");
  *mhz = clock == abi::kMemoryClock ? 2619 : 1980;
  return 0;
}
EXPORTED int nvmlDeviceGetCurrentClocksEventReasons(abi::Device, Long* reasons) {
  GATE("nvmlDeviceGetCurrentClocksEventReasons");
  *reasons = static_cast<Long>(setting("FAKE_NVML_REASONS", 0x4));
  return 0;
}
EXPORTED int nvmlDeviceGetTemperature(abi::Device, int, unsigned* celsius) {
  GATE("nvmlDeviceGetTemperature");
  *celsius = 61;
  return 0;
}
EXPORTED int nvmlDeviceGetTotalEnergyConsumption(abi::Device, Long* mj) {
  GATE("nvmlDeviceGetTotalEnergyConsumption");
  // 250 W since a long time ago, in steps of 50 ms.
  *mj = 5'000'000'000 + static_cast<Long>(now_us(CLOCK_MONOTONIC)) / 50'000 * 50 * 250;
  return 0;
}
EXPORTED int nvmlDeviceGetFieldValues(abi::Device, int count, abi::FieldValue* values) {
  GATE("nvmlDeviceGetFieldValues");
  for (int i = 0; i < count; ++i) {
    values[i].code = values[i].field == abi::kInstantPower ? forced("field_186") : abi::kNotSupported;
    values[i].type = abi::kUnsigned32;
    values[i].value.unsigned64 = 0;
    values[i].value.unsigned32 = 250'000;
  }
  return 0;
}
EXPORTED int nvmlDeviceGetEncoderUtilization(abi::Device device, unsigned* percent, unsigned* period_us) {
  GATE("nvmlDeviceGetEncoderUtilization");
  NOT_UNDER_MIG(device);
  *percent = 0, *period_us = 167'000;
  return 0;
}
EXPORTED int nvmlDeviceGetDecoderUtilization(abi::Device device, unsigned* percent, unsigned* period_us) {
  GATE("nvmlDeviceGetDecoderUtilization");
  NOT_UNDER_MIG(device);
  *percent = 12, *period_us = 167'000;
  return 0;
}
EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(abi::Device device, unsigned* count, abi::Process* processes) {
  GATE("nvmlDeviceGetComputeRunningProcesses_v3");
  GATE_OF_PARTS(device);
  std::vector<abi::Process> all;
  const Part* const part = part_of(device);
  for (const Held& one : held())
    if (part == nullptr || part == &kHolder)
      all.push_back({one.pid, one.bytes, part == nullptr ? ~0U : part->gpu_instance,
                     part == nullptr ? ~0U : part->compute_instance});
  return give(all, count, processes);
}
EXPORTED int nvmlDeviceGetProcessUtilization(abi::Device device, abi::ProcessUse* use, unsigned* count, Long last_us) {
  GATE("nvmlDeviceGetProcessUtilization");
  NOT_UNDER_MIG(device);
  const auto now = static_cast<uint64_t>(now_us(CLOCK_REALTIME));
  if (now <= last_us) return abi::kNotFound;
  std::vector<abi::ProcessUse> all;
  for (const Held& one : held()) all.push_back({one.pid, now, one.percent, 20, 0, 5});
  // As the true one does now and then.
  for (const Held& one : held()) all.push_back({one.pid, now, 1'717'986'918, 20, 0, 5});
  return give(all, count, use);
}

// GPM. FAKE_NVML_GPM: 0 for a device without.
EXPORTED int nvmlGpmQueryDeviceSupport(abi::Device, abi::GpmSupport* support) {
  if (support->version != abi::kGpmVersion) return 25;
  support->supported = setting("FAKE_NVML_GPM", 1) != 0 ? 1 : 0;
  return forced("nvmlGpmQueryDeviceSupport");
}
// A sample: the time, and 100 times the GPU instance.
struct GpmMoment {
  int64_t us = 0;
  unsigned more = 0;
};
EXPORTED int nvmlGpmSampleAlloc(abi::GpmSample* sample) {
  *sample = new GpmMoment;
  return 0;
}
EXPORTED int nvmlGpmSampleFree(abi::GpmSample sample) {
  delete static_cast<GpmMoment*>(sample);
  return 0;
}
EXPORTED int nvmlGpmSampleGet(abi::Device device, abi::GpmSample sample) {
  NOT_UNDER_MIG(device);
  *static_cast<GpmMoment*>(sample) = {now_us(CLOCK_MONOTONIC), 0};
  return forced("nvmlGpmSampleGet");
}
EXPORTED int nvmlGpmMigSampleGet(abi::Device device, unsigned gpu_instance, abi::GpmSample sample) {
  if (!is_split(device) || (gpu_instance != 1 && gpu_instance != 2)) return abi::kInvalidArgument;
  *static_cast<GpmMoment*>(sample) = {now_us(CLOCK_MONOTONIC), 100 * gpu_instance};
  return forced("nvmlGpmMigSampleGet");
}
EXPORTED int nvmlGpmMetricsGet(abi::GpmRequest* request) {
  if (request->version != abi::kGpmVersion) return 25;
  // Both were taken, the older one first, as far apart as its counters are refreshed.
  const auto &from = *static_cast<GpmMoment*>(request->from), &to = *static_cast<GpmMoment*>(request->to);
  if (from.us == 0 || to.us - from.us < 100'000 || from.more != to.more) return 2;
  auto* metrics = reinterpret_cast<abi::GpmMetric*>(request + 1);
  for (uint32_t i = 0; i < request->count; ++i) {
    metrics[i].code = metrics[i].id == abi::kGpmFp64Use ? forced("gpm_fp64") : 0;
    metrics[i].value = 10 + metrics[i].id + to.more;
  }
  return forced("nvmlGpmMetricsGet");
}

EXPORTED int nvmlDeviceGetPerformanceState(abi::Device, int* state) {
  GATE("nvmlDeviceGetPerformanceState");
  *state = 0;
  return 0;
}
EXPORTED int nvmlDeviceGetPersistenceMode(abi::Device, int* on) {
  GATE("nvmlDeviceGetPersistenceMode");
  *on = 0;
  return 0;
}
EXPORTED int nvmlDeviceSetPersistenceMode(abi::Device device, int on) {
  return put_note("nvmlDeviceSetPersistenceMode", device, on != 0 ? " on" : " off");
}
EXPORTED int nvmlDeviceGetPowerManagementLimit(abi::Device, unsigned* mw) {
  GATE("nvmlDeviceGetPowerManagementLimit");
  *mw = 500'000;
  return 0;
}
EXPORTED int nvmlDeviceGetPowerManagementLimitConstraints(abi::Device, unsigned* least, unsigned* most) {
  GATE("nvmlDeviceGetPowerManagementLimitConstraints");
  *least = 200'000, *most = 700'000;
  return 0;
}
EXPORTED int nvmlDeviceSetPowerManagementLimit(abi::Device device, unsigned mw) {
  return put_note("nvmlDeviceSetPowerManagementLimit", device, " " + std::to_string(mw));
}
EXPORTED int nvmlDeviceSetGpuLockedClocks(abi::Device device, unsigned least, unsigned most) {
  return put_note("nvmlDeviceSetGpuLockedClocks", device, " " + std::to_string(least) + " " + std::to_string(most));
}
EXPORTED int nvmlDeviceResetGpuLockedClocks(abi::Device device) {
  return put_note("nvmlDeviceResetGpuLockedClocks", device);
}
EXPORTED int nvmlDeviceSetMemoryLockedClocks(abi::Device device, unsigned least, unsigned most) {
  return put_note("nvmlDeviceSetMemoryLockedClocks", device, " " + std::to_string(least) + " " + std::to_string(most));
}
EXPORTED int nvmlDeviceResetMemoryLockedClocks(abi::Device device) {
  return put_note("nvmlDeviceResetMemoryLockedClocks", device);
}
#endif
