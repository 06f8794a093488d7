// What the hardware counters of a device said while something ran on it.
#pragma once

#include "analyze/kernels.h"
#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// One row a device and kernel's name (or layer, range, frame, stage, tenant), most time first: name|layer|..., gpu,
// count, device_ns (in which any of it ran), alone_share, samples, filled_share, and a column for each counter of the
// trace (base/gpu_words.h): its time-weighted mean. By name the row's work is the kernels (and graphs) of that name,
// otherwise all that the device did for it, copies included.
//
// Counters are the whole device's. They are ascribed to a row where it alone ran: alone_share of its time; what ran at
// the same time belongs to nobody alone. Of the samples in that time those that lie in it whole are taken, where there
// are at least kWholeSamples. Otherwise its runs are shorter than the sampling, and where they add up to
// kSharedSamples samples, the mean is that of all samples that it has a part of, by its part: figures of a mixture, of
// which filled_share (else 1) was its own. Where they do not add up there are no figures.
Table kernel_metrics(const trace::Timeline& timeline, const KernelsOptions& options);

inline constexpr int64_t kWholeSamples = 2, kSharedSamples = 10;

}  // namespace strobe::analyze
