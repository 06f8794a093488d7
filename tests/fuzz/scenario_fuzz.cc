// Links: strobe_simulate
// Any bytes as a scenario or a calibration: an error of one line; or a short run of it whose trace can be read again.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "analyze/blame.h"
#include "simulate/device.h"
#include "simulate/scenario.h"
#include "simulate/write_trace.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace strobe;
  const std::string text(reinterpret_cast<const char*>(data), size);
  if (const auto calibration = analyze::parse_calibration(text);
      !calibration && calibration.error().to_string().find('\n') != std::string::npos)
    std::abort();
  auto scenario = simulate::parse_scenario(text);
  if (!scenario) {
    if (scenario.error().to_string().find('\n') != std::string::npos) std::abort();
    return 0;
  }
  // Long ones are none of this target's business.
  scenario->duration_ns = std::min(scenario->duration_ns, 2e7);
  size_t operations = 0;
  for (const auto& tenant : scenario->tenants) {
    if (tenant.arrivals.period_ns < 1e5 || tenant.workers > 8 || tenant.arrivals.burst > 100) return 0;
    for (const auto& stage : tenant.stages) operations += stage.operations.size();
  }
  for (const auto& resource : scenario->resources)
    if (resource.quantum_ns > 0 && resource.quantum_ns < 1e4) return 0;
  for (const auto& load : scenario->loads)
    if (load.every_ns > 0 && load.every_ns < 1e5) return 0;
  if (operations > 1000 || scenario->tenants.size() > 16) return 0;
  const simulate::Log log = simulate::simulate(*scenario);
  auto trace = analyze::tenant_trace(simulate::timeline_of(*scenario, log));
  if (!trace) return 0;  // no frame within so short a time
  const analyze::BlameAnalysis analysis = analyze::blame(std::move(*trace));
  for (size_t i = 0; i < analysis.frames.size(); ++i)
    for (const analyze::BlameCell& cell : analysis.frames[i].direct)
      if (!(cell.ns >= 0)) std::abort();
  return 0;
}
