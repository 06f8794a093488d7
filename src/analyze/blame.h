// Blame: who delayed whom, on which resource (docs/blame.md). An account of what happened: the waits and the stretches
// of every frame's critical path, each given to who held what was waited for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "analyze/tenant_trace.h"
#include "base/table.h"

namespace strobe::analyze {

// Whoever can be blamed: tenants by number (the delayed one itself: "self"), then these.
enum class Blamed : uint8_t { kSystem, kRecorder, kIdle, kUnknown };
inline constexpr size_t kBlamedCount = 4;
inline int32_t blamed(const TenantTrace& trace, Blamed who) {
  return static_cast<int32_t>(trace.tenants.size()) + static_cast<int32_t>(who);
}
std::string blamed_name(const TenantTrace& trace, int32_t by, int32_t tenant);
// Resources by number, then the queue before each tenant's threads.
inline int32_t thread_queue(const TenantTrace& trace, int32_t tenant) {
  return static_cast<int32_t>(trace.resources.size()) + tenant;
}
std::string blamed_resource_name(const TenantTrace& trace, int32_t resource);

struct BlameCell {
  int32_t by = 0, resource = 0;
  double ns = 0;
};

struct FrameBlame {
  std::vector<BlameCell> direct;        // on the critical path; its sum + intrinsic_path_ns = latency, exactly
  std::vector<BlameCell> with_backlog;  // the same, waits for an earlier frame handed on to what delayed that one
  std::vector<BlameCell> absorbed;      // off the path: it delayed nothing
  double intrinsic_path_ns = 0;         // S
  double intrinsic_longest_ns = 0;      // L*
  // L - L*, which is the sum of direct less path switching.
  double excess_ns(double latency_ns) const { return latency_ns - intrinsic_longest_ns; }
  double switching_ns() const { return intrinsic_longest_ns - intrinsic_path_ns; }
};

// A piece of a frame's account, in time order without gap or overlap from the stamp to done.
struct PathPiece {
  enum class Kind : uint8_t { kComm, kQueue, kWait, kService, kEnd } kind = Kind::kService;
  int64_t start_ns = 0, end_ns = 0;
  int32_t stage = trace::kNone, operation = trace::kNone;
};

// What may be said of a trace: "because" needs all of it, else the word is "while".
struct BlameGates {
  uint64_t lost_records = 0;
  uint64_t contradictions = 0;
  uint64_t operations = 0;
  double edges_known = 1;  // share of hand-overs between threads that are recorded
  bool sigma_known = false;
  double sigma_ns = 0;
  double unknown_share = 0;  // of the waits
  double known_state = 1;    // share of the frames' time that something recorded explains
  bool because() const;
  bool exploratory() const;                  // too noisy to believe
  std::vector<std::string> reasons() const;  // why not "because"
};

struct BlameAnalysis {
  TenantTrace trace;
  std::vector<FrameBlame> frames;    // one a frame of the trace; empty for those that did not finish
  std::vector<double> intrinsic_ns;  // of each operation: its service with nobody beside it
  // What nobody of the trace is to blame for, and a replay has to keep: of each operation the wait for a core that the
  // system, the recorder or somebody unknown had, and the wait for a server that nobody held; of each stage the wait
  // for its thread that was free, and its own waits for a core outside its operations.
  std::vector<double> foreign_cpu_ns, nobody_ns, stage_idle_ns, stage_foreign_ns;
  std::vector<int32_t> blocker;    // of each operation: who held its resource last before it; kNone
  std::vector<uint8_t> estimated;  // by resource: the total is exact, the split is by others' CPU time
  // Of "system", where switches of the cores are recorded: which programs, and how long finished frames' stages waited
  // for a core while those ran; most first.
  std::vector<std::pair<std::string, double>> programs;
  // By tenant: what finished frames' stages waited for a core while another one that they may use was idle. Kernels
  // do that where a thread wakes up another one.
  std::vector<double> beside_idle_ns;
  uint64_t unmeasured_pairs = 0;  // classes that ran beside each other without a known slow-down
  BlameGates gates;
};

BlameAnalysis blame(TenantTrace trace);

// The account of a finished frame.
std::vector<PathPiece> frame_account(const TenantTrace& trace, int32_t frame);

// Which frames a table speaks of.
enum class BlameOf : uint8_t { kAll, kMisses, kTail };
struct BlameSum {
  std::vector<std::vector<BlameCell>> direct, with_backlog, absorbed;  // by tenant, most first; tail: means, ns a frame
  std::vector<size_t> frames;                                          // by tenant
  std::vector<double> delay_ns, latency_ns, excess_ns, switching_ns;   // by tenant
};
// tail: the mean over the top 1 % of a tenant's frames less the mean over the middle half.
BlameSum sum_blame(const BlameAnalysis& analysis, BlameOf what);

// One row a tenant, one column a blamed one: ms a frame (a deadline miss, a tail frame).
Table blame_matrix(const BlameAnalysis& analysis, BlameOf what, bool with_backlog);
// One row a cell: tenant, by, resource, ns, with_backlog_ns, absorbed_ns, share, estimated.
Table blame_cells(const BlameAnalysis& analysis, BlameOf what);
// One row a frame and cell: tenant, frame, latency_ms, late_ms, by, resource, ns, with_backlog_ns.
Table blame_by_frame(const BlameAnalysis& analysis, bool misses_only);
// One sentence a tenant.
std::vector<std::string> blame_sentences(const BlameAnalysis& analysis);

}  // namespace strobe::analyze
