// Several engines in turn, each in a process of its own: frameworks then share neither thread pools, nor allocators,
// nor libraries of the same name, and each one's figures are its own.
#pragma once

#include <atomic>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "run_flags.h"
#include "strobe/base/result.h"

namespace strobe::app {

struct CompareOutcome {
  nlohmann::ordered_json runs = nlohmann::ordered_json::array();  // of the engines that ran, in the order asked for
  int exit_code = 0;   // of the engine that did not finish, which has said why
  Result<void> ended;  // its error is that of the first engine that failed; later ones are not started
};

// arguments: the flags that every engine's process gets besides its own --engine and --output. Engine i writes into
// flags.output/<engine>; flags.output itself gets frames.csv and detections.json of all engines, with a column
// "engine".
CompareOutcome run_each_engine(const RunFlags& flags, const std::vector<std::string>& arguments,
                               const std::atomic<bool>& stop);

// How far each engine's raw outputs and boxes are from the first one's; needs runs made with --dump-outputs.
// Returns {"reference", "engines": [{"engine", "max_abs", "max_rel", "boxes_agree", "boxes", "agree"}], "agree"}.
Result<nlohmann::ordered_json> verify_runs(const RunFlags& flags, const nlohmann::ordered_json& runs);

}  // namespace strobe::app
