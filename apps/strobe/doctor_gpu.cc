#include <map>
#include <string>

#include "doctor_checks.h"
#include "gpu/metrics_sampler.h"
#include "gpu/nvml_reader.h"
#include "gpu/probe.h"
#include "in_child.h"

namespace strobe::app {

namespace {

constexpr int kTimeout_s = 30;

// "+" and what NVML tells, "-" where there is a driver that does not work with it, " " where there is none.
std::string try_nvml() {
  const auto nvml = gpu::Nvml::open();
  if (!nvml) return (gpu::probe_driver() ? "-" : " ") + nvml.error().to_string();
  const auto devices = nvml->visible_devices();
  if (!devices) return "-" + devices.error().to_string();
  std::string line = "+" + std::to_string(devices->list.size()) + (devices->list.size() == 1 ? " device" : " devices") +
                     ", driver " + nvml->driver_version() + " (" + nvml->path() + ")";
  gpu::ProcessNumbers numbers("/proc");
  std::map<std::string, std::string> missing;  // by figure: of which devices
  for (const gpu::NvmlDevice& device : devices->list) {
    gpu::NvmlReader reader(*nvml, device, numbers);
    const std::string name = "GPU " + std::to_string(device.index);
    if (!reader.read([](int64_t, const char*, double, uint32_t) {})) return "-" + name + ": " + reader.lost();
    if (const size_t parts = device.instances.size(); parts > 0)
      line += "; " + name + " in MIG mode, " + std::to_string(parts) + (parts == 1 ? " instance" : " instances");
    for (const auto& [figure, why] : reader.not_measured())
      missing[figure] += (missing[figure].empty() ? "" : ", ") + name;
  }
  for (const auto& [figure, of] : missing) line += "; no " + figure + " of " + of;
  for (const std::string& note : devices->notes) line += "; " + note;
  if (!numbers.are_ours()) line += "; in a pid namespace, where not every process can be told apart";
  return line;
}

Check check_nvml() {
  const std::string name = "GPU samples";
  const auto answer = in_child(try_nvml, kTimeout_s);
  if (!answer) return {name, Health::kBroken, false, answer.error().to_string(), ""};
  const std::string line = answer->empty() ? "" : answer->substr(1);
  if (answer->starts_with('+')) return {name, Health::kWorks, false, line, ""};
  return {name, answer->starts_with('-') ? Health::kBroken : Health::kMissing, false, "off: " + line, ""};
}

Check check_metrics() {
  const std::string name = "GPU counters";
  const auto answer = in_child(
      [] {
        const gpu::MetricsProbe probe = gpu::probe_metrics();
        return (probe.works ? "+" : probe.has_driver ? "-" : " ") + probe.line;
      },
      kTimeout_s);
  if (!answer) return {name, Health::kBroken, false, answer.error().to_string(), ""};
  const std::string line = answer->empty() ? "" : answer->substr(1);
  if (answer->starts_with('+')) return {name, Health::kWorks, false, line, ""};
  if (!answer->starts_with('-')) return {name, Health::kMissing, false, "off: " + line, ""};
  const std::string limit = gpu::counter_restriction();
  return {name, Health::kAdvice, false,
          "off: " + line + (limit.empty() ? "" : "; the driver gives them to " + limit) +
              "; kernels and copies are collected all the same",
          limit.empty() ? "" : "load the driver's module with NVreg_RestrictProfilingToAdminUsers=0, or run as root"};
}

}  // namespace

// In a process of its own: a driver that was initialised here would stay with all that follows.
std::vector<Check> check_gpu() {
  const auto answer = in_child(
      [] {
        const gpu::Probe probe = gpu::probe();
        return (probe.works ? "+" : probe.has_driver ? "-" : " ") + probe.line;
      },
      kTimeout_s);
  if (!answer) return {{"GPU collection", Health::kBroken, false, answer.error().to_string(), ""}, check_nvml()};
  const std::string line = answer->empty() ? "" : answer->substr(1);
  // Without a GPU there is nothing to mend.
  if (answer->starts_with(' ')) return {{"GPU collection", Health::kMissing, false, "off: " + line, ""}, check_nvml()};
  if (!answer->starts_with('+')) return {{"GPU collection", Health::kBroken, false, "off: " + line, ""}, check_nvml()};
  std::vector<Check> checks{{"GPU collection", Health::kWorks, false, line, ""}};
  checks.push_back(check_nvml());
  checks.push_back(check_metrics());
  return checks;
}

}  // namespace strobe::app
