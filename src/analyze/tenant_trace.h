// A trace of several tenants, read by its convention (docs/tenant-trace.md): who they are, their frames, the stages of
// each frame, the operations of each stage, and the resources that these waited for. Times are nanoseconds of the
// trace.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/trace/timeline.h"

namespace strobe::analyze {

enum class ResourceKind : uint8_t {
  kExclusive,  // K servers, each held by one operation; locks are one server
  kShared,     // everyone at once, who slow each other by the matrix of interference
  kCores,      // a run queue of N cores
  kQueue,      // room in a bounded queue
};
// Who gets a free server of an exclusive resource.
enum class ServePolicy : uint8_t { kConcurrent, kFifo, kPriority, kPriorityPreemptive, kRoundRobin, kEdf, kExclusive };
enum class DropPolicy : uint8_t { kNever, kOldest, kNewest };
enum class FrameOutcome : uint8_t { kFinished, kDropped, kOverwritten, kFailed, kLost };

// "fifo", ... Errors: kUsage naming them.
Result<ServePolicy> parse_serve_policy(const std::string& text);
const char* serve_policy_name(ServePolicy policy);

struct TenantResource {
  std::string name;
  ResourceKind kind = ResourceKind::kShared;
  double capacity = 1;  // servers or cores
  ServePolicy policy = ServePolicy::kFifo;
  bool by_stage = true;    // a server stays with the consecutive operations of a stage; false: it is offered after each
  bool gives_way = false;  // it stays, but is left between two of them to a waiting tenant of greater priority
  int64_t quantum_ns = 0, switch_ns = 0;  // of round robin: an operation is cut after a quantum; 0: never
  bool queue_a_core = false;              // each core has a run queue of its own; false: cores are shared ideally
  std::vector<int32_t> cores;             // of `cpu:0-1`: 0, 1; empty where the name does not tell
};

struct TenantInfo {
  std::string name;
  double priority = 0;  // greater goes first
  double rate_hz = 0;   // 0: not known
  int64_t batch = 1;    // pictures a frame
  int64_t deadline_ns = 0;
  int64_t queue_depth = 0;  // 0: unbounded
  DropPolicy drop = DropPolicy::kNever;
  int32_t cpu = trace::kNone;  // its run queue, a resource
  uint64_t not_sent = 0;
  std::map<std::string, std::string> facts;  // all of tenant.NAME.*, by the rest of the key
};

struct TenantFrame {
  int32_t tenant = 0;
  int64_t id = 0;
  int64_t stamp_ns = 0, arrival_ns = 0, done_ns = 0;
  int64_t deadline_ns = 0;      // relative to the stamp; 0: none
  int64_t sensor_stamp_ns = 0;  // the sensor's own time; 0: not told
  trace::StringId token = 0;    // of the input
  FrameOutcome outcome = FrameOutcome::kLost;
  bool counts = true;  // its stamp lies in the measured window
  int32_t first_stage = 0, stage_count = 0;
  bool finished() const { return outcome == FrameOutcome::kFinished; }
  int64_t latency_ns() const { return done_ns - stamp_ns; }
};

struct TenantStage {
  int32_t frame = 0;
  int32_t tenant = 0;
  int32_t lane = 0;
  int32_t range = trace::kNone;
  trace::StringId name = 0;
  int64_t start_ns = 0, end_ns = 0;
  int64_t cpu_ns = -1, runnable_ns = 0;  // -1: not recorded
  int32_t first_operation = 0, operation_count = 0;
  int32_t first_edge = 0, edge_count = 0;  // into TenantTrace::edges: the stages of its frame that it came after
  int32_t before_on_lane = trace::kNone;   // the stage before it on its thread, of whichever frame
  // The edges are recorded: by a flow, by the order on one thread, or it is the frame's first. Else guessed from time.
  bool cause_known = true;
};

// Of one stage, in the order of their starts: ready <= start <= end, and none begins to be ready before the one before
// it has ended, unless it lies inside that (a lock around work).
struct TenantOperation {
  int32_t stage = trace::kNone;  // kNone: its stage is not in the trace; it still held its resource
  int32_t tenant = 0;
  int32_t resource = trace::kNone;
  int32_t kind = 0;               // into TenantTrace::classes
  int32_t inside = trace::kNone;  // the operation around it
  int32_t slice = 0;              // > 0: goes on with the operation before it, from which the resource had been taken
  trace::StringId name = 0;
  int64_t ready_ns = 0, start_ns = 0, end_ns = 0;
  int64_t cpu_ns = -1, runnable_ns = 0;  // -1: not recorded
  bool is_push = false;
};

// Somebody who is no tenant held a resource.
struct OtherHolder {
  bool is_recorder = false;  // else: the system, other programs
  int32_t resource = trace::kNone;
  int64_t start_ns = 0, end_ns = 0;
};

// A thread ran on a core: of a tenant, of strobe itself (the recorder) or of another program (the system).
struct TenantCoreRun {
  int64_t start_ns = 0, end_ns = 0;
  int32_t core = 0, tid = 0;
  int32_t tenant = trace::kNone;
  bool is_recorder = false;  // where it is no tenant's
  bool preempted = false;    // it would have gone on
  int32_t program = 0;       // its name, into TenantTrace::programs
};

struct TenantTrace {
  std::vector<TenantInfo> tenants;
  std::vector<TenantResource> resources;
  std::vector<std::string> classes;
  std::vector<double> slowdown;   // [class of the slowed][class beside it], row major; NaN: never measured
  double saturation = 0;          // most that neighbours slow together; 0: they add up
  int32_t memory = trace::kNone;  // the resource through which operations on different cores slow each other, if known
  ServePolicy policy = ServePolicy::kConcurrent;
  std::string isolation;
  std::vector<TenantFrame> frames;          // by arrival
  std::vector<TenantStage> stages;          // by frame, then start
  std::vector<int32_t> edges;               // stages
  std::vector<TenantOperation> operations;  // by stage, then start; those without a stage last
  std::vector<OtherHolder> others;
  std::vector<int32_t> lane_stages;      // all stages by lane, then start
  std::vector<int32_t> lane_tids;        // by lane: its thread
  std::vector<TenantCoreRun> core_runs;  // by core, then start; empty: nobody recorded them
  std::vector<std::string> programs;
  std::string core_runs_off;                           // why there are none, if that is known
  int64_t core_runs_from_ns = 0, core_runs_to_ns = 0;  // who ran is known in between
  int64_t from_ns = 0, to_ns = 0;                      // the measured window
  std::optional<double> sigma_ns;                      // clock noise of a stamp
  uint64_t lost_records = 0;                           // by the recorder, faults of reading included
  uint64_t stages_without_frame = 0, operations_without_stage = 0;
  uint64_t edges_wanted = 0, edges_recorded = 0;  // hand-overs from thread to thread
  uint64_t contradictions = 0;                    // an effect before its cause by more than the noise

