#include "tenants/policy.h"

#include <array>
#include <utility>

#include "base/suggest.h"

namespace strobe::tenants {
namespace {

constexpr std::array<std::pair<Policy, std::string_view>, 7> kNames = {{
    {Policy::kConcurrent, "concurrent"},
    {Policy::kFifo, "fifo"},
    {Policy::kPriority, "priority"},
    {Policy::kPriorityPreemptive, "priority-preemptive"},
    {Policy::kRoundRobin, "round-robin"},
    {Policy::kEdf, "edf"},
    {Policy::kExclusive, "exclusive"},
}};

}  // namespace

std::string_view to_string(Policy policy) {
  for (const auto& [value, name] : kNames)
    if (value == policy) return name;
  return "?";
}

std::vector<std::string> policy_names() {
  std::vector<std::string> names;
  for (const auto& [value, name] : kNames) names.emplace_back(name);
  return names;
}

Result<Policy> parse_policy(std::string_view text) {
  for (const auto& [value, name] : kNames)
    if (name == text) return value;
  return usage_error("there is no policy \"" + std::string(text) + "\"; " + suggest(text, policy_names()));
}

}  // namespace strobe::tenants
