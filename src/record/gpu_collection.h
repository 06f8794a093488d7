// Collection of GPU work as a part of a recording (Options::gpu). This room knows no GPU: a program that has the
// collector in it says so here, any other one gets it out of libstrobe_inject.so.
#pragma once

#include <filesystem>
#include <string>

namespace strobe::record {

struct GpuCollection {
  // Begins a log in the recorder's folder. Empty: it has begun; else why not, in one line.
  std::string (*start)(const std::filesystem::path& folder);
  void (*stop)();
};
// To be called before the first start().
void provide_gpu_collection(const GpuCollection& collection);

// Of start() and stop(). Without a CUDA driver nothing happens; what else is in the way becomes the facts
// "gpu.collection" and "gpu.collection.PID".
void start_gpu_collection(const std::filesystem::path& folder);
void stop_gpu_collection();

// Ties the recorder's clock to CLOCK_MONOTONIC by marks, so that logs and recorder come together. Does nothing while
// nothing records.
inline constexpr const char* kClockMark = "strobe.clock";
inline constexpr const char* kClockKey = "monotonic_ns";          // read just before the mark
inline constexpr const char* kClockAfterKey = "monotonic_after";  // read just after the mark before this one
void mark_clock();

}  // namespace strobe::record
