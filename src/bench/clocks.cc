#include "strobe/bench/clocks.h"

#include <cmath>

#include "bench/clock_control.h"

namespace strobe::bench {
namespace {

std::string whole(double value) {
  return std::to_string(std::lround(value));
}

class Teller {
 public:
  Teller(const ClockControl& control, const Log& log) : control_(control), log_(log) {}

  bool did(bool worked, const std::string& done, const std::string& failed, LogLevel level = LogLevel::kWarning) const {
    const std::string why = worked ? "" : control_.why();
    log_(worked ? LogLevel::kInfo : level, worked ? done : failed + (why.empty() ? "" : ": " + why));
    return worked;
  }
  // A setting that the device does not have was not changed either.
  void undid(bool worked, const std::string& done, const std::string& failed) const {
    did(worked, done, failed, control_.is_unsupported() ? LogLevel::kDebug : LogLevel::kWarning);
  }

 private:
  const ClockControl& control_;
  const Log& log_;
};

}  // namespace

GpuClocks maximize_clocks(int gpu, const Log& log) {
  GpuClocks clocks;
  const auto control = clock_control(gpu);
  const auto persistence = control->persistence();
  if (!persistence) {
    log(LogLevel::kWarning, "no GPU answers (NVML, nvidia-smi): its clocks were not maximized");
    return clocks;
  }
  const Teller teller(*control, log);
  clocks.persistence_was_on = *persistence;
  if (!clocks.persistence_was_on) {
    if (!teller.did(control->set_persistence(true), "persistence mode is on", "cannot turn on the persistence mode",
                    LogLevel::kError))
      return clocks;
    clocks.touched = true;
  }
  clocks.touched |= teller.did(control->set_auto_boost(false), "automatic boost is off",
                               "cannot turn off the automatic boost", LogLevel::kDebug);
  const auto limit = control->power_limit_w(), most = control->most_power_limit_w();
  if (limit && most && *limit < *most) {
    if (teller.did(control->set_power_limit(*most), "power limit: " + whole(*most) + " W",
                   "cannot raise the power limit")) {
      clocks.power_limit_w = limit;
      clocks.touched = true;
    }
  }
  const auto graphics = control->most_graphics_mhz(), memory = control->most_memory_mhz();
  if (!graphics || !memory) {
    log(LogLevel::kError, "the GPU does not tell its highest clocks: they were not maximized");
    return clocks;
  }
  if (!teller.did(control->lock_graphics(*graphics), "graphics clock: " + whole(*graphics) + " MHz",
                  "cannot lock the graphics clock", LogLevel::kError))
    return clocks;
  clocks.touched = true;
  const bool memory_locked = teller.did(control->lock_memory(*memory), "memory clock: " + whole(*memory) + " MHz",
                                        "cannot lock the memory clock") ||
                             control->is_unsupported();  // it has one memory clock
  teller.did(control->set_application_clocks(*memory, *graphics), "application clocks are set",
             "cannot set the application clocks", LogLevel::kDebug);
  const std::string state = control->state();
  clocks.done = memory_locked && (state == "P0" || state.empty());
  log(clocks.done ? LogLevel::kInfo : LogLevel::kWarning,
      clocks.done ? "the GPU's clocks are maximized" : "the GPU is in state " + state + ", expected P0");
  return clocks;
}

void reset_clocks(int gpu, const GpuClocks& before, const Log& log) {
  if (!before.touched) return;
  const auto control = clock_control(gpu);
  const Teller teller(*control, log);
  teller.undid(control->reset_memory(), "memory clock is reset", "cannot reset the memory clock");
  teller.undid(control->reset_graphics(), "graphics clock is reset", "cannot reset the graphics clock");
  teller.did(control->reset_application_clocks(), "application clocks are reset", "cannot reset the application clocks",
             LogLevel::kDebug);
  if (before.power_limit_w)
    teller.did(control->set_power_limit(*before.power_limit_w), "power limit is reset", "cannot reset the power limit");
  teller.did(control->set_auto_boost(true), "automatic boost is on", "cannot turn on the automatic boost",
             LogLevel::kDebug);
  if (!before.persistence_was_on)
    teller.did(control->set_persistence(false), "persistence mode is off", "cannot turn off the persistence mode");
}

}  // namespace strobe::bench
