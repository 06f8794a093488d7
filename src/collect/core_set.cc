#include "collect/core_set.h"

#include <sched.h>

#include <algorithm>
#include <charconv>
#include <cstring>

namespace strobe::collect {
namespace {

constexpr int kMostCores = 4096;

// A number at the beginning of text, which is cut off; -1 where there is none.
int take_number(std::string_view& text) {
  int number = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0 || number >= kMostCores) return -1;
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

std::string text_of(const std::vector<int>& cores) {
  std::string text;
  for (const int core : cores) text += (text.empty() ? "" : ",") + std::to_string(core);
  return text;
}

class CpuSet {
 public:
  CpuSet() : set_(CPU_ALLOC(kMostCores)) { CPU_ZERO_S(size(), set_); }
  ~CpuSet() { CPU_FREE(set_); }
  CpuSet(const CpuSet&) = delete;
  CpuSet& operator=(const CpuSet&) = delete;
  static size_t size() { return CPU_ALLOC_SIZE(kMostCores); }
  cpu_set_t* get() { return set_; }
  void add(int core) { CPU_SET_S(static_cast<size_t>(core), size(), set_); }
  bool has(int core) const { return CPU_ISSET_S(static_cast<size_t>(core), size(), set_) != 0; }

 private:
  cpu_set_t* set_;
};

}  // namespace

Result<std::vector<int>> parse_cores(std::string_view list) {
  const auto wrong = [&] {
    return usage_error("cores '" + std::string(list) + "': expected numbers and ranges, e.g. 0 or 0,2 or 0-3");
  };
  std::vector<int> cores;
  std::string_view rest = list;
  for (;;) {
    const int first = take_number(rest);
    int last = first;
    if (rest.starts_with("-")) {
      rest.remove_prefix(1);
      last = take_number(rest);
    }
    if (first < 0 || last < first) return wrong();
    for (int core = first; core <= last; ++core) cores.push_back(core);
    if (rest.empty()) break;
    if (!rest.starts_with(",")) return wrong();
    rest.remove_prefix(1);
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  return cores;
}

std::string allowed_core_list() {
  CpuSet allowed;
  if (::sched_getaffinity(0, CpuSet::size(), allowed.get()) != 0) return "0";
  std::string text;
  for (int core = 0; core < kMostCores; ++core) {
    if (!allowed.has(core)) continue;
    int last = core;
    while (last + 1 < kMostCores && allowed.has(last + 1)) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(core);
    if (last > core) text += "-" + std::to_string(last);
    core = last;
  }
  return text;
}

Result<void> check_cores(std::string_view list) {
  STROBE_ASSIGN(const std::vector<int> cores, parse_cores(list));
  CpuSet allowed;
  if (::sched_getaffinity(0, CpuSet::size(), allowed.get()) != 0) return {};
  std::vector<int> there;
  for (int core = 0; core < kMostCores; ++core)
    if (allowed.has(core)) there.push_back(core);
  for (const int core : cores)
    if (!allowed.has(core))
      return unsupported("core " + std::to_string(core) + " is not there for this process; there are " +
                         text_of(there));
  return {};
}

Result<void> bind_to_cores(std::string_view list) {
  STROBE_TRY(check_cores(list));
  STROBE_ASSIGN(const std::vector<int> cores, parse_cores(list));
  CpuSet wanted;
  for (const int core : cores) wanted.add(core);
  if (::sched_setaffinity(0, CpuSet::size(), wanted.get()) != 0)
    return unsupported("binding to cores " + text_of(cores) + ": " + std::strerror(errno));
  return {};
}

}  // namespace strobe::collect
