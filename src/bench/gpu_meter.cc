#include "bench/gpu_meter.h"

#include <charconv>
#include <map>
#include <utility>
#include <vector>

#include "base/gpu_words.h"
#include "bench/plan.h"
#include "bench/tool.h"
#include "gpu/nvml.h"

namespace strobe::bench {
namespace {

class NvmlMeter : public GpuMeter {
 public:
  NvmlMeter(gpu::Nvml nvml, std::vector<gpu::NvmlDevice> devices) : nvml_(std::move(nvml)) {
    for (gpu::NvmlDevice& device : devices) {
      const auto index = static_cast<int>(device.index);
      devices_.emplace(index, std::move(device));
    }
  }

  std::optional<GpuReading> read(int gpu) override {
    const auto found = devices_.find(gpu);
    if (found == devices_.end()) return std::nullopt;
    const gpu::NvmlDevice& device = found->second;
    constexpr double kMilli = 1e-3;
    GpuReading reading{
        .name = device.name, .graphics_mhz = {}, .memory_mhz = {}, .watts = {}, .joules = {}, .throttled = {}};
    unsigned value = 0;
    unsigned long long wide = 0;  // NOLINT(google-runtime-int)
    // What changes fastest comes first.
    if (got(device, nvml_->energy, &wide)) reading.joules = static_cast<double>(wide) * kMilli;
    if (got(device, nvml_->power, &value)) reading.watts = value * kMilli;
    if (got(device, nvml_->clock, gpu::nvml::kGraphicsClock, &value)) reading.graphics_mhz = value;
    if (got(device, nvml_->clock, gpu::nvml::kMemoryClock, &value)) reading.memory_mhz = value;
    if (got(device, nvml_->clock_reasons, &wide)) reading.throttled = (wide & gpu_words::kThrottled) != 0;
    const bool any = reading.joules || reading.watts || reading.graphics_mhz || reading.memory_mhz || reading.throttled;
    return any ? std::optional(std::move(reading)) : std::nullopt;
  }
  std::chrono::milliseconds period() const override { return std::chrono::milliseconds(500); }

 private:
  template <typename Function, typename... Arguments>
  static bool got(const gpu::NvmlDevice& device, Function* function, Arguments... arguments) {
    return function != nullptr && function(device.handle, arguments...) == gpu::nvml::kSuccess;
  }
  const gpu::Nvml nvml_;
  std::map<int, gpu::NvmlDevice> devices_;
};

class ToolMeter : public GpuMeter {
 public:
  std::optional<GpuReading> read(int gpu) override {
    const auto rows = query_gpus("clocks.gr,clocks.mem,power.draw,name", gpu);
    if (rows.empty() || rows[0].size() < 4) return std::nullopt;
    const std::vector<std::string>& row = rows[0];
    return GpuReading{.name = row[3],
                      .graphics_mhz = number(row[0]),
                      .memory_mhz = number(row[1]),
                      .watts = number(row[2]),
                      .joules = {},
                      .throttled = {}};
  }
  // A process is started each time.
  std::chrono::milliseconds period() const override { return std::chrono::seconds(2); }

 private:
  static std::optional<double> number(const std::string& text) {
    double value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc{} || end == text.data()) return std::nullopt;  // "[N/A]"
    return value;
  }
};

}  // namespace

Result<std::unique_ptr<GpuMeter>> gpu_meter() {
  auto nvml = gpu::Nvml::open();
  if (nvml) {
    STROBE_ASSIGN(gpu::Nvml::Devices devices, nvml->devices(nullptr, nullptr));
    return std::unique_ptr<GpuMeter>(std::make_unique<NvmlMeter>(std::move(*nvml), std::move(devices.list)));
  }
  // One that is there and refuses would refuse the program, too.
  if (nvml.error().kind() == ErrorKind::kNotFound && find_program("nvidia-smi"))
    return std::unique_ptr<GpuMeter>(std::make_unique<ToolMeter>());
  return unsupported(nvml.error().to_string());
}

}  // namespace strobe::bench
