#include "gpu/fake_metrics.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/cupti_metrics_abi.h"
#include "gpu/cupti_replay_abi.h"
#include "gpu/fake_gpu.h"
#include "gpu/fake_replay.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

namespace abi = strobe::gpu::cupti;

struct Ran {
  uint64_t start, end;
  bool is_gemm;
};
constexpr size_t kMostKernels = 4096;

struct State {
  std::mutex mutex;
  std::deque<Ran> kernels;
  bool enabled = false, started = false, full = false;
  bool stuck = false;  // full, and gives nothing until it is configured anew
  uint64_t interval = 0, next = 0, began = 0, looks_of_one = 0;
  bool ended = false;  // since the last look
  uint64_t stopped_at = 0;
  std::atomic<uint64_t> looks{0};
};
State& state() {
  static auto* one = new State;
  return *one;
}

}  // namespace

namespace strobe::gpu::testing {

void note_kernel(uint64_t start_ns, uint64_t end_ns, const char* name) {
  const std::lock_guard lock(state().mutex);
  state().kernels.push_back({start_ns, end_ns, std::string_view(name).find("gemm") != std::string_view::npos});
  if (state().kernels.size() > kMostKernels) state().kernels.pop_front();
}
void forget_kernels() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.kernels.clear();
  s.enabled = s.started = s.full = s.stuck = s.ended = false;
  s.looks = s.looks_of_one = 0;
}

}  // namespace strobe::gpu::testing

EXPORTED uint64_t fake_metrics_looks() {
  return state().looks;
}

#ifndef FAKE_WITHOUT_OPTIONAL
namespace {

int64_t setting(const char* name, int64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoll(text);
}
std::string text_setting(const char* name, const char* otherwise = "") {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : text;
}
int forced(const char* function) {
  return static_cast<int>(setting((std::string("FAKE_PM_") + function).c_str(), 0));
}

// A caller that fills in another size than the library's is one of another version.
template <typename Params>
bool fits(const Params* params) {
  return params != nullptr && params->struct_size == abi::kStructSize<Params> && params->priv == nullptr;
}

// Share of the time in which kernels ran: of all, those with gemm in their name, or the others.
enum class Which : uint8_t { kAll, kGemm, kOthers };
double share(uint64_t start, uint64_t end, Which which) {
  std::vector<Ran> inside;
  {
    const std::lock_guard lock(state().mutex);
    for (const Ran& one : state().kernels)
      if (one.start < end && one.end > start && (which == Which::kAll || one.is_gemm == (which == Which::kGemm)))
        inside.push_back({std::max(one.start, start), std::min(one.end, end), false});
  }
  std::sort(inside.begin(), inside.end(), [](const Ran& a, const Ran& b) { return a.start < b.start; });
  uint64_t covered = 0, to = start;
  for (const Ran& one : inside) {
    covered += one.end > to ? one.end - std::max(one.start, to) : 0;
    to = std::max(to, one.end);
  }
  return static_cast<double>(covered) / static_cast<double>(end - start);
}

double wave(std::string_view metric, uint64_t start, uint64_t end) {
  const auto is = [metric](std::string_view part) { return metric.find(part) != std::string_view::npos; };
  if (is("hit_rate")) return share(start, end, Which::kAll) > 0 ? 90 : std::nan("");
  if (is("tensor")) return 80 * share(start, end, Which::kGemm);
  if (is("fma")) return 40 * share(start, end, Which::kOthers);
  if (is("fp64")) return 0;
  if (is("warps_active")) return 50 * share(start, end, Which::kAll);
  if (is("inst_executed")) return 30 * share(start, end, Which::kAll);
  if (is("l1tex")) return 1e9 * share(start, end, Which::kAll);
  if (is("cycles_active")) return 100 * share(start, end, Which::kAll);
  if (is("read_throughput")) return (start + (end - start) / 2) / 5'000'000 % 2 == 0 ? 20 : 60;
  return 10;
}

constexpr const char* kKnown[] = {"sm__cycles_active",        "sm__warps_active",       "sm__pipe_tensor_cycles_active",
                                  "dram__read_throughput",    "dram__write_throughput", "sector_hit_rate",
                                  "sm__inst_executed",        "sm__pipe_fma_cycles",    "sm__pipe_fp64_cycles",
                                  "l1tex__m_xbar2l1tex_read", "gpu__time_duration",     "lts__t_sector_hit_rate",
                                  "dram__throughput",         "smsp__sass_thread_inst", "l1tex__t_requests"};

struct Host {
  std::vector<std::string> names;
};
std::string configuration(const Host& host) {
  std::string text;
  for (const std::string& name : host.names) text += name + "\n";
  return text;
}

struct Image {
  uint32_t magic, room, count;
};
struct Sample {
  uint64_t start, end;
};
constexpr uint32_t kMagic = 0x504d4653;
bool torn_down = false;

int64_t ahead() {
  return setting("FAKE_PM_AHEAD_NS", 0);
}

}  // namespace

