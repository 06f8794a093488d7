#include "gpu/device_watch.h"

#include <unistd.h>

#include <algorithm>
#include <ctime>
#include <utility>

#include "base/gpu_words.h"
#include "base/statistics.h"
#include "gpu/nvml_list.h"

namespace strobe::gpu {
namespace {

uint64_t realtime_us() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000 + static_cast<uint64_t>(now.tv_nsec) / 1000;
}

}  // namespace

Result<std::unique_ptr<DeviceWatch>> DeviceWatch::open(int number) {
  STROBE_ASSIGN(const std::vector<CudaDevice> devices, cuda_devices());
  const auto cuda =
      std::find_if(devices.begin(), devices.end(), [&](const CudaDevice& one) { return one.number == number; });
  const std::string name = "cuda:" + std::to_string(number);
  if (cuda == devices.end())
    return unsupported(name + ": the driver has " + std::to_string(devices.size()) +
                       (devices.size() == 1 ? " device" : " devices"));
  auto nvml = Nvml::open();
  if (!nvml) return unsupported(nvml.error().to_string());
  STROBE_ASSIGN(const Nvml::Devices listed, nvml->devices(nullptr, nullptr));
  for (const NvmlDevice& device : listed.list) {
    std::optional<NvmlInstance> its;
    for (const NvmlInstance& one : device.instances)
      if (uuid_bytes(one.uuid) == cuda->uuid) its = one;
    if (its || device.uuid_bytes() == cuda->uuid)
      return std::unique_ptr<DeviceWatch>(new DeviceWatch(std::move(*nvml), *cuda, device, std::move(its)));
  }
  return unsupported(name + ": NVML lists no device with its id");
}

DeviceWatch::DeviceWatch(Nvml nvml, CudaDevice cuda, NvmlDevice device, std::optional<NvmlInstance> instance)
    : nvml_(std::move(nvml)),
      cuda_(std::move(cuda)),
      device_(std::move(device)),
      instance_(std::move(instance)),
      of_program_(instance_ ? instance_->handle : device_.handle) {
  numbers_are_ours_ = ProcessNumbers("/proc").are_ours();
  if (list_processes())
    for (const nvml::Process& process : processes_) were_there_.insert(process.pid);
  used_before_ = memory().used;
  restart();
}

std::map<std::string, std::string> DeviceWatch::facts() const {
  std::map<std::string, std::string> all;
  const auto put = [&all](const char* key, int64_t value) {
    if (value > 0) all[key] = std::to_string(value);
  };
  const auto ask = [&](const char* key, auto* function, int64_t divisor, auto... arguments) {
    unsigned value = 0;
    if (function != nullptr && function(device_.handle, arguments..., &value) == nvml::kSuccess)
      put(key, value / divisor);
  };
  const std::string& name = cuda_.name.empty() ? device_.name : cuda_.name;
  if (!name.empty()) all["name"] = name;
  if (const std::string& uuid = instance_ ? instance_->uuid : device_.uuid; !uuid.empty()) all["uuid"] = uuid;
  all["driver"] = nvml_.driver_version();
  put("processors", cuda_.processors);
  if (cuda_.capability > 0)
    all["compute_capability"] = std::to_string(cuda_.capability / 10) + "." + std::to_string(cuda_.capability % 10);
  constexpr int64_t kMib = 1 << 20;
  if (nvml::Memory memory{}; nvml_->memory != nullptr && nvml_->memory(of_program_, &memory) == nvml::kSuccess)
    put("memory_mib", static_cast<int64_t>(memory.total) / kMib);
  ask("sm_clock_mhz_max", nvml_->max_clock, 1, static_cast<int>(nvml::kSmClock));
  ask("memory_clock_mhz_max", nvml_->max_clock, 1, static_cast<int>(nvml::kMemoryClock));
  ask("power_limit_w", nvml_->power_limit, 1000);
  return all;
}

bool DeviceWatch::list_processes() {
  return nvml_->processes != nullptr && read_nvml_list(processes_, [&](unsigned* count, nvml::Process* entries) {
                                          return nvml_->processes(of_program_, count, entries);
                                        }) == nvml::kSuccess;
}

