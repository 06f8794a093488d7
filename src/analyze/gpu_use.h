// What devices did and drew, out of the figures that were sampled of them (base/gpu_words.h).
#pragma once

#include <cstdint>

#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// The part of a timeline that its figures are about.
struct Stretch {
  int64_t start_ns = 0, end_ns = 0;
  uint64_t frames = 0;  // finished in it; 0: it has none
};
// The pipeline's run, the tenants' window, or where there is neither, the whole.
Stretch measured_stretch(const trace::Timeline& timeline);

// One row a device with samples in the stretch, or before and after it: gpu, name, samples, busy_percent,
// memory_busy_percent, memory_used_mib (most), mean_w, energy_j, energy_j_per_frame, sm_clock_mhz (median while it was
// not idle), sm_clock_low_mhz, sm_clock_high_mhz, throttled_share (0..1, of the samples that were not idle),
// throttled_by, temperature_c (highest). Energy is that of the whole device, idle time and other programs included: the
// difference of its counter, between samples on straight lines, or where it has none, the area under its power. A note
// tells of a clock that moved by more than 2 %, and of a stretch too short for the counter's steps.
Table gpu_use(const trace::Timeline& timeline, const Stretch& stretch);

// The samples in the columns of pPerf's monitor, a row a device and reading: time (s of the timeline), gpu_util,
// mem_util (percent), mem_used_MB (of 2^20 bytes), power_W; then gpu, sm_clock_MHz, mem_clock_MHz, temperature_C,
// clock_event_reasons. Use is the mean of what came since the row before; what was not told is empty.
Table gpu_samples(const trace::Timeline& timeline);

}  // namespace strobe::analyze
