#include "record/gpu_collection.h"

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>

#include "base/plugin.h"
#include "record/clock.h"
#include "strobe/record/annotate.h"

namespace strobe::record {
namespace {

constexpr const char* kLibrary = "libstrobe_inject.so";

// What that library shows for this (inject/cuda.cc).
using StartFunction = int (*)(const char* folder, char* why, size_t why_bytes);
using StopFunction = void (*)();
std::atomic<StartFunction> library_start{nullptr};
std::atomic<StopFunction> library_stop{nullptr};

std::string start_by_library(const std::filesystem::path& folder) {
  const auto start = load_plugin(kLibrary, "strobe_gpu_start"), stop = load_plugin(kLibrary, "strobe_gpu_stop");
  if (!start) return start.error().to_string() + " (STROBE_PLUGIN_DIR names the folder)";
  if (!stop) return stop.error().to_string();
  library_start.store(reinterpret_cast<StartFunction>(*start));
  library_stop.store(reinterpret_cast<StopFunction>(*stop));
  std::array<char, 1024> why{};
  if (library_start.load()(folder.c_str(), why.data(), why.size()) == 0) return "";
  return why[0] == 0 ? "no reason was given" : why.data();
}
void stop_by_library() {
  if (const StopFunction stop = library_stop.load()) stop();
}

GpuCollection provided{start_by_library, stop_by_library};
std::atomic<bool> running{false};

// The collector asks for the same library, by the same variable, and says what is wrong with it.
bool has_driver() {
  const char* chosen = std::getenv("STROBE_CUDA_LIBRARY");
  const char* name = chosen != nullptr && *chosen != 0 ? chosen : "libcuda.so.1";
  return ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) != nullptr;
}

}  // namespace

void provide_gpu_collection(const GpuCollection& collection) {
  provided = collection;
}

void start_gpu_collection(const std::filesystem::path& folder) {
  if (!has_driver()) return;
  const std::string why = provided.start(folder);
  if (why.empty()) {
    running.store(true);
    mark_clock();
    return;
  }
  fact("gpu.collection", "off: " + why);
  fact("gpu.collection." + std::to_string(::getpid()), "off: " + why);
}

void stop_gpu_collection() {
  if (running.exchange(false)) provided.stop();
}

void mark_clock() {
  if (!recording()) return;
  static const Name mark_name{kClockMark};
  static const Name key{kClockKey};
  static const Name after_key{kClockAfterKey};
  constexpr int kMarks = 6;
  int64_t after = monotonic_ns();
  for (int i = 0; i < kMarks; ++i) {
    const int64_t before = monotonic_ns();
    mark(mark_name, kNoFrame, {}, {{key, before}, {after_key, after}});
    after = monotonic_ns();
  }
}

}  // namespace strobe::record