// ---- the driver

EXPORTED int cuDeviceGet(int* device, int number) {
  *device = number;
  return 0;
}
EXPORTED int cuDeviceGetName(char* name, int room, int) {
  std::snprintf(name, static_cast<size_t>(room), "Fake GPU 9000");
  return 0;
}
EXPORTED int cuDeviceGetUuid_v2(uint8_t* uuid, int device) {
  std::memset(uuid, 0, 16);
  // Under MIG: the second instance of fake_nvml.cc's device.
  if (setting("FAKE_CUDA_MIG", 0) != 0) {
    uuid[0] = 0x31, uuid[15] = 2;
    return 0;
  }
  uuid[0] = 0xAB, uuid[1] = static_cast<uint8_t>(device), uuid[15] = 0xCD;
  return 0;
}

EXPORTED int cuDeviceGetAttribute(int* value, int attribute, int) {
  *value = attribute == 16 ? 132 : attribute == 75 ? 9 : 0;
  return 0;
}

// ---- CUPTI: the host's side

EXPORTED int cuptiProfilerInitialize(abi::ProfilerInitialize* params) {
  return fits(params) ? forced("Initialize") : 1;
}
EXPORTED int cuptiDeviceGetChipName(abi::ChipName* params) {
  static auto* const name = new std::string;
  if (!fits(params)) return 1;
  *name = text_setting("FAKE_PM_CHIP", "GH100");
  params->name = name->c_str();
  return forced("GetChipName");
}
EXPORTED int cuptiProfilerDeviceSupported(abi::DeviceSupported* params) {
  if (!fits(params) || (params->api != abi::kApiPmSampling && params->api != abi::kApiRangeProfiling)) return 1;
  const std::string in_the_way = text_setting("FAKE_PM_SUPPORTED");
  const auto level = [&](const char* what) {
    return in_the_way == what ? abi::kLevelUnsupported : abi::kLevelSupported;
  };
  params->supported = in_the_way.empty() ? abi::kLevelSupported : abi::kLevelUnsupported;
  params->architecture = level("architecture");
  params->vgpu = in_the_way == "vgpu-off" ? abi::kLevelDisabled : level("vgpu");
  params->confidential = level("confidential");
  params->sli = params->mining_card = params->wsl = abi::kLevelSupported;
  return 0;
}
EXPORTED int cuptiProfilerHostInitialize(abi::HostInitialize* params) {
  // The library of the host's side is opened now, and what it holds is destroyed before what was there already.
  static const bool opened = std::atexit([] { torn_down = true; }) == 0;
  if (!fits(params) || !opened) return 1;
  if (setting("FAKE_PM_CHIP_UNKNOWN", 0) != 0) return 46;
  params->host = new Host;
  return 0;
}
EXPORTED int cuptiProfilerHostDeinitialize(abi::HostObject* params) {
  if (!fits(params)) return 1;
  delete static_cast<Host*>(params->host);
  return 0;
}
EXPORTED int cuptiProfilerHostConfigAddMetrics(abi::HostAddMetrics* params) {
  if (!fits(params)) return 1;
  const std::string unknown = text_setting("FAKE_PM_UNKNOWN", "\n");
  for (size_t i = 0; i < params->count; ++i) {
    const std::string name = params->names[i];
    if (name.find(unknown) != std::string::npos) return 1;
    if (std::none_of(std::begin(kKnown), std::end(kKnown),
                     [&](const char* known) { return name.find(known) != std::string::npos; }))
      return 1;
    static_cast<Host*>(params->host)->names.push_back(name);
  }
  return 0;
}
EXPORTED int cuptiProfilerHostGetConfigImageSize(abi::HostImageSize* params) {
  if (!fits(params)) return 1;
  params->size = configuration(*static_cast<Host*>(params->host)).size();
  return 0;
}
EXPORTED int cuptiProfilerHostGetConfigImage(abi::HostImage* params) {
  if (!fits(params)) return 1;
  const std::string text = configuration(*static_cast<Host*>(params->host));
  if (params->size < text.size()) return 1;
  std::memcpy(params->image, text.data(), text.size());
  return 0;
}
EXPORTED int cuptiProfilerHostGetNumOfPasses(abi::HostPasses* params) {
  if (!fits(params)) return 1;
  const std::string_view text(reinterpret_cast<const char*>(params->image), params->size);
  params->passes = text.find(text_setting("FAKE_PM_TWO_PASSES", "\t")) == std::string_view::npos ? 1 : 2;
  return 0;
}
EXPORTED int cuptiProfilerHostEvaluateToGpuValues(abi::HostEvaluate* params) {
  if (!fits(params) || torn_down) return 1;
  Image image{};
  std::memcpy(&image, params->image, sizeof image);
  if (image.magic == strobe::gpu::testing::kReplayMagic)
    return strobe::gpu::testing::evaluate_replayed(params->image, params->index, params->names, params->count,
                                                   params->values);
  if (image.magic != kMagic || params->index >= image.count) return 1;
  Sample sample{};
  std::memcpy(&sample, params->image + sizeof image + params->index * sizeof sample, sizeof sample);
  const auto back = static_cast<uint64_t>(ahead());
  for (size_t i = 0; i < params->count; ++i)
    params->values[i] = wave(params->names[i], sample.start - back, sample.end - back);
  return forced("Evaluate");
}