  // Whether a server was kept between an operation and the next one of its stage: what lies between them is the
  // thread's way from one layer to the next, too short for anybody else to take the server.
  bool keeps_server(int32_t operation, int32_t next) const;
  const double& slow(int32_t slowed, int32_t beside) const {
    return slowdown[static_cast<size_t>(slowed) * classes.size() + static_cast<size_t>(beside)];
  }
  // Below this a difference of two stamps says nothing: 3 sigma.
  double dead_band_ns() const { return 3 * sigma_ns.value_or(0); }
  int32_t find_tenant(const std::string& name) const;
  int32_t find_resource(const std::string& name) const;
};

// Whether the trace says that it is one of tenants.
bool is_tenant_trace(const trace::Timeline& timeline);

// Errors: kBadData (no fact `tenants`, or a fact that cannot be read), kNotFound (no frame of any of them).
Result<TenantTrace> tenant_trace(const trace::Timeline& timeline);

// How soon the kernel serves a run queue: quantiles in equal steps from 0 to 1, in ns.
struct RunQueueTimes {
  std::vector<double> wake_up_ns;  // until a thread that wakes up on a busy core runs
  std::vector<double> balance_ns;  // until an idle core takes a thread from one that has two; empty: at once
  std::vector<double>
      turn_ns;  // that a thread which was put first on its core has there; empty: cores are shared evenly
  // How often a thread that wakes up takes its waker's core away from whoever is on it: from its waker itself, which
  // hands a server or a frame over and goes on; from a third one, which the waker (a source) had interrupted. From 0 to
  // 1; of use with turn_ns.
  double hand_over_stays = 0, wake_up_stays = 0;
};

// {"classes":[...],"a":[[...]],"saturation":x,"of":"cores","wake_up_ms":[...],"balance_ms":[...],"turn_ms":[...],
// "hand_over_stays":x,"wake_up_stays":x}: what was measured
// once of a device, instead of the trace's facts. a[x][y]: time of x beside y over time of x alone, less 1. Errors:
// kBadData.
struct Calibration {
  std::vector<std::string> classes;
  std::vector<std::vector<double>> a;
  double saturation = 0;
  bool of_cores = false;  // a holds for work on different cores, too: caches and memory are shared
  RunQueueTimes run_queues;
};
Result<Calibration> parse_calibration(const std::string& json);
void apply_calibration(TenantTrace& trace, const Calibration& calibration);

}  // namespace strobe::analyze
