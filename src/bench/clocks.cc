#include "strobe/bench/clocks.h"

#include <charconv>
#include <cmath>
#include <vector>

#include "bench/tool.h"

namespace strobe::bench {
namespace {

std::optional<double> first_number(const std::string& field, int gpu) {
  const auto rows = query_gpus(field, gpu);
  if (rows.empty() || rows[0].empty()) return std::nullopt;
  const std::string& text = rows[0][0];
  double value = 0;
  const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failed != std::errc{} || end == text.data()) return std::nullopt;
  return value;
}

std::string first_text(const std::string& field, int gpu) {
  const auto rows = query_gpus(field, gpu);
  return rows.empty() || rows[0].empty() ? std::string() : rows[0][0];
}

bool set(int gpu, const std::string& option) {
  std::vector<std::string> command{"nvidia-smi"};
  if (gpu != kAllGpus) command.insert(command.end(), {"-i", std::to_string(gpu)});
  command.push_back(option);
  return run_tool(command).has_value();
}

std::string whole(double value) {
  return std::to_string(std::lround(value));
}

class Setter {
 public:
  Setter(int gpu, const Log& log) : gpu_(gpu), log_(log) {}

  bool did(const std::string& option, const std::string& done, const std::string& failed,
           LogLevel level = LogLevel::kWarning) const {
    const bool worked = set(gpu_, option);
    log_(worked ? LogLevel::kInfo : level, worked ? done : failed);
    return worked;
  }

 private:
  int gpu_;
  const Log& log_;
};

}  // namespace

GpuClocks maximize_clocks(int gpu, const Log& log) {
  GpuClocks clocks;
  const std::string persistence = first_text("persistence_mode", gpu);
  if (persistence.empty()) {
    log(LogLevel::kWarning, "no GPU answers (nvidia-smi): its clocks were not maximized");
    return clocks;
  }
  const Setter setter(gpu, log);
  clocks.persistence_was_on = persistence == "Enabled";
  if (!clocks.persistence_was_on) {
    if (!setter.did("--persistence-mode=1", "persistence mode is on", "cannot turn on the persistence mode",
                    LogLevel::kError))
      return clocks;
    clocks.touched = true;
  }
  clocks.touched |= setter.did("--auto-boost-default=DISABLED", "automatic boost is off",
                               "cannot turn off the automatic boost", LogLevel::kDebug);
  const auto limit = first_number("power.limit", gpu), most = first_number("power.max_limit", gpu);
  if (limit && most && *limit < *most) {
    if (setter.did("--power-limit=" + std::to_string(*most), "power limit: " + whole(*most) + " W",
                   "cannot raise the power limit")) {
      clocks.power_limit_w = limit;
      clocks.touched = true;
    }
  }
  const auto graphics = first_number("clocks.max.graphics", gpu), memory = first_number("clocks.max.memory", gpu);
  if (!graphics || !memory) {
    log(LogLevel::kError, "the GPU does not tell its highest clocks: they were not maximized");
    return clocks;
  }
  const std::string top = whole(*graphics), memory_top = whole(*memory);
  if (!setter.did("--lock-gpu-clocks=" + top + "," + top, "graphics clock: " + top + " MHz",
                  "cannot lock the graphics clock", LogLevel::kError))
    return clocks;
  clocks.touched = true;
  const bool memory_locked = setter.did("--lock-memory-clocks=" + memory_top + "," + memory_top,
                                        "memory clock: " + memory_top + " MHz", "cannot lock the memory clock");
  setter.did("--applications-clocks=" + memory_top + "," + top, "application clocks are set",
             "cannot set the application clocks", LogLevel::kDebug);
  const std::string state = first_text("pstate", gpu);
  clocks.done = memory_locked && state == "P0";
  log(clocks.done ? LogLevel::kInfo : LogLevel::kWarning,
      clocks.done ? "the GPU's clocks are maximized" : "the GPU is in state " + state + ", expected P0");
  return clocks;
}

void reset_clocks(int gpu, const GpuClocks& before, const Log& log) {
  if (!before.touched) return;
  const Setter setter(gpu, log);
  setter.did("--reset-memory-clocks", "memory clock is reset", "cannot reset the memory clock");
  setter.did("--reset-gpu-clocks", "graphics clock is reset", "cannot reset the graphics clock");
  setter.did("--reset-applications-clocks", "application clocks are reset", "cannot reset the application clocks",
             LogLevel::kDebug);
  if (before.power_limit_w)
    setter.did("--power-limit=" + std::to_string(*before.power_limit_w), "power limit is reset",
               "cannot reset the power limit");
  setter.did("--auto-boost-default=ENABLED", "automatic boost is on", "cannot turn on the automatic boost",
             LogLevel::kDebug);
  if (!before.persistence_was_on)
    setter.did("--persistence-mode=0", "persistence mode is off", "cannot turn off the persistence mode");
}

}  // namespace strobe::bench
