// Facts of this machine and process, as key and value; a fact that cannot be read is left out, never guessed.
#pragma once

#include <map>
#include <string>

namespace strobe::collect {

// "cpu.model", "cpu.cores_online", "cpu.cores_allowed" (affinity and cgroup quota), "cpu.governor", "cpu.mhz_max",
// "cpu.features" (avx2, avx512f, avx512_bf16, amx_int8, ...), "cpu.l2_kib", "cpu.l3_kib", "memory.total_mib",
// "memory.available_mib", "os.name", "os.kernel", "host.virtualised", "strobe.version", "strobe.revision",
// "strobe.build", "compiler", "time.utc".
std::map<std::string, std::string> machine_facts();

// Cores that this process may use: the affinity mask, cut by the cgroup's CPU quota where that is smaller.
double allowed_cores();

// CPU time used by this process so far, all threads, user and system, nanoseconds.
int64_t process_cpu_ns();

}  // namespace strobe::collect
