// `strobe run --mode retrain`: from the flags to the trained weights and the summary that is printed.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>

#include "base/table.h"
#include "run_flags.h"
#include "run_session.h"
#include "strobe/base/result.h"

namespace strobe::app {

// Trains the network of the flags into their output folder: weights.safetensors, checkpoint.safetensors, the metrics of
// each step, trace.sqlite, and held_out.json where labels were held out. Errors: whatever kept it from starting.
Result<RunOutcome> train_session(const RunFlags& flags, const std::atomic<bool>& stop);

// The summary as a table of one row.
Table training_table(const nlohmann::ordered_json& summary);

}  // namespace strobe::app