// In a pid namespace of its own a process is the only one that has come since the watch was opened.
void DeviceWatch::find_own() {
  if (own_pid_) return;
  const auto pid = static_cast<uint32_t>(::getpid());
  if (numbers_are_ours_) {
    own_pid_ = pid;
    return;
  }
  std::vector<uint32_t> came;
  for (const nvml::Process& process : processes_)
    if (were_there_.count(process.pid) == 0) came.push_back(process.pid);
  if (std::find(came.begin(), came.end(), pid) != came.end())
    own_pid_ = pid;
  else if (came.size() == 1)
    own_pid_ = came.front();
}

DeviceMoment DeviceWatch::memory() {
  DeviceMoment moment;
  nvml::MemoryV2 newer{.version = nvml::kMemoryVersion, .total = 0, .reserved = 0, .free = 0, .used = 0};
  nvml::Memory older{};
  if (nvml_->memory_v2 != nullptr && nvml_->memory_v2(of_program_, &newer) == nvml::kSuccess) {
    moment.total = static_cast<int64_t>(newer.total);
    moment.used = static_cast<int64_t>(newer.used);
    moment.free = static_cast<int64_t>(newer.free);
  } else if (nvml_->memory != nullptr && nvml_->memory(of_program_, &older) == nvml::kSuccess) {
    moment.total = static_cast<int64_t>(older.total);
    moment.used = static_cast<int64_t>(older.used);
    moment.free = static_cast<int64_t>(older.free);
  }
  if (list_processes()) {
    find_own();
    for (const nvml::Process& process : processes_)
      if (process.pid == own_pid_ && process.memory != nvml::kNotAvailable)
        moment.own = static_cast<int64_t>(process.memory);
  }
  if (moment.own < 0 && moment.used >= 0 && used_before_ >= 0) {
    moment.own = std::max<int64_t>(0, moment.used - used_before_);
    moment.own_is_growth = true;
  }
  return moment;
}

void DeviceWatch::restart() {
  use_seen_us_ = realtime_us();
  samples_ = told_reasons_ = throttled_ = told_use_ = 0;
  others_ = 0;
  clocks_.clear();
}

void DeviceWatch::sample() {
  ++samples_;
  if (unsigned mhz = 0; nvml_->clock != nullptr && nvml_->clock(device_.handle, nvml::kSmClock, &mhz) == nvml::kSuccess)
    clocks_.push_back(mhz);
  unsigned long long reasons = 0;  // NOLINT(google-runtime-int)
  if (nvml_->clock_reasons != nullptr && nvml_->clock_reasons(device_.handle, &reasons) == nvml::kSuccess) {
    ++told_reasons_;
    if ((reasons & gpu_words::kThrottled) != 0) ++throttled_;
  }
  if (nvml_->process_use == nullptr) return;
  if (!own_pid_ && list_processes()) find_own();
  const nvml::Code code = read_nvml_list(process_use_, [&](unsigned* count, nvml::ProcessUse* use) {
    return nvml_->process_use(device_.handle, use, count, use_seen_us_);
  });
  // Without a number of its own this process cannot be told from others.
  if (code != nvml::kSuccess || process_use_.empty() || !own_pid_) return;
  const uint64_t seen = use_seen_us_;
  constexpr uint64_t kSecond_us = 1'000'000;
  const uint64_t latest_us = realtime_us() + kSecond_us;
  double percent = 0;
  bool any = false;
  for (const nvml::ProcessUse& use : process_use_) {
    // Given before, or a slot that was not filled.
    if (use.time_us <= seen || use.time_us > latest_us || !use.possible()) continue;
    any = true;
    use_seen_us_ = std::max(use_seen_us_, use.time_us);
    if (use.pid != *own_pid_) percent += use.sm;
  }
  if (!any) return;
  ++told_use_;
  others_ += std::min(percent, 100.0) / 100;
}

DeviceUse DeviceWatch::use() const {
  DeviceUse use;
  use.samples = samples_;
  if (told_use_ > 0) use.others_share = others_ / told_use_;
  if (told_reasons_ > 0) use.throttled_share = static_cast<double>(throttled_) / told_reasons_;
  if (clocks_.empty()) return use;
  const auto [least, most] = std::minmax_element(clocks_.begin(), clocks_.end());
  use.clock_mhz = mean(clocks_);
  if (*most > 0) use.clock_spread = (*most - *least) / *most;
  return use;
}

}  // namespace strobe::gpu
