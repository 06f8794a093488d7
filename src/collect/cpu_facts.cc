#include "collect/cpu_facts.h"

#include <algorithm>
#include <cstdlib>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "collect/proc_text.h"

namespace strobe::collect {

namespace fs = std::filesystem;
using Facts = std::map<std::string, std::string>;

namespace {

// Instruction sets that kernels of DNN engines choose by; in the words of the Linux kernel for x86 and ARM.
constexpr std::string_view kFeatures[] = {
    "sse4_2",   "avx",         "f16c",        "fma",         "avx2",     "avx_vnni", "avx512f",  "avx512bw",
    "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "amx_int8", "amx_bf16", "neon",
    "asimd",    "asimdhp",     "asimddp",     "i8mm",        "bf16",     "sve",      "sve2",     "sme"};

struct ArmPart {
  std::string_view implementer, part, name;
};
// MIDR_EL1 part numbers, from the technical reference manuals of the cores.
constexpr ArmPart kArmParts[] = {
    {"0x41", "0xd03", "ARM Cortex-A53"},  {"0x41", "0xd04", "ARM Cortex-A35"},   {"0x41", "0xd05", "ARM Cortex-A55"},
    {"0x41", "0xd07", "ARM Cortex-A57"},  {"0x41", "0xd08", "ARM Cortex-A72"},   {"0x41", "0xd09", "ARM Cortex-A73"},
    {"0x41", "0xd0a", "ARM Cortex-A75"},  {"0x41", "0xd0b", "ARM Cortex-A76"},   {"0x41", "0xd0c", "ARM Neoverse-N1"},
    {"0x41", "0xd40", "ARM Neoverse-V1"}, {"0x41", "0xd42", "ARM Cortex-A78AE"}, {"0x41", "0xd49", "ARM Neoverse-N2"},
    {"0x41", "0xd4f", "ARM Neoverse-V2"}, {"0x4e", "0x003", "NVIDIA Denver 2"},  {"0x4e", "0x004", "NVIDIA Carmel"},
    {"0xc0", "0xac3", "Ampere AmpereOne"}};

std::string arm_name(const std::string& implementer, const std::string& part) {
  for (const ArmPart& known : kArmParts)
    if (known.implementer == implementer && known.part == part) return std::string(known.name);
  return "ARM core (implementer " + implementer + ", part " + part + ")";
}

// One map a processor; blocks of /proc/cpuinfo are parted by empty lines.
std::vector<Facts> processors(const std::string& cpuinfo) {
  std::vector<Facts> blocks;
  for (size_t at = 0; at < cpuinfo.size();) {
    const size_t end = std::min(cpuinfo.find("\n\n", at), cpuinfo.size());
    auto block = key_values(std::string_view(cpuinfo).substr(at, end - at), ':');
    if (block.count("processor") != 0) blocks.push_back(std::move(block));
    at = end + 2;
  }
  return blocks;
}

std::optional<std::string> value(const Facts& block, const char* key) {
  const auto found = block.find(key);
  return found == block.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
}

void set(Facts& facts, const char* key, const std::optional<std::string>& text) {
  if (text) facts[key] = *text;
}

void model_and_vendor(const std::vector<Facts>& blocks, const fs::path& root, Facts& facts) {
  set(facts, "cpu.vendor", value(blocks[0], "vendor_id"));
  if (const auto name = value(blocks[0], "model name")) {
    facts["cpu.model"] = *name;
    return;
  }
  // ARM: the distinct cores in order of appearance ("big.LITTLE" has two), and the board where a device tree names it.
  std::vector<std::string> names;
  for (const Facts& block : blocks) {
    const auto implementer = value(block, "CPU implementer");
    const auto part = value(block, "CPU part");
    if (!implementer || !part) continue;
    const auto name = arm_name(*implementer, *part);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  std::string model;
  for (const auto& name : names) model.append(model.empty() ? "" : " + ").append(name);
  if (!model.empty()) facts["cpu.model"] = model;
  set(facts, "host.board", read_text(root / "proc/device-tree/model"));
}

void features(const Facts& block, Facts& facts) {
  auto flags = value(block, "flags");
  const bool x86 = flags.has_value();
  if (!flags) flags = value(block, "Features");
  if (!flags) return;
  const auto words = words_of(*flags);
  const std::set<std::string_view> have(words.begin(), words.end());
  std::string text;
  for (const auto feature : kFeatures)
    if (have.count(feature) != 0) text.append(text.empty() ? "" : " ").append(feature);
  facts["cpu.features"] = text;
  // Only x86 says here whether a hypervisor is below, and how its clock behaves.
  if (!x86) return;
  facts["host.virtualised"] = have.count("hypervisor") != 0 ? "true" : "false";
  facts["cpu.tsc_invariant"] = have.count("constant_tsc") != 0 && have.count("nonstop_tsc") != 0 ? "true" : "false";
}

std::vector<int> online_cpus(const fs::path& root) {
  const auto text = read_text(root / "sys/devices/system/cpu/online");
  return text ? cpu_list(*text) : std::vector<int>{};
}

void topology(const std::vector<Facts>& blocks, const std::vector<int>& online, const fs::path& root, Facts& facts) {
  if (!online.empty()) {
    facts["cpu.cores_online"] = std::to_string(online.size());
  } else if (!blocks.empty()) {
    facts["cpu.cores_online"] = std::to_string(blocks.size());
  }
  std::set<int64_t> sockets;
  for (const int cpu : online)
    if (const auto socket = read_number(root / "sys/devices/system/cpu" / ("cpu" + std::to_string(cpu)) /
                                        "topology/physical_package_id"))
      sockets.insert(*socket);
  if (!sockets.empty()) facts["cpu.sockets"] = std::to_string(sockets.size());
  const fs::path first = root / "sys/devices/system/cpu" / ("cpu" + std::to_string(online.empty() ? 0 : online[0]));
  if (const auto siblings = read_text(first / "topology/thread_siblings_list"))
    if (const auto threads = cpu_list(*siblings); !threads.empty())
      facts["cpu.threads_per_core"] = std::to_string(threads.size());
}

void frequency(const std::vector<int>& online, const fs::path& root, Facts& facts) {
  const fs::path cpus = root / "sys/devices/system/cpu";
  std::set<std::string> governors;
  int64_t khz_max = 0;
  for (const int cpu : online) {
    const fs::path folder = cpus / ("cpu" + std::to_string(cpu)) / "cpufreq";
    if (const auto governor = read_text(folder / "scaling_governor")) governors.insert(*governor);
    khz_max = std::max(khz_max, read_number(folder / "cpuinfo_max_freq").value_or(0));
  }
  std::string text;
  for (const auto& governor : governors) text.append(text.empty() ? "" : ", ").append(governor);
  if (!text.empty()) facts["cpu.governor"] = text;
  if (khz_max > 0) facts["cpu.mhz_max"] = std::to_string(khz_max / 1000);
  if (const auto boost = read_number(cpus / "cpufreq/boost")) {
    facts["cpu.boost"] = *boost != 0 ? "on" : "off";
  } else if (const auto no_turbo = read_number(cpus / "intel_pstate/no_turbo")) {
    facts["cpu.boost"] = *no_turbo != 0 ? "off" : "on";
  }
}

// "1024K" or "32M" in KiB.
std::optional<int64_t> kib(std::string_view size) {
  if (size.empty()) return std::nullopt;
  const char unit = size.back();
  if (unit != 'K' && unit != 'M') return std::nullopt;
  const auto count = number_of(size.substr(0, size.size() - 1));
  return count && *count > 0 ? std::optional(unit == 'M' ? *count * 1024 : *count) : std::nullopt;
}

void caches(const fs::path& root, Facts& facts) {
  for (int index = 0; index < 8; ++index) {
    const fs::path folder = root / "sys/devices/system/cpu/cpu0/cache" / ("index" + std::to_string(index));
    const auto level = read_text(folder / "level");
    const auto type = read_text(folder / "type");
    const auto size = kib(read_text(folder / "size").value_or(""));
    if (!level || !type || !size || *type == "Instruction") continue;
    const std::string key = "cpu.l" + *level + (*level == "1" ? "d" : "") + "_kib";
    facts.emplace(key, std::to_string(*size));
  }
}

}  // namespace

Facts cpu_facts(const fs::path& root) {
  Facts facts;
  const auto blocks = processors(read_text(root / "proc/cpuinfo").value_or(""));
  if (!blocks.empty()) {
    model_and_vendor(blocks, root, facts);
    features(blocks[0], facts);
  }
  const auto online = online_cpus(root);
  topology(blocks, online, root, facts);
  frequency(online, root, facts);
  caches(root, facts);
  return facts;
}

}  // namespace strobe::collect
