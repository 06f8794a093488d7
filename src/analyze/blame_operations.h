// Blame of single operations: who held the resource while one waited, who ran beside it while it was served.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "analyze/blame.h"

namespace strobe::analyze {

// One holder of one server.
struct Holding {
  int64_t start_ns = 0, end_ns = 0;
  int32_t by = 0;
  int32_t operation = trace::kNone;
};
// Of an exclusive resource: who held each server when, in time order without overlap; behind the servers that exist,
// one list of what fits none of them.
using Servers = std::vector<std::vector<Holding>>;

struct OperationBlame {
  // Cells of operation i: [first[i], first[i + 1]).
  std::vector<uint32_t> first;
  std::vector<BlameCell> cells;
  std::vector<double> intrinsic_ns;
  std::vector<int32_t> blocker;
  // Of stages: CPU time that was waited for outside its operations.
  std::vector<std::vector<BlameCell>> of_stage;
  std::vector<uint8_t> estimated;      // by resource
  std::map<int32_t, double> programs;  // what of "system" was which program, ns
  std::vector<double> beside_idle_ns;  // by tenant: waits for a core although another one was idle
  std::vector<Servers> servers;        // by resource; empty where it is not exclusive
  uint64_t contradictions = 0;         // more holders at once than servers
  int64_t contradicted_ns = 0;         // for so long
  uint64_t unmeasured_pairs = 0;
};

OperationBlame blame_operations(const TenantTrace& trace);

// Who held the servers that operation waited for, between two instants of its wait. blocker: who held one last.
std::vector<BlameCell> blame_wait(const TenantTrace& trace, const Servers& servers, int32_t operation, int64_t from_ns,
                                  int64_t to_ns, int32_t* blocker = nullptr);

void add_cell(std::vector<BlameCell>& cells, int32_t by, int32_t resource, double ns);

}  // namespace strobe::analyze
