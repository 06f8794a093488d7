// Synthetic traces of any size: the same bytes for the same count.
#pragma once

#include <cstdint>
#include <filesystem>

#include "strobe/base/result.h"

namespace strobe::scale {

// A training run as PyTorch's profiler writes it, in its layout: steps of forward and backward operators (three deep)
// on two threads, their launches, kernels on two streams, copies, arrows and memory events. `count` complete events.
Result<void> write_kineto(const std::filesystem::path& path, uint64_t count);

// A run of a pipeline as the recorder's import gives it, as a trace file: six stages of which one has two threads,
// ranges three deep, flows between the stages, counters of their queues. About `count` ranges.
Result<void> write_pipeline(const std::filesystem::path& path, uint64_t count);

// Records `count` ranges of four threads with the recorder itself: frames of nested ranges with flows, arguments and
// counters. `folder` is then a spool.
Result<void> record_spool(const std::filesystem::path& folder, uint64_t count);

}  // namespace strobe::scale
