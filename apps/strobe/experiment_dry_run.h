// `strobe run experiment.yaml --dry-run`: what the cells of a grid would come to, from each tenant alone.
#pragma once

#include <atomic>

#include "run_experiment.h"

namespace strobe::app {

struct DryRunOptions {
  double seconds = 2;         // that each tenant runs alone
  double most_misses = 0.01;  // share of its frames that a tenant may miss
  std::string calibration;    // file of `strobe calibrate`; empty: tenants are taken not to slow each other
};

// Every tenant that differs runs alone, in a folder that is then removed; the cells are forecast from that
// (analyze/forecast.h), and their memory is the sum of the tenants' peaks. Prints a row a cell and tenant. Returns 0
// where every cell fits: its memory is there, and no tenant misses more of its deadlines than that; else 1. Errors: as
// run_experiment(); those of a tenant that cannot run.
Result<int> dry_run_experiment(const ExperimentOptions& options, const DryRunOptions& dry,
                               const std::atomic<bool>& stop);

}  // namespace strobe::app
