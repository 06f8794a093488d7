// A family of networks measured one after the other, into a folder from which a later call goes on.
#pragma once

#include <atomic>
#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>

#include "measure/profile_config.h"
#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::measure {

struct ProfileProgress {
  size_t done = 0, total = 0;  // measurements, with those that were there and those passed over
  double seconds_left = 0;     // by the mean of this call's measurements; 0: not known yet
  std::string now;             // "resnet18 30 % batch 8 training latency on torch"
};

struct ProfileHooks {
  const std::atomic<bool>* stop = nullptr;
  std::function<void(const ProfileProgress&)> progress;
  // Is given each network at each level that it wants, before that one is measured.
  std::function<bool(const std::string& net, int level)> wants_network;
  std::function<Result<void>(const std::string& net, int level, const models::Graph& graph)> network;
};

struct ProfileOutcome {
  size_t measured = 0;     // in this call, of which:
  size_t failed = 0;       // did not pass
  size_t disturbed = 0;    // stayed disturbed
  size_t kept = 0;         // were there
  size_t passed_over = 0;  // larger batch sizes after a failure
};

// Measures what is not in folder/measurements.csv yet; the order is network, level, engine, stage, batch size,
// quantity. folder/machine.json says on what machine and with what settings; a folder of another machine or with other
// settings that would change values is refused, while other networks, levels, batch sizes, stages, quantities, engines
// and repetitions are added. folder/log.txt has what frameworks said in the last measurement that said something.
// Errors: kUsage, kIo, kInterrupted, those of measure_one.
Result<ProfileOutcome> profile(const ProfileConfig& config, const std::filesystem::path& folder,
                               const ProfileHooks& hooks);

}  // namespace strobe::measure
