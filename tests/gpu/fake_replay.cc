#include "gpu/fake_replay.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/cupti_replay_abi.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

namespace abi = strobe::gpu::cupti;

struct Range {
  uint64_t duration, run;
  uint32_t is_gemm;
};
struct Image {
  uint32_t magic, count;
  uint64_t room;
};
struct State {
  std::mutex mutex;
  bool enabled = false, on = false;
  uint8_t* image = nullptr;
  size_t most = 0;
  std::vector<Range> ranges;
  std::map<std::string, uint64_t> runs;  // by kernel
};
State& state() {
  static auto* one = new State;
  return *one;
}

}  // namespace

namespace strobe::gpu::testing {

void replay_kernel(const char* name, uint64_t duration_ns) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (!s.on) return;
  const bool gemm = std::string_view(name).find("gemm") != std::string_view::npos;
  s.ranges.push_back({duration_ns, s.runs[name]++, gemm ? 1U : 0U});
}
void forget_replay() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.enabled = s.on = false;
  s.ranges.clear(), s.runs.clear();
}
int evaluate_replayed(const uint8_t* bytes, size_t index, const char** names, size_t count, double* values) {
  Image image{};
  std::memcpy(&image, bytes, sizeof image);
  if (index >= image.count) return 1;
  Range range{};
  std::memcpy(&range, bytes + sizeof image + index * sizeof range, sizeof range);
  for (size_t i = 0; i < count; ++i) {
    const std::string_view name = names[i];
    const auto is = [name](std::string_view part) { return name.find(part) != std::string_view::npos; };
    values[i] = range.is_gemm != 0 ? 80 : 20;
    if (is("time_duration")) values[i] = static_cast<double>(range.duration);
    if (is("requests")) values[i] = 1000 + static_cast<double>(range.run);
    if (is("tensor") && range.is_gemm == 0) values[i] = 0;
    if (is("hit_rate") && range.is_gemm == 0) values[i] = std::nan("");
  }
  return 0;
}

}  // namespace strobe::gpu::testing

#ifndef FAKE_WITHOUT_OPTIONAL
namespace {

int forced(const char* function) {
  const char* text = std::getenv((std::string("FAKE_RP_") + function).c_str());
  return text == nullptr ? 0 : std::atoi(text);
}
template <typename Params>
bool fits(const Params* params) {
  return params != nullptr && params->struct_size == abi::kStructSize<Params> && params->priv == nullptr;
}

}  // namespace

EXPORTED int cuptiGetDeviceId(void*, uint32_t* device) {
  *device = 0;
  return 0;
}
EXPORTED int cuptiProfilerGetCounterAvailability(abi::ContextAvailability* params) {
  if (!fits(params) || params->context == nullptr) return 1;
  params->size = 16;
  if (params->image != nullptr) std::memset(params->image, 1, 16);
  return forced("GetCounterAvailability");
}
EXPORTED int cuptiRangeProfilerEnable(abi::RangeEnable* params) {
  if (!fits(params) || params->context == nullptr) return 1;
  if (const int code = forced("Enable"); code != 0) return code;
  const std::lock_guard lock(state().mutex);
  if (state().enabled) return abi::kInvalidOperation;
  state().enabled = true;
  params->profiler = &state();
  return 0;
}
EXPORTED int cuptiRangeProfilerDisable(abi::RangeObject* params) {
  if (!fits(params) || params->profiler != &state()) return 1;
  const std::lock_guard lock(state().mutex);
  state().enabled = state().on = false;
  return 0;
}
EXPORTED int cuptiRangeProfilerGetCounterDataSize(abi::RangeDataSize* params) {
  if (!fits(params) || params->count == 0 || params->most_nodes < params->most_ranges) return 1;
  params->size = sizeof(Image) + params->most_ranges * sizeof(Range);
  return 0;
}
EXPORTED int cuptiRangeProfilerCounterDataImageInitialize(abi::RangeDataInitialize* params) {
  if (!fits(params)) return 1;
  const Image image{strobe::gpu::testing::kReplayMagic, 0, (params->size - sizeof(Image)) / sizeof(Range)};
  std::memcpy(params->image, &image, sizeof image);
  return 0;
}
EXPORTED int cuptiRangeProfilerSetConfig(abi::RangeConfig* params) {
  if (!fits(params) || params->profiler != &state() || params->size == 0 || params->nesting_levels != 1) return 1;
  if (params->range != abi::kAutoRange || params->replay != abi::kKernelReplay || params->most_ranges == 0) return 1;
  const std::lock_guard lock(state().mutex);
  state().image = params->image, state().most = params->most_ranges;
  return forced("SetConfig");
}
EXPORTED int cuptiRangeProfilerStart(abi::RangeObject* params) {
  if (!fits(params) || params->profiler != &state()) return 1;
  strobe::gpu::testing::tell_own_launch();
  const std::lock_guard lock(state().mutex);
  if (state().on) return abi::kInvalidOperation;
  state().on = true;
  state().ranges.clear();
  return forced("Start");
}
EXPORTED int cuptiRangeProfilerStop(abi::RangeStop* params) {
  if (!fits(params) || params->profiler != &state()) return 1;
  const std::lock_guard lock(state().mutex);
  if (!state().on) return abi::kInvalidOperation;
  state().on = false;
  params->all_submitted = 1;
  return forced("Stop");
}
EXPORTED int cuptiRangeProfilerDecodeData(abi::RangeDecode* params) {
  if (!fits(params) || params->profiler != &state()) return 1;
  if (const int code = forced("DecodeData"); code != 0) return code;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  Image image{};
  std::memcpy(&image, s.image, sizeof image);
  if (image.magic != strobe::gpu::testing::kReplayMagic || image.count != 0) return 1;
  const int lose = forced("LOSE");
  for (size_t i = 0; i < s.ranges.size(); ++i) {
    if (lose > 0 && (i + 1) % static_cast<size_t>(lose) == 0) continue;
    if (image.count == s.most) {
      ++params->dropped;
      continue;
    }
    std::memcpy(s.image + sizeof image + image.count++ * sizeof(Range), &s.ranges[i], sizeof(Range));
  }
  std::memcpy(s.image, &image, sizeof image);
  return 0;
}
EXPORTED int cuptiRangeProfilerGetCounterDataInfo(abi::RangeDataInfo* params) {
  if (!fits(params)) return 1;
  Image image{};
  std::memcpy(&image, params->image, sizeof image);
  params->ranges = image.count;
  return 0;
}
#endif
