// What really happened on the simulated device, from its own log: nothing here reads a trace.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "simulate/device.h"

namespace strobe::simulate {

struct FrameTruth {
  std::vector<Blame> direct;        // on the frame's critical path; by == its own tenant: itself
  std::vector<Blame> with_backlog;  // waits for an earlier frame handed on to what had delayed that one
  double latency_ns = 0;
  double intrinsic_path_ns = 0;     // S: comm and services alone, of the observed path
  double intrinsic_longest_ns = 0;  // L*: of the longest path
};

// One a frame of the log; those that did not finish stay empty.
std::vector<FrameTruth> frame_truths(const Scenario& scenario, const Log& log);

// Sum over the finished frames: [tenant][by][resource] ns.
using BlameMatrix = std::map<std::tuple<int32_t, int32_t, int32_t>, double>;
BlameMatrix sum_of(const Log& log, const std::vector<FrameTruth>& truths, bool with_backlog);

// Latencies of a tenant's finished frames, in the order of their stamps.
std::vector<double> latencies(const Log& log, int32_t tenant);

// The scenario with the named tenants alone: who is left out sends nothing.
Scenario only(const Scenario& scenario, const std::vector<bool>& present);

// By re-simulation of every subset, the Shapley values [i][j] of tenant j in the mean latency of tenant i (ns); [i][i]
// is 0. For at most 12 tenants.
std::vector<std::vector<double>> shapley_by_simulation(const Scenario& scenario);

// truth.json of docs/simulate.md.
std::string truth_json(const Scenario& scenario, const Log& log);

}  // namespace strobe::simulate
