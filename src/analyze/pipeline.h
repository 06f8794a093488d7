// Analyses of a video pipeline's run: where a frame's time goes and how near the pipeline is to its physical limit.
//
// What the pipeline writes, and these read: on the main thread a range "run" around the measured part, with an argument
// cpu_ns (process CPU time) and, where the machine tells, machine_busy_ns and machine_stolen_ns; inside it, on the
// stage threads, one range a frame named by its stage ("read", "prep", "infer", "post", "draw", "write"; the order is
// the fact "pipeline.stages", comma-separated) with the frame's id. A batched stage has one range with the first
// frame's id and an argument "also_frame" for each further one. A range that brought no frame (a read that met the end
// of the source) has an argument "no_frame". A frame dropped before a stage is a mark "drop". After "run", one range
// "alone" a stage, arguments: stage (text), frames, cpu_ns: the stage run by itself. Facts used: "engine", "cores".
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/table.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

// One row a stage: stage, count, mean_ms, p50_ms, p90_ms, p99_ms, max_ms, share (of the frames' service time); last row
// "total": frame latency from the start of read to the end of write, queues included.
Table stage_latency(const trace::Timeline& timeline);

// One row a finished frame, in frame order: frame, <stage>_ms ..., total_ms; the columns of frames.csv.
Table frame_latency(const trace::Timeline& timeline);

// One row: engine, frames, dropped, inference_fps, end_to_end_fps, limit_fps, limit_share, slowest_stage,
// slowest_stage_fps, cpu_ms_per_frame, cpu_alone_ms_per_frame, cores.
//   end_to_end_fps = finished frames / duration of "run"
//   inference_fps  = frames / duration of the "alone" pass of infer (where there was none: from the infer ranges, and a
//                    note says so)
//   limit_fps      = min(min over stages of alone FPS, cores / CPU seconds a frame in "run", or, where those were not
//                    recorded, their sum over the "alone" passes); missing without "alone" passes
Table throughput(const trace::Timeline& timeline);

// One row a stage of the "alone" passes: stage, frames, alone_fps, cpu_ms_per_frame.
Table stage_limits(const trace::Timeline& timeline);

}  // namespace strobe::analyze
