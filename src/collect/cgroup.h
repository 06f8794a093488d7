// Limits that a control group (container, service, slice) puts on this process.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

namespace strobe::collect {

// Each walks from the process's own group (/proc/self/cgroup) up to the mount's root, since a group above may be the
// tighter one, and looks into version 2 and version 1 hierarchies. root: "/" or a copy of such a tree.
std::optional<double> cgroup_cpu_quota(const std::filesystem::path& root);
std::optional<int64_t> cgroup_memory_limit(const std::filesystem::path& root);  // bytes

}  // namespace strobe::collect
