// One cell of an experiment, from its folder to the files in it.
#pragma once

#include <atomic>
#include <filesystem>
#include <functional>
#include <string>

#include "strobe/base/result.h"
#include "tenants/experiment.h"

namespace strobe::app {

// What stands in a cell's cell.json besides its figures. An interrupted cell is begun anew.
enum class CellStatus : uint8_t { kSuccess, kFailed, kTimeout, kInterrupted };
const char* to_string(CellStatus status);

// gpu: what tenants do on NVIDIA devices is recorded, too, where there is a driver; gpu_metrics_us: between two samples
// of their counters, 0 for none.
// Runs the cell in this process, which must have one thread and then only to exit: threads of tenants that hang stay.
// Everything is written into the folder, cell.json last. Errors: kIo and the like; what befell a tenant is the status.
Result<CellStatus> run_experiment_cell(const tenants::Cell& cell, const std::filesystem::path& folder,
                                       const std::atomic<bool>& stop,
                                       const std::function<void(double seconds, double of)>& on_progress, bool gpu,
                                       int gpu_metrics_us);

// The same files out of what a cell's process left that did not come to its end. Errors: kIo, and that nothing was
// recorded.
Result<void> recover_experiment_cell(const tenants::Cell& cell, const std::filesystem::path& folder, CellStatus status,
                                     const std::string& reason);

}  // namespace strobe::app
