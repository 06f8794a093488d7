// CPU time: of this process, and of everything on the CPUs that it may use.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

namespace strobe::collect {

// CPU time used by this process so far, all threads, user and system, nanoseconds.
int64_t process_cpu_ns();

// Time since the machine's start, summed over the CPUs that this process may use, nanoseconds.
struct CpuUse {
  int64_t busy_ns = 0;    // running any program, the kernel, or an interrupt; without stolen time
  int64_t stolen_ns = 0;  // ready to run, but the hypervisor ran something else
};
// Nothing where /proc/stat cannot be read, or a control group gives this process less than whole CPUs (what others do
// there is then no loss of ours). The kernel counts in steps of 10 ms.
std::optional<CpuUse> cpu_use();

// The same of a /proc under root, for the CPUs given.
std::optional<CpuUse> cpu_use_of_tree(const std::filesystem::path& root, const std::vector<int>& cpus);

}  // namespace strobe::collect
