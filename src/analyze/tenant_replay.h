// Discrete-event replay of tenants: what they did, with its intrinsic service times, served again by given resources
// and policies. It ignores recorded waits and makes its own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "analyze/blame.h"
#include "analyze/tenant_trace.h"

namespace strobe::analyze {

struct ReplayOperation {
  int32_t resource = trace::kNone;  // kNone: plain time, nobody in its way
  int32_t kind = 0;
  trace::StringId name = 0;
  double service_ns = 0;
  double cores = 0;  // of its tenant's run queue that it uses while it runs; 0: none
};

struct ReplayStage {
  trace::StringId name = 0;
  int32_t pool = 0;
  int32_t first_operation = 0, operation_count = 0;
  int32_t first_edge = 0, edge_count = 0;  // into ReplayModel::edges: stages that it waits for, within the work
  int64_t served_ns = 0;                   // when its first operation began: of two that begin at once, who went first
  bool pushes = false;                     // hands over into a queue that has only so much room
};

// What is to be done for a frame.
struct ReplayWork {
  int32_t first_stage = 0, stage_count = 0;
};

struct ReplayFrame {
  int32_t tenant = 0;
  int32_t work = 0;
  double stamp_ns = 0, comm_ns = 0;
  double deadline_ns = 0;  // relative to the stamp; 0: none
  bool counts = true;
};

// Threads that do the same stages of a tenant.
struct ReplayPool {
  int32_t tenant = 0;
  int32_t workers = 1;
  bool keeps = true;  // a thread goes on with the next stage of its frame
};

struct ReplayTenant {
  std::string name;
  double priority = 0;
  int64_t batch = 1;  // pictures a frame, whose stamp is that of the first
  int64_t queue_depth = 0;
  DropPolicy drop = DropPolicy::kNever;
  int32_t cpu = trace::kNone;
  bool is_there = true;
};

enum class Interference : uint8_t { kMatrix, kNone, kEqualShare };

struct ReplayModel {
  std::vector<ReplayTenant> tenants;
  std::vector<TenantResource> resources;
  std::vector<std::string> classes;
  std::vector<double> slowdown;  // as of TenantTrace; NaN counts as 0
  double saturation = 0;
  bool cores_share_memory = false;                    // the slow-downs hold between operations on different cores, too
  Interference interference = Interference::kMatrix;  // else a baseline: no resource is ever waited for
  // Of resources with a run queue a core. With wake_up_ns the sources of frames are threads, too, that may find their
  // core busy; traces in which they waited already have that in comm_ns.
  RunQueueTimes run_queues;
  uint64_t seed = 1;  // of what is drawn from them
  std::vector<ReplayPool> pools;
  std::vector<ReplayFrame> frames;
  std::vector<ReplayWork> works;
  std::vector<ReplayStage> stages;
  std::vector<int32_t> edges;  // relative to the first stage of the work
  std::vector<ReplayOperation> operations;
};

// Of each frame of the trace, whose work is what blame found to be intrinsic. Frames that did not run take over the
// work of the one before them of their tenant.
ReplayModel replay_model(const BlameAnalysis& analysis);

// Of the hand-overs of a server to somebody who waited for it the share after which whoever handed it over waited for a
// core to do the rest of its stage (RunQueueTimes::hand_over_stays); nothing where there were too few to tell.
std::optional<double> hand_over_stays(const TenantTrace& trace);

struct ReplayResult {
  std::vector<double> done_ns;     // by frame; infinity: dropped or left out
  std::vector<double> latency_ns;  // from the stamp
  std::vector<double> busy_ns;     // by resource: served time, over all its servers
  double span_ns = 0;
};

ReplayResult replay(const ReplayModel& model);

// Latencies of a tenant's frames that finished and count, in the order of the model's frames; tenant kNone: of all.
std::vector<double> finished_latencies(const ReplayModel& model, const ReplayResult& result, int32_t tenant);

}  // namespace strobe::analyze
