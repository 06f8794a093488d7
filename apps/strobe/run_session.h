// One run of one engine: from the flags to the files in the output folder and the summary that is printed.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>

#include "run_flags.h"
#include "strobe/base/result.h"

namespace strobe::app {

// How a run ended, with everything that is known of it: an interrupted or broken run has a summary, too.
struct RunOutcome {
  nlohmann::ordered_json summary;  // one element of "runs"; keys in docs/run-json.md
  Result<void> ended;              // its error is what broke the run off; kInterrupted after Ctrl-C
};

// The words that the flags give, or what is wrong with them; opens nothing.
Result<void> check_run_flags(const RunFlags& flags);

// Runs engine `spec` into folder. Errors: whatever kept the run from starting.
Result<RunOutcome> run_session(const RunFlags& flags, const std::string& spec, const std::string& folder,
                               const std::atomic<bool>& stop);

}  // namespace strobe::app
