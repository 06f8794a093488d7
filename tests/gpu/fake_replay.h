// The stand-in's range profiler (fake_replay.cc): what fake_launch() runs in a context for which it is on becomes a
// range of the counter data image, and the launch is told of as CUPTI tells it.
//
// Values of a kernel's n-th run, from 0: gpu__time_duration its duration; requests 1000 + n; percentages 80 of those
// with gemm in their name, 20 of the others, and tensor 0 of the others; hit rate not a number for the others.
//
// Variables of the environment: FAKE_RP_<function> (code that cuptiRangeProfiler<function> gives), FAKE_RP_LOSE (every
// n-th range is not in the image).
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace strobe::gpu::testing {

inline constexpr uint32_t kReplayMagic = 0x52504d46;
int evaluate_replayed(const uint8_t* image, size_t index, const char** names, size_t count, double* values);
void replay_kernel(const char* name, uint64_t duration_ns);
void forget_replay();
void tell_own_launch();  // a call of CUPTI's own, told of while we call CUPTI

}  // namespace strobe::gpu::testing
