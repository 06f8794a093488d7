#include "collect/machine.h"

#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <vector>

#include "base/version.h"
#include "collect/cgroup.h"
#include "collect/cpu_facts.h"
#include "collect/proc_text.h"

namespace strobe::collect {

namespace fs = std::filesystem;
using Facts = std::map<std::string, std::string>;

namespace {

void memory_facts(const fs::path& root, Facts& facts) {
  const auto meminfo = key_values(read_text(root / "proc/meminfo").value_or(""), ':');
  const auto mib = [&meminfo](const char* key) -> std::optional<int64_t> {
    const auto found = meminfo.find(key);
    if (found == meminfo.end()) return std::nullopt;
    const auto words = words_of(found->second);  // "8052668 kB"
    if (words.size() != 2 || words[1] != "kB") return std::nullopt;
    const auto kib = number_of(words[0]);
    return kib ? std::optional(*kib / 1024) : std::nullopt;
  };
  if (const auto total = mib("MemTotal")) facts["memory.total_mib"] = std::to_string(*total);
  if (const auto available = mib("MemAvailable")) facts["memory.available_mib"] = std::to_string(*available);
  if (const auto limit = cgroup_memory_limit(root)) facts["memory.limit_mib"] = std::to_string(*limit >> 20);
}

void os_facts(const fs::path& root, Facts& facts) {
  for (const char* path : {"etc/os-release", "usr/lib/os-release"}) {
    const auto text = read_text(root / path);
    if (!text) continue;
    const auto values = key_values(*text, '=');
    const auto name = values.find("PRETTY_NAME");
    if (name == values.end()) continue;
    std::string pretty = name->second;
    if (pretty.size() >= 2 && (pretty.front() == '"' || pretty.front() == '\'') && pretty.back() == pretty.front())
      pretty = pretty.substr(1, pretty.size() - 2);
    facts["os.name"] = pretty;
    break;
  }
  if (const auto release = read_text(root / "proc/sys/kernel/osrelease")) facts["os.kernel"] = *release;
}

void host_facts(const fs::path& root, Facts& facts) {
  auto hypervisor = read_text(root / "sys/hypervisor/type");  // Xen
  if (!hypervisor && facts["host.virtualised"] == "true") hypervisor = read_text(root / "sys/class/dmi/id/sys_vendor");
  if (facts["host.virtualised"].empty()) facts.erase("host.virtualised");
  if (hypervisor) facts["host.hypervisor"] = *hypervisor;
  std::error_code ignored;
  if (fs::exists(root / ".dockerenv", ignored)) {
    facts["host.container"] = "docker";
  } else if (fs::exists(root / "run/.containerenv", ignored)) {
    facts["host.container"] = "podman";
  }
}

// Cores of the affinity mask; the set grows until the kernel's mask fits.
std::optional<int> affinity_cores() {
  for (int cpus = 1024; cpus <= 1 << 18; cpus *= 2) {
    cpu_set_t* set = CPU_ALLOC(cpus);
    if (set == nullptr) return std::nullopt;
    const size_t bytes = CPU_ALLOC_SIZE(cpus);
    const int failed = ::sched_getaffinity(0, bytes, set);
    const int count = failed == 0 ? CPU_COUNT_S(bytes, set) : 0;
    CPU_FREE(set);
    if (failed == 0) return count;
  }
  return std::nullopt;
}

std::string decimal(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

Facts machine_facts_of_tree(const fs::path& root) {
  Facts facts = cpu_facts(root);
  memory_facts(root, facts);
  os_facts(root, facts);
  host_facts(root, facts);
  if (const auto quota = cgroup_cpu_quota(root)) facts["cpu.cores_quota"] = decimal(*quota);
  return facts;
}

Facts machine_facts() {
  Facts facts = machine_facts_of_tree("/");
  utsname name{};
  if (::uname(&name) == 0) {
    facts["cpu.arch"] = name.machine;
    facts["os.kernel"] = name.release;
  }
  facts["cpu.cores_allowed"] = decimal(allowed_cores());
  facts["strobe.version"] = version();
  facts["strobe.revision"] = git_revision();
  facts["strobe.build"] = build_type();
  facts["compiler"] = compiler();
  facts["time.utc"] = utc_now();
  return facts;
}

double allowed_cores() {
  const double cores = affinity_cores().value_or(static_cast<int>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN))));
  const auto quota = cgroup_cpu_quota("/");
  return quota ? std::min(cores, *quota) : cores;
}

}  // namespace strobe::collect
