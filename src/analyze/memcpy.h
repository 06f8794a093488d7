// Copies and sets of device memory: how much, how fast, and how far they are hidden behind kernels.
#pragma once

#include "analyze/work_owners.h"
#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// One row a device, direction and kinds of memory (and stage or tenant), most time first: [stage|tenant,] device,
// direction ("host to device", ..., "set"), source, target ("pageable", "pinned", "device", ...), count, bytes,
// total_ns, mean_ns, max_ns, gb_per_s (10^9 bytes a second, of those whose size is known), share (of the time of all),
// overlap_ns and overlap_share (of the time in which at least one of the row's copies ran: while a kernel ran on the
// same device). A note says how much of the time of copies between host and device had pageable memory at an end.
Table memcpy_table(const trace::Timeline& timeline, WorkBy by = WorkBy::kNobody);

// One row a device: device, compute_ns (at least one kernel runs), copy_ns (at least one copy or set), both_ns, busy_ns
// (either), copy_hidden (both_ns / copy_ns). By stage or tenant one row for each on a device, most time first: the same
// of its own kernels and copies, but both_ns is the time in which one of its copies and a kernel of anybody ran, and
// own_ns that in which the kernel was its own.
Table memcpy_overlap(const trace::Timeline& timeline, WorkBy by = WorkBy::kNobody);

// "host to device" of a copy kind, "pinned" of a kind of memory; "unknown" for what is none.
const char* copy_kind_name(uint8_t copy_kind);
const char* memory_kind_name(uint8_t memory_kind);

}  // namespace strobe::analyze
