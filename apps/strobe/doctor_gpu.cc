#include "doctor_checks.h"
#include "gpu/probe.h"
#include "in_child.h"

namespace strobe::app {

// In a process of its own: a driver that was initialised here would stay with all that follows.
std::vector<Check> check_gpu() {
  constexpr int kTimeout_s = 30;
  const auto answer = in_child(
      [] {
        const gpu::Probe probe = gpu::probe();
        return (probe.works ? "+" : probe.has_driver ? "-" : " ") + probe.line;
      },
      kTimeout_s);
  if (!answer) return {{"GPU collection", Health::kBroken, false, answer.error().to_string(), ""}};
  const std::string line = answer->empty() ? "" : answer->substr(1);
  // Without a GPU there is nothing to mend.
  if (answer->starts_with(' ')) return {{"GPU collection", Health::kMissing, false, "off: " + line, ""}};
  if (!answer->starts_with('+')) return {{"GPU collection", Health::kBroken, false, "off: " + line, ""}};
  std::vector<Check> checks{{"GPU collection", Health::kWorks, false, line, ""}};
  if (const std::string limit = gpu::counter_restriction(); !limit.empty())
    checks.push_back({"GPU counters", Health::kAdvice, false,
                      "the driver gives them to " + limit + "; kernels and copies are collected all the same",
                      "load the driver's module with NVreg_RestrictProfilingToAdminUsers=0, or run as root"});
  return checks;
}

}  // namespace strobe::app
