#include "bench/clock_control.h"

#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

#include "bench/tool.h"
#include "gpu/cupti_errors.h"
#include "gpu/nvml.h"
#include "strobe/bench/clocks.h"

namespace strobe::bench {
namespace {

std::string whole(double value) {
  return std::to_string(std::lround(value));
}

class ToolControl : public ClockControl {
 public:
  explicit ToolControl(int gpu) : gpu_(gpu) {}
  std::optional<bool> persistence() override {
    const std::string text = first_text("persistence_mode");
    if (text.empty()) return std::nullopt;
    return text == "Enabled";
  }
  bool set_persistence(bool on) override { return set(on ? "--persistence-mode=1" : "--persistence-mode=0"); }
  bool set_auto_boost(bool on) override {
    return set(on ? "--auto-boost-default=ENABLED" : "--auto-boost-default=DISABLED");
  }
  std::optional<double> power_limit_w() override { return first_number("power.limit"); }
  std::optional<double> most_power_limit_w() override { return first_number("power.max_limit"); }
  bool set_power_limit(double watts) override { return set("--power-limit=" + std::to_string(watts)); }
  std::optional<double> most_graphics_mhz() override { return first_number("clocks.max.graphics"); }
  std::optional<double> most_memory_mhz() override { return first_number("clocks.max.memory"); }
  bool lock_graphics(double mhz) override { return set("--lock-gpu-clocks=" + whole(mhz) + "," + whole(mhz)); }
  bool lock_memory(double mhz) override { return set("--lock-memory-clocks=" + whole(mhz) + "," + whole(mhz)); }
  bool reset_graphics() override { return set("--reset-gpu-clocks"); }
  bool reset_memory() override { return set("--reset-memory-clocks"); }
  bool set_application_clocks(double memory_mhz, double graphics_mhz) override {
    return set("--applications-clocks=" + whole(memory_mhz) + "," + whole(graphics_mhz));
  }
  bool reset_application_clocks() override { return set("--reset-applications-clocks"); }
  std::string state() override { return first_text("pstate"); }

 private:
  std::string first_text(const std::string& field) const {
    const auto rows = query_gpus(field, gpu_);
    return rows.empty() || rows[0].empty() ? std::string() : rows[0][0];
  }
  std::optional<double> first_number(const std::string& field) const {
    const std::string text = first_text(field);
    double value = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (failed != std::errc{} || end == text.data()) return std::nullopt;
    return value;
  }
  bool set(const std::string& option) const {
    std::vector<std::string> command{"nvidia-smi"};
    if (gpu_ != kAllGpus) command.insert(command.end(), {"-i", std::to_string(gpu_)});
    command.push_back(option);
    return run_tool(command).has_value();
  }
  int gpu_;
};

// Automatic boost and application clocks are settings of GPUs from before the clocks could be locked.
class NvmlControl : public ClockControl {
 public:
  NvmlControl(gpu::Nvml nvml, std::vector<gpu::NvmlDevice> devices)
      : nvml_(std::move(nvml)), devices_(std::move(devices)) {}
  std::optional<bool> persistence() override {
    int on = 0;
    if (!got(nvml_->persistence, &on)) return true;  // not told: nothing to turn on
    return on != 0;
  }
  bool set_persistence(bool on) override { return set(nvml_->set_persistence, on ? 1 : 0); }
  bool set_auto_boost(bool) override { return unsupported(); }
  std::optional<double> power_limit_w() override {
    unsigned mw = 0;
    if (!got(nvml_->power_limit, &mw)) return std::nullopt;
    return mw / kMilli;
  }
  std::optional<double> most_power_limit_w() override {
    unsigned least = 0, most = 0;
    if (!got(nvml_->power_limits, &least, &most)) return std::nullopt;
    return most / kMilli;
  }
  bool set_power_limit(double watts) override {
    return set(nvml_->set_power_limit, static_cast<unsigned>(std::lround(watts * kMilli)));
  }
  std::optional<double> most_graphics_mhz() override { return most_mhz(gpu::nvml::kGraphicsClock); }
  std::optional<double> most_memory_mhz() override { return most_mhz(gpu::nvml::kMemoryClock); }
  bool lock_graphics(double mhz) override { return lock(nvml_->lock_gpu_clocks, mhz); }
  bool lock_memory(double mhz) override { return lock(nvml_->lock_memory_clocks, mhz); }
  bool reset_graphics() override { return set(nvml_->reset_gpu_clocks); }
  bool reset_memory() override { return set(nvml_->reset_memory_clocks); }
  bool set_application_clocks(double, double) override { return unsupported(); }
  bool reset_application_clocks() override { return unsupported(); }
  std::string state() override {
    int state = 0;
    if (!got(nvml_->performance_state, &state)) return {};
    return "P" + std::to_string(state);
  }
  std::string why() const override { return gpu::nvml_error(code_); }
  bool is_unsupported() const override { return code_ == gpu::nvml::kNotSupported; }

 private:
  static constexpr double kMilli = 1e3;

  bool unsupported() {
    code_ = gpu::nvml::kNotSupported;
    return false;
  }
  template <typename Function, typename... Arguments>
  bool got(Function* function, Arguments... arguments) const {
    return function != nullptr && function(devices_.front().handle, arguments...) == gpu::nvml::kSuccess;
  }
  template <typename Function, typename... Arguments>
  bool set(Function* function, Arguments... arguments) {
    code_ = gpu::nvml::kSuccess;
    for (const gpu::NvmlDevice& device : devices_) {
      const auto code = function == nullptr ? gpu::nvml::kFunctionNotFound : function(device.handle, arguments...);
      if (code != gpu::nvml::kSuccess) code_ = code;
    }
    return code_ == gpu::nvml::kSuccess;
  }
  template <typename Function>
  bool lock(Function* function, double mhz) {
    const auto exact = static_cast<unsigned>(std::lround(mhz));
    return set(function, exact, exact);
  }
  std::optional<double> most_mhz(int clock) const {
    unsigned mhz = 0;
    if (!got(nvml_->max_clock, clock, &mhz)) return std::nullopt;
    return mhz;
  }
  gpu::Nvml nvml_;
  std::vector<gpu::NvmlDevice> devices_;
  gpu::nvml::Code code_ = gpu::nvml::kSuccess;
};

}  // namespace

std::unique_ptr<ClockControl> clock_control(int gpu) {
  if (auto nvml = gpu::Nvml::open()) {
    if (auto all = nvml->devices(nullptr, nullptr)) {
      std::vector<gpu::NvmlDevice> devices;
      for (gpu::NvmlDevice& device : all->list)
        if (gpu == kAllGpus || static_cast<int>(device.index) == gpu) devices.push_back(std::move(device));
      if (!devices.empty()) return std::make_unique<NvmlControl>(std::move(*nvml), std::move(devices));
    }
  }
  return std::make_unique<ToolControl>(gpu);
}

}  // namespace strobe::bench
