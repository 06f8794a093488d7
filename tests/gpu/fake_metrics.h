// The stand-in's hardware counters (fake_metrics.cc), as fake_gpu.cc tells them what ran.
//
// Waves, over a sample's time: sm__cycles_active 100, warps_active 50, inst_executed 30, l1tex (sectors a second) 1e9
// of the time in which any kernel ran; tensor 80 of that in which one with "gemm" in its name did, fma 40 of the
// others'; hit rate 90 where any ran, else not a number; dram__read 20 and 60 in turns of 5 ms of the clock;
// dram__write 10; fp64 0.
//
// Variables of the environment: FAKE_PM_<function> (code that cuptiPmSampling<function> gives), FAKE_PM_CHIP,
// FAKE_PM_CHIP_UNKNOWN, FAKE_PM_SUPPORTED (architecture, vgpu, vgpu-off, confidential: what is in the way),
// FAKE_PM_UNKNOWN and FAKE_PM_TWO_PASSES (part of the names of metrics that are not known, or need two passes),
// FAKE_PM_AHEAD_NS (the device's clock against CUPTI's), FAKE_PM_ROOM (samples that the hardware's buffer holds),
// FAKE_PM_FULL_AT (the look at which that buffer is full, and gives nothing more until it is configured anew),
// FAKE_PM_FULL_FOR_GOOD (nor then), FAKE_PM_A_LOOK (samples that a look gives at most, which it stops at for no reason
// that it says), FAKE_PM_HANGS. As seen of CUPTI 13.3 on an H100, the look after a stop also gives a
// sample of no length, at the time of the start.
#pragma once

#include <cstdint>

namespace strobe::gpu::testing {

void note_kernel(uint64_t start_ns, uint64_t end_ns, const char* name);
void forget_kernels();

}  // namespace strobe::gpu::testing
