// An experiment's file, read and checked before any cell runs.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "strobe/base/result.h"
#include "tenants/experiment.h"

namespace strobe::app {

struct ExperimentOptions {
  std::string file;    // YAML, docs/experiments.md
  std::string output;  // folder of the grid
  std::string format;  // "text", "csv", "json"
  bool quiet = false;
  bool again = false;                // cells that succeeded are run again, too
  bool gpu = true;                   // what tenants do on NVIDIA devices is recorded, too, where there is a driver
  int gpu_metrics_us = 0;            // between two samples of the devices' counters; 0: none
  std::vector<std::string> changes;  // "KEY=VALUE", of the file
  // When everything is checked and a cell is about to run; the process has one thread.
  std::function<void()> on_begin = {};
};

struct OpenedExperiment {
  tenants::Experiment experiment;
  std::string text;  // of the file, with what was changed as comments
};
// Reads and checks the file. Errors: kBadData, kUsage (a change), kUnsupported (an engine).
Result<OpenedExperiment> open_experiment(const ExperimentOptions& options);

}  // namespace strobe::app
