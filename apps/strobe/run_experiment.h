// `strobe run experiment.yaml`: the cells of a grid, one after the other, each in a process of its own.
#pragma once

#include <atomic>
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

// Whether `strobe run` takes this word for an experiment's file.
bool is_experiment_file(const std::string& word);

struct OpenedExperiment {
  tenants::Experiment experiment;
  std::string text;  // of the file, with what was changed as comments
};
// Reads and checks the file. Errors: kBadData, kUsage (a change), kUnsupported (an engine).
Result<OpenedExperiment> open_experiment(const ExperimentOptions& options);

struct CellEnd {
  std::string status, reason;  // "success", ...
};
// Runs cells into options.output and prints nothing but progress. Errors: kIo, kInterrupted.
Result<std::vector<CellEnd>> run_cells(const ExperimentOptions& options, tenants::Experiment experiment,
                                       const std::atomic<bool>& stop);

// Runs what is not done yet. OUT/<cell>/ has trace.sqlite, delays_<i>.csv, layer_timings_<i>.csv, lidar_pred_<i>.json,
// image_pred_<i>.json, cpu_<i>.csv and cell.json; OUT/param_mapping.csv says how each cell ended, OUT/failures.log why.
// Returns the exit code: 1 when a cell failed. Errors: kBadData (the file), kIo, kInterrupted.
Result<int> run_experiment(const ExperimentOptions& options, const std::atomic<bool>& stop);

}  // namespace strobe::app
