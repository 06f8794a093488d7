// What `strobe model profile` is to measure: a YAML file, and options that override it. The keys and what they mean are
// in docs/profiling-models.md.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::measure {

enum class Stage : uint8_t { kTraining, kInference };
enum class Quantity : uint8_t { kMemory, kLatency };
std::string_view to_string(Stage stage);        // "training", "inference"
std::string_view to_string(Quantity quantity);  // "memory", "latency"

struct NetworkChoice {
  std::string name;          // in the column net
  std::string source;        // a built-in network, or the path of a file
  std::optional<int> level;  // of a file that was pruned before: measured as it is; none: pruned at every level
};

struct ProfileConfig {
  std::vector<NetworkChoice> networks;
  std::vector<int> levels{0};        // percent of the channels pruned
  std::string method{"random"};      // of pruning: uniform, random, l1
  uint64_t seed = 1;                 // of weights and pruning
  int64_t width = 0, height = 0;     // of the input; 0: the network's own
  std::vector<int64_t> batch_sizes;  // ascending
  std::vector<Stage> stages{Stage::kTraining};
  std::vector<Quantity> quantities{Quantity::kMemory, Quantity::kLatency};
  std::vector<std::string> engines{"torch"};  // NAME or NAME:VARIANT; training is measured on those that train
  std::string device{"cpu"};
  int threads = 0;  // 0: the allowed cores
  bool till_first_fail = true;

  int repetitions = 5, most_repetitions = 500;  // timed steps: at least, at most
  double half_width = 0.02;      // relative, of the 95 % interval of the mean: enough repetitions when it is reached
  double measure_s = 5;          // or when this time is over, and `repetitions` are done
  double warmup_s = 5;           // longest warm-up; at least one step
  int attempts = 3;              // measurements of a disturbed latency, of which the least disturbed one is kept
  double timeout_s = 600;        // of one measurement, with loading
  int64_t memory_limit_mib = 0;  // of what a network and its steps take; 0: nine tenths of what is available
  double calibration_s = 0;      // of the device, for predictions; 0: none
};

// Errors: kBadData, "line:column: what, what was expected". base: the folder that files are relative to.
Result<ProfileConfig> read_profile_config(const std::string& text, const std::filesystem::path& base);

// One key set to what stands on the command line, lists with commas: "levels", "0,30,50". Errors: kUsage.
Result<void> set_in_profile(ProfileConfig& config, const std::string& key, const std::string& text);

// What can be told before anything is opened: something to measure is named, engines and networks are known, an engine
// for training trains, the device is there. Errors: kUsage, kNotFound, kUnsupported.
Result<void> check_profile_config(const ProfileConfig& config);

// Whether engine NAME or NAME:VARIANT has a Trainer.
bool engine_trains(std::string_view engine);

}  // namespace strobe::measure
