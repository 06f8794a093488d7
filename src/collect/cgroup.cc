#include "collect/cgroup.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "collect/proc_text.h"

namespace strobe::collect {

namespace fs = std::filesystem;

namespace {

// Calls visit with every folder from mount/group up to mount itself. A container may see a group path of its host that
// does not exist inside: then only the mount's root is left, which is the container's own group.
template <typename Visit>
void walk_up(const fs::path& mount, const fs::path& group, Visit visit) {
  fs::path relative = group.relative_path();
  for (;;) {
    visit(mount / relative);
    if (relative.empty()) return;
    relative = relative.parent_path();
  }
}

// Whether "cpu,cpuacct" has the controller "cpu".
bool lists(std::string_view controllers, std::string_view controller) {
  while (!controllers.empty()) {
    const size_t comma = std::min(controllers.find(','), controllers.size());
    if (controllers.substr(0, comma) == controller) return true;
    controllers.remove_prefix(std::min(comma + 1, controllers.size()));
  }
  return false;
}

// Lines of /proc/self/cgroup: "hierarchy:controllers:path"; version 2 is "0::path".
template <typename VisitV2, typename VisitV1>
void for_each_group(const fs::path& root, std::string_view controller, VisitV2 version2, VisitV1 version1) {
  const auto groups = read_text(root / "proc/self/cgroup");
  if (!groups) return;
  const fs::path mount = root / "sys/fs/cgroup";
  for (const auto line : lines_of(*groups)) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string controllers(line.substr(first + 1, second - first - 1));
    const fs::path path = line.substr(second + 1);
    if (controllers.empty()) {
      walk_up(mount, path, version2);
      walk_up(mount / "unified", path, version2);
      continue;
    }
    // "cpu,cpuacct" is one hierarchy, mounted under that name or under each alone.
    if (!lists(controllers, controller)) continue;
    walk_up(mount / controllers, path, version1);
    if (controllers != controller) walk_up(mount / controller, path, version1);
  }
}

template <typename T>
void keep_smaller(std::optional<T>& best, T value) {
  best = best ? std::min(*best, value) : value;
}

}  // namespace

std::optional<double> cgroup_cpu_quota(const fs::path& root) {
  std::optional<double> cores;
  for_each_group(
      root, "cpu",
      [&cores](const fs::path& folder) {
        const auto text = read_text(folder / "cpu.max");  // "200000 100000" or "max 100000"
        if (!text) return;
        const auto words = words_of(*text);
        const auto quota = number_of(words[0]);
        const auto period = words.size() > 1 ? number_of(words[1]) : 100000;
        if (quota && period && *quota > 0 && *period > 0)
          keep_smaller(cores, static_cast<double>(*quota) / static_cast<double>(*period));
      },
      [&cores](const fs::path& folder) {
        const auto quota = read_number(folder / "cpu.cfs_quota_us");  // -1: none
        const auto period = read_number(folder / "cpu.cfs_period_us");
        if (quota && period && *quota > 0 && *period > 0)
          keep_smaller(cores, static_cast<double>(*quota) / static_cast<double>(*period));
      });
  return cores;
}

std::optional<int64_t> cgroup_memory_limit(const fs::path& root) {
  // Version 1 writes "no limit" as the largest multiple of the page size.
  constexpr int64_t kNoLimit = int64_t{1} << 60;
  std::optional<int64_t> bytes;
  const auto keep = [&bytes](std::optional<int64_t> limit) {
    if (limit && *limit > 0 && *limit < kNoLimit) keep_smaller(bytes, *limit);
  };
  for_each_group(
      root, "memory", [&keep](const fs::path& folder) { keep(read_number(folder / "memory.max")); },
      [&keep](const fs::path& folder) { keep(read_number(folder / "memory.limit_in_bytes")); });
  return bytes;
}

}  // namespace strobe::collect
