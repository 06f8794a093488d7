// Facts of this machine and process, as key and value; a fact that cannot be read is left out, never guessed.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

namespace strobe::collect {

// "cpu.model", "cpu.vendor", "cpu.arch", "cpu.cores_online", "cpu.cores_allowed" (affinity and cgroup quota),
// "cpu.cores_quota" (where a cgroup sets one), "cpu.sockets", "cpu.threads_per_core", "cpu.governor", "cpu.mhz_max",
// "cpu.boost", "cpu.tsc_invariant", "cpu.features" (avx2, avx512f, avx512_bf16, amx_int8, ...; space-separated),
// "cpu.l1d_kib", "cpu.l2_kib" (of one core), "cpu.l3_kib" (shared by the cores around core 0), "memory.total_mib",
// "memory.available_mib", "memory.limit_mib" (where a cgroup sets one), "os.name", "os.kernel", "host.virtualised"
// ("true" or "false"), "host.hypervisor", "host.board", "host.container", "strobe.version", "strobe.revision",
// "strobe.build", "compiler", "time.utc".
std::map<std::string, std::string> machine_facts();

// The part of machine_facts that is read from files under root ("/" of the machine, or a copy of such a tree).
std::map<std::string, std::string> machine_facts_of_tree(const std::filesystem::path& root);

// Cores that this process may use: the affinity mask, cut by the cgroup's CPU quota where that is smaller.
double allowed_cores();

}  // namespace strobe::collect