// ---- CUPTI: the device's side

EXPORTED int cuptiPmSamplingGetCounterAvailability(abi::PmAvailability* params) {
  if (!fits(params)) return 1;
  params->size = 16;
  if (params->image != nullptr) std::memset(params->image, 1, 16);
  return forced("GetCounterAvailability");
}
EXPORTED int cuptiPmSamplingEnable(abi::PmEnable* params) {
  if (!fits(params)) return 1;
  if (const int code = forced("Enable"); code != 0) return code;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (s.enabled) return abi::kInvalidOperation;
  s.enabled = true;
  params->sampling = &s;
  return 0;
}
EXPORTED int cuptiPmSamplingDisable(abi::PmObject* params) {
  if (!fits(params) || params->sampling != &state()) return 1;
  const std::lock_guard lock(state().mutex);
  state().enabled = state().started = false;
  return 0;
}
EXPORTED int cuptiPmSamplingSetConfig(abi::PmConfig* params) {
  if (!fits(params) || params->sampling != &state() || params->size == 0 || params->hardware_bytes == 0) return 1;
  if (const int code = forced("SetConfig"); code != 0) return code;
  if (state().started) return abi::kInvalidOperation;
  if (setting("FAKE_PM_FULL_FOR_GOOD", 0) == 0) state().stuck = false;
  // One that counts cycles runs at 1.4 GHz.
  const bool by_cycles = params->trigger == abi::kEverySystemCycles;
  state().interval = by_cycles ? static_cast<uint64_t>(static_cast<double>(params->interval) / 1.4) : params->interval;
  return params->append == abi::kKeepOldest && state().interval > 0 ? 0 : 1;
}
EXPORTED int cuptiPmSamplingStart(abi::PmObject* params) {
  if (!fits(params) || params->sampling != &state()) return 1;
  if (const int code = forced("Start"); code != 0) return code;
  const std::lock_guard lock(state().mutex);
  if (state().started) return abi::kInvalidOperation;
  state().started = true, state().full = false;
  state().next = state().began = fake_now();
  return 0;
}
EXPORTED int cuptiPmSamplingStop(abi::PmObject* params) {
  if (!fits(params) || params->sampling != &state()) return 1;
  const std::lock_guard lock(state().mutex);
  state().ended = true, state().stopped_at = fake_now();
  return std::exchange(state().started, false) ? 0 : abi::kInvalidOperation;
}
EXPORTED int cuptiPmSamplingGetCounterDataSize(abi::PmDataSize* params) {
  if (!fits(params) || params->count == 0) return 1;
  params->size = sizeof(Image) + params->samples * sizeof(Sample);
  return 0;
}
EXPORTED int cuptiPmSamplingCounterDataImageInitialize(abi::PmDataInitialize* params) {
  if (!fits(params)) return 1;
  const Image image{kMagic, static_cast<uint32_t>((params->size - sizeof(Image)) / sizeof(Sample)), 0};
  std::memcpy(params->image, &image, sizeof image);
  return 0;
}
EXPORTED int cuptiPmSamplingDecodeData(abi::PmDecode* params) {
  if (!fits(params) || params->sampling != &state()) return 1;
  ++state().looks;
  if (setting("FAKE_PM_HANGS", 0) != 0)
    for (;;) ::pause();
  if (const int code = forced("DecodeData"); code != 0) return code;
  Image image{};
  std::memcpy(&image, params->image, sizeof image);
  if (image.magic != kMagic || image.count != 0) return 1;
  State& s = state();
  const std::lock_guard lock(s.mutex);
  const uint64_t now = s.started ? fake_now() : s.stopped_at;
  if (++s.looks_of_one == static_cast<uint64_t>(setting("FAKE_PM_FULL_AT", 0))) s.stuck = true;
  if (s.stuck) {
    s.next = now;
    params->overflow = 1;
    return abi::kOutOfMemory;
  }
  const auto room = static_cast<uint64_t>(setting("FAKE_PM_ROOM", 1 << 30));
  const uint64_t waiting = now > s.next ? (now - s.next) / s.interval : 0;
  if (waiting > room) s.full = true;
  const uint64_t kept = std::min({waiting, room, static_cast<uint64_t>(setting("FAKE_PM_A_LOOK", 1 << 30))});
  for (; image.count < std::min<uint64_t>(kept, image.room); ++image.count, s.next += s.interval) {
    const auto shifted = s.next + static_cast<uint64_t>(ahead());
    const Sample sample{shifted, shifted + s.interval};
    std::memcpy(params->image + sizeof image + image.count * sizeof sample, &sample, sizeof sample);
  }
  if (std::exchange(s.ended, false) && image.count < image.room) {
    const auto shifted = s.began + static_cast<uint64_t>(ahead());
    const Sample none{shifted, shifted};
    std::memcpy(params->image + sizeof image + image.count++ * sizeof none, &none, sizeof none);
  }
  std::memcpy(params->image, &image, sizeof image);
  params->stop = kept > image.count ? abi::kImageIsFull : abi::kEndOfRecords;
  if (kept < waiting && setting("FAKE_PM_A_LOOK", 0) != 0) params->stop = abi::kStoppedOtherwise;
  params->overflow = s.full ? 1 : 0;
  return 0;
}
EXPORTED int cuptiPmSamplingGetCounterDataInfo(abi::PmDataInfo* params) {
  if (!fits(params)) return 1;
  Image image{};
  std::memcpy(&image, params->image, sizeof image);
  params->total = image.room, params->populated = params->completed = image.count;
  return 0;
}
EXPORTED int cuptiPmSamplingCounterDataGetSampleInfo(abi::PmSampleInfo* params) {
  if (!fits(params) || params->sampling != &state()) return 1;
  Sample sample{};
  std::memcpy(&sample, params->image + sizeof(Image) + params->index * sizeof sample, sizeof sample);
  params->start = sample.start, params->end = sample.end;
  return 0;
}
#endif
