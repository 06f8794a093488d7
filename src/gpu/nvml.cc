#include "gpu/nvml.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "gpu/cupti_errors.h"

namespace strobe::gpu {
namespace {

constexpr std::string_view kGpuPrefix = "GPU-", kMigPrefix = "MIG-";

NvmlFunctions find_functions(const Library& library) {
  NvmlFunctions found{};
  // The newest name first; of some only older ones exist in older libraries.
  const auto find = [&library](auto& function, const char* name, const char* older = nullptr) {
    library.find(function, name);
    if (function == nullptr && older != nullptr) library.find(function, older);
  };
  find(found.init, "nvmlInit_v2");
  find(found.shutdown, "nvmlShutdown");
  find(found.driver_version, "nvmlSystemGetDriverVersion");
  find(found.count, "nvmlDeviceGetCount_v2");
  find(found.by_index, "nvmlDeviceGetHandleByIndex_v2");
  find(found.uuid, "nvmlDeviceGetUUID");
  find(found.name, "nvmlDeviceGetName");
  find(found.most_instances, "nvmlDeviceGetMaxMigDeviceCount");
  find(found.instance_by_index, "nvmlDeviceGetMigDeviceHandleByIndex");
  find(found.gpu_instance, "nvmlDeviceGetGpuInstanceId");
  find(found.compute_instance, "nvmlDeviceGetComputeInstanceId");
  find(found.attributes, "nvmlDeviceGetAttributes_v2", "nvmlDeviceGetAttributes");
  find(found.utilization, "nvmlDeviceGetUtilizationRates");
  find(found.samples, "nvmlDeviceGetSamples");
  find(found.memory, "nvmlDeviceGetMemoryInfo");
  find(found.memory_v2, "nvmlDeviceGetMemoryInfo_v2");
  find(found.clock, "nvmlDeviceGetClockInfo");
  find(found.max_clock, "nvmlDeviceGetMaxClockInfo");
  find(found.clock_reasons, "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons");
  find(found.temperature, "nvmlDeviceGetTemperature");
  find(found.power, "nvmlDeviceGetPowerUsage");
  find(found.energy, "nvmlDeviceGetTotalEnergyConsumption");
  find(found.fields, "nvmlDeviceGetFieldValues");
  find(found.encoder, "nvmlDeviceGetEncoderUtilization");
  find(found.decoder, "nvmlDeviceGetDecoderUtilization");
  find(found.processes, "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v2");
  find(found.process_use, "nvmlDeviceGetProcessUtilization");
  find(found.gpm_support, "nvmlGpmQueryDeviceSupport");
  find(found.gpm_alloc, "nvmlGpmSampleAlloc");
  find(found.gpm_free, "nvmlGpmSampleFree");
  find(found.gpm_sample, "nvmlGpmSampleGet");
  find(found.gpm_instance_sample, "nvmlGpmMigSampleGet");
  find(found.gpm_metrics, "nvmlGpmMetricsGet");
  find(found.performance_state, "nvmlDeviceGetPerformanceState");
  find(found.persistence, "nvmlDeviceGetPersistenceMode");
  find(found.set_persistence, "nvmlDeviceSetPersistenceMode");
  find(found.power_limit, "nvmlDeviceGetPowerManagementLimit");
  find(found.power_limits, "nvmlDeviceGetPowerManagementLimitConstraints");
  find(found.set_power_limit, "nvmlDeviceSetPowerManagementLimit");
  find(found.lock_gpu_clocks, "nvmlDeviceSetGpuLockedClocks");
  find(found.reset_gpu_clocks, "nvmlDeviceResetGpuLockedClocks");
  find(found.lock_memory_clocks, "nvmlDeviceSetMemoryLockedClocks");
  find(found.reset_memory_clocks, "nvmlDeviceResetMemoryLockedClocks");
  return found;
}

std::string text_of(nvml::Code (*function)(nvml::Device, char*, unsigned), nvml::Device device) {
  char text[nvml::kNameBytes] = {};
  if (function == nullptr || function(device, text, sizeof text - 1) != nvml::kSuccess) return {};
  return text;
}

std::optional<unsigned> number(std::string_view text) {
  unsigned value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> words(std::string_view text) {
  std::vector<std::string> list;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    std::string word(text.substr(0, comma));
    word.erase(0, word.find_first_not_of(' '));
    while (word.ends_with(' ')) word.pop_back();
    list.push_back(std::move(word));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return list;
}

// As CUDA_VISIBLE_DEVICES names it, today and (MIG-GPU-<uuid>/instance/instance) for older drivers.
bool is_called(const NvmlInstance& one, const NvmlDevice& device, std::string_view word) {
  return word == one.uuid || word == "MIG-" + device.uuid + "/" + std::to_string(one.gpu_instance) + "/" +
                                         std::to_string(one.compute_instance);
}

}  // namespace

std::optional<std::array<uint64_t, 2>> uuid_bytes(std::string_view uuid) {
  if (!uuid.starts_with(kGpuPrefix) && !uuid.starts_with(kMigPrefix)) return std::nullopt;
  uint8_t bytes[16] = {};
  size_t digits = 0;
  for (size_t i = kGpuPrefix.size(); i < uuid.size() && digits < 32; ++i) {
    if (uuid[i] == '-') continue;
    uint8_t digit = 0;
    if (std::from_chars(&uuid[i], &uuid[i] + 1, digit, 16).ec != std::errc{}) break;
    bytes[digits / 2] = static_cast<uint8_t>(bytes[digits / 2] << 4U | digit);
    ++digits;
  }
  if (digits != 32) return std::nullopt;
  std::array<uint64_t, 2> both{};
  std::memcpy(both.data(), bytes, sizeof bytes);
  return both;
}

std::array<uint64_t, 2> NvmlDevice::uuid_bytes() const {
  return gpu::uuid_bytes(uuid).value_or(std::array<uint64_t, 2>{~uint64_t{0}, index});
}

Result<Nvml> Nvml::open() {
  auto library = Library::open({"STROBE_NVML_LIBRARY", {"libnvidia-ml.so.1"}});
  if (!library)
    return not_found(library.error().to_string() + " (no NVIDIA driver is installed, or it is not visible here)");
  Nvml nvml(find_functions(*library), library->path());
  const NvmlFunctions& functions = nvml.functions_;
  if (functions.init == nullptr || functions.count == nullptr || functions.by_index == nullptr)
    return unsupported(library->path() +
                       ": is no NVML that can be used, it lacks nvmlInit_v2 or what enumerates devices");
  if (const nvml::Code code = functions.init(); code != nvml::kSuccess) return unsupported(nvml_error(code));
  nvml.initialized_ = true;
  return nvml;
}

Nvml::Nvml(Nvml&& other) noexcept
    : functions_(other.functions_),
      path_(std::move(other.path_)),
      initialized_(std::exchange(other.initialized_, false)) {}

Nvml::~Nvml() {
  if (initialized_ && functions_.shutdown != nullptr) functions_.shutdown();
}

std::string Nvml::driver_version() const {
  char text[nvml::kNameBytes] = {};
  if (functions_.driver_version == nullptr || functions_.driver_version(text, sizeof text - 1) != nvml::kSuccess)
    return "?";
  return text;
}

Result<Nvml::Devices> Nvml::visible_devices() const {
  return devices(std::getenv("CUDA_VISIBLE_DEVICES"), std::getenv("CUDA_DEVICE_ORDER"));
}

std::vector<NvmlInstance> Nvml::instances(nvml::Device device, unsigned most) const {
  constexpr unsigned kMost = 64;  // more than any device has; of a number that the library announces
  std::vector<NvmlInstance> list;
  for (unsigned i = 0; i < std::min(most, kMost); ++i) {
    NvmlInstance one;
    // Numbers have gaps where instances were taken away.
    if (functions_.instance_by_index(device, i, &one.handle) != nvml::kSuccess ||
        functions_.gpu_instance(one.handle, &one.gpu_instance) != nvml::kSuccess ||
        functions_.compute_instance(one.handle, &one.compute_instance) != nvml::kSuccess)
      continue;
    one.uuid = text_of(functions_.uuid, one.handle);
    one.name = text_of(functions_.name, one.handle);
    if (nvml::Attributes about{};
        functions_.attributes != nullptr && functions_.attributes(one.handle, &about) == nvml::kSuccess)
      one.processors = about.processors;
    if (nvml::Memory memory{}; functions_.memory != nullptr && functions_.memory(one.handle, &memory) == nvml::kSuccess)
      one.memory_bytes = memory.total;
    list.push_back(std::move(one));
  }
  return list;
}

Result<Nvml::Devices> Nvml::devices(const char* visible, const char* order) const {
  unsigned count = 0;
  if (const nvml::Code code = functions_.count(&count); code != nvml::kSuccess) return unsupported(nvml_error(code));
  Devices all;
  for (unsigned i = 0; i < count; ++i) {
    NvmlDevice device{.index = i, .uuid = {}, .name = {}, .instances = {}};
    if (const nvml::Code code = functions_.by_index(i, &device.handle); code != nvml::kSuccess) {
      all.notes.push_back("GPU " + std::to_string(i) + " does not answer: " + nvml_error(code));
      continue;
    }
    device.uuid = text_of(functions_.uuid, device.handle);
    device.name = text_of(functions_.name, device.handle);
    const NvmlFunctions& has = functions_;
    if (unsigned most = 0; has.instance_by_index != nullptr && has.gpu_instance != nullptr &&
                           has.compute_instance != nullptr && has.most_instances != nullptr &&
                           has.most_instances(device.handle, &most) == nvml::kSuccess && most > 0) {
      device.instances = instances(device.handle, most);
      if (device.instances.empty())
        all.notes.push_back("GPU " + std::to_string(i) +
                            " is in MIG mode and shows no instance: nothing can run on it");
    }
    all.list.push_back(std::move(device));
  }
  if (all.list.empty()) return unsupported(all.notes.empty() ? "NVML shows no device" : all.notes.front());
  if (visible == nullptr) return all;

  Devices chosen{{}, all.notes};
  const bool bus_order = order != nullptr && std::string_view(order) == "PCI_BUS_ID";
  const bool alike = std::all_of(all.list.begin(), all.list.end(),
                                 [&](const NvmlDevice& one) { return one.name == all.list.front().name; });
  const auto find = [&](auto&& is_it) {
    const auto found = std::find_if(all.list.begin(), all.list.end(), is_it);
    return found == all.list.end() ? nullptr : &*found;
  };
  for (const std::string& word : words(visible)) {
    const NvmlDevice* device = nullptr;
    const NvmlInstance* part = nullptr;
    if (const auto at = number(word)) {
      if (!bus_order && !alike) {
        all.notes.emplace_back(
            "CUDA_VISIBLE_DEVICES has numbers, which mean an order that NVML does not know (devices differ, and "
            "CUDA_DEVICE_ORDER is not PCI_BUS_ID): all devices are taken");
        return all;
      }
      device = find([&](const NvmlDevice& one) { return one.index == *at; });
    } else if (word.starts_with(kMigPrefix)) {
      for (const NvmlDevice& one : all.list)
        for (const NvmlInstance& instance : one.instances)
          if (is_called(instance, one, word)) device = &one, part = &instance;
    } else if (word.starts_with(kGpuPrefix)) {  // its beginning is enough
      device = find([&](const NvmlDevice& one) { return one.uuid.starts_with(word); });
    }
    if (device == nullptr) break;  // as CUDA does: what stands behind a wrong one does not count
    auto taken = std::find_if(chosen.list.begin(), chosen.list.end(),
                              [&](const NvmlDevice& one) { return one.index == device->index; });
    if (taken == chosen.list.end()) {
      taken = chosen.list.insert(taken, *device);
      if (part != nullptr) taken->instances.clear();
    }
    if (part != nullptr && std::none_of(taken->instances.begin(), taken->instances.end(),
                                        [&](const NvmlInstance& one) { return one.handle == part->handle; }))
      taken->instances.push_back(*part);
  }
  if (chosen.list.empty())
    return unsupported("CUDA_VISIBLE_DEVICES leaves none of " + std::to_string(all.list.size()) + " devices: \"" +
                       visible + "\"");
  return chosen;
}

}  // namespace strobe::gpu
