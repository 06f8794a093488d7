#include "base/gpu_words.h"

#include <charconv>

namespace strobe::gpu_words {

std::string clock_reasons_text(uint64_t reasons) {
  constexpr std::pair<uint64_t, const char*> kWords[] = {
      {kIdle, "idle"},
      {kApplicationClocks, "application clocks"},
      {kPowerCap, "power cap"},
      {kHardwareSlowdown, "hardware slowdown"},
      {kSyncBoost, "sync boost"},
      {kThermal, "thermal slowdown"},
      {kHardwareThermal, "thermal slowdown by hardware"},
      {kPowerBrake, "power brake"},
      {kDisplayClocks, "display clocks"},
  };
  std::string text;
  const auto add = [&text](const char* word) { text += (text.empty() ? "" : ", ") + std::string(word); };
  for (const auto& [bit, word] : kWords) {
    if ((reasons & bit) != 0) add(word);
    reasons &= ~bit;
  }
  if (reasons != 0) add("others");
  return text;
}

std::string of_instance(unsigned gpu_instance, std::string_view name) {
  return "mig." + std::to_string(gpu_instance) + "." + std::string(name);
}
std::string of_instance(unsigned gpu_instance, unsigned compute_instance, std::string_view name) {
  return of_instance(gpu_instance, std::to_string(compute_instance) + "." + std::string(name));
}

std::optional<std::pair<int, std::string_view>> parse_counter(std::string_view name) {
  constexpr std::string_view kPrefix = "gpu.";
  if (!name.starts_with(kPrefix)) return std::nullopt;
  name.remove_prefix(kPrefix.size());
  int gpu = 0;
  const auto [end, failed] = std::from_chars(name.data(), name.data() + name.size(), gpu);
  if (failed != std::errc{} || end == name.data() + name.size() || *end != '.' || gpu < 0) return std::nullopt;
  return std::pair{gpu, name.substr(static_cast<size_t>(end - name.data()) + 1)};
}

}  // namespace strobe::gpu_words
