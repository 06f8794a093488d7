// The settings of a GPU that decide its clocks, behind the two ways to reach them.
#pragma once

#include <memory>
#include <optional>
#include <string>

namespace strobe::bench {

// Each setter returns whether it worked; what is not told is absent.
class ClockControl {
 public:
  virtual ~ClockControl() = default;
  virtual std::optional<bool> persistence() = 0;
  virtual bool set_persistence(bool on) = 0;
  virtual bool set_auto_boost(bool on) = 0;
  virtual std::optional<double> power_limit_w() = 0;
  virtual std::optional<double> most_power_limit_w() = 0;
  virtual bool set_power_limit(double watts) = 0;
  virtual std::optional<double> most_graphics_mhz() = 0;
  virtual std::optional<double> most_memory_mhz() = 0;
  virtual bool lock_graphics(double mhz) = 0;
  virtual bool lock_memory(double mhz) = 0;
  virtual bool reset_graphics() = 0;
  virtual bool reset_memory() = 0;
  virtual bool set_application_clocks(double memory_mhz, double graphics_mhz) = 0;
  virtual bool reset_application_clocks() = 0;
  virtual std::string state() = 0;  // "P0"; empty: not told
  // Why the last setter failed; empty where it is not told.
  virtual std::string why() const { return {}; }
  // The last setter failed because devices of this kind do not have the setting.
  virtual bool is_unsupported() const { return false; }
};

// By NVML, or where it is not there or does not show the GPU, by the program nvidia-smi. gpu: the number in both, or
// kAllGpus; the figures are those of the first.
std::unique_ptr<ClockControl> clock_control(int gpu);

}  // namespace strobe::bench
