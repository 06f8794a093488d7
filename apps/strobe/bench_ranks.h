// Tasks of MPI or Slurm, each of which runs one process of a benchmark: they meet in the output folder.
#pragma once

#include <filesystem>
#include <functional>
#include <vector>

#include "bench/children.h"
#include "bench/plan.h"
#include "strobe/base/result.h"

namespace strobe::app {

struct RankEnd {
  bench::PlannedProcess process;
  bench::ProcessEnd end;
};

// Removes what an earlier run left of this task; to be called before the process starts.
void forget_rank(const std::filesystem::path& output_dir, const bench::Rank& rank);
// Says how this task's process ended.
Result<void> tell_rank(const std::filesystem::path& output_dir, const bench::Rank& rank, const RankEnd& end);
// Rank 0: how all tasks' processes ended, its own first. Waits until each has said so; after timeout_s (0: never) or an
// interruption those that have not are missing.
std::vector<RankEnd> gather_ranks(const std::filesystem::path& output_dir, const bench::Rank& rank, const RankEnd& own,
                                  double timeout_s, const bench::HeldSignals& signals);

}  // namespace strobe::app
