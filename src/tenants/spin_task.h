// Work of known length instead of a network: what a plan is tried with before the models are there, what measures how
// kinds of work disturb each other, and what tests know the truth of.
#pragma once

#include <memory>
#include <string>

#include "tenants/task.h"

namespace strobe::tenants {

struct SpinWork {
  enum class Kind : uint8_t { kCompute, kBandwidth } kind = Kind::kCompute;
  double seconds = 0;  // alone on a free core of this machine, as it ran when this process measured it
  int64_t pieces = 1;
};
// "spin:5ms" (arithmetic in registers), "stream:5ms" (copies through memory that no cache holds); "spin:5ms/10" in ten
// pieces, between which the device may change hands. Errors: kUsage.
Result<SpinWork> parse_spin(const std::string& model);
bool is_spin(const std::string& model);

// Does so many rounds of work; a round takes about a microsecond. Returns a number that depends on all of it.
double spin_rounds(SpinWork::Kind kind, int64_t rounds);
// Rounds a second on a free core, measured once a process (the best of several short measurements).
double rounds_per_second(SpinWork::Kind kind);

// Makes known what the cell's tenants need of that, before they run beside each other; processes forked later know it.
void measure_spin(const CellSpec& cell);

Result<std::unique_ptr<Task>> open_spin_task(const TenantSpec& tenant);

}  // namespace strobe::tenants
