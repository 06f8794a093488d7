// Memory of this process: what is resident, its peak, and a limit on what it may still take.
#pragma once

#include <cstdint>
#include <string_view>

#include "strobe/base/result.h"

namespace strobe::measure {

struct ResidentMemory {
  int64_t now_bytes = 0;   // VmRSS
  int64_t peak_bytes = 0;  // VmHWM, since the process began or the last reset_peak()
};
// Errors: kUnsupported where /proc does not tell.
Result<ResidentMemory> resident_memory();

// Sets the peak to what is resident now (/proc/self/clear_refs, proc(5)). Errors: kUnsupported where the kernel does
// not let it.
Result<void> reset_peak();

// What malloc has handed out and not got back, in all arenas: also that of frameworks that allocate tensors through it.
int64_t allocated_bytes();

// Gives back to the system what malloc keeps for later.
void release_free_memory();

// From now on allocations fail once the private writable memory of this process has grown by that much (RLIMIT_DATA:
// unlike RLIMIT_AS it leaves out libraries and reserved addresses; unlike a control group it needs no rights).
// Errors: kUnsupported.
Result<void> limit_growth(int64_t bytes);

// Memory that may be taken without making the machine short of it: MemAvailable, or what a control group leaves.
// Errors: kUnsupported where /proc/meminfo does not tell.
Result<int64_t> available_memory();

// Whether a message of an allocator or framework is of memory that could not be had.
bool tells_of_memory(std::string_view message);

}  // namespace strobe::measure
