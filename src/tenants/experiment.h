// Experiment: what the user's YAML file says, read and checked; docs/experiments.md explains every key.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strobe/base/result.h"
#include "tenants/policy.h"

namespace strobe::tenants {

// Where a tenant's frames come from.
struct SourceSpec {
  enum class Kind : uint8_t { kSynthetic, kMedia, kSweeps, kNuscenes, kMcap, kRos2 } kind = Kind::kSynthetic;
  std::string path;   // of the picture, sweep, folder or video; the root of nuScenes; the bag; the topic
  std::string scene;  // of nuScenes; empty: the first one
  std::vector<std::string> channels;  // of nuScenes ("LIDAR_TOP"), topics of a bag; empty: what the model needs
  // Rain, snow or fog that falls on LiDAR sweeps before the run begins.
  std::string weather;      // "rain", "snow", "fog"; empty: none
  double weather_rate = 0;  // mm/h
  int64_t most_frames = 0;  // of the stream, which then starts again; 0: all
  int domain = -1;          // of ROS 2; -1: ROS_DOMAIN_ID, or 0
  bool reliable = false;    // the topic's reader
  bool operator==(const SourceSpec&) const = default;
};

// Faults that are planted, to see what the others do.
struct FaultSpec {
  enum class Kind : uint8_t { kNone, kCrash, kHang, kExit, kLeak, kSensorStops, kSensorRepeats } kind = Kind::kNone;
  int64_t after = 0;  // frames of the tenant before it happens
  bool operator==(const FaultSpec&) const = default;
};

enum class QueueDrop : uint8_t { kOldest, kNewest, kNever };

struct TenantSpec {
  std::string name;
  SourceSpec source;
  std::string model;                // a built-in name, a file, or "spin:5ms", "stream:5ms"
  std::filesystem::path weights;    // empty: the network's own, or seeded ones
  std::string engine = "openvino";  // "torch", "torch:script", ...
  std::string device = "cpu";
  std::string cores;            // "0", "0-1"; empty: all that are allowed
  int threads = 1;              // of the engine
  int64_t priority = 0;         // greater goes first
  std::optional<int> nice;      // of its threads
  std::optional<int> realtime;  // SCHED_FIFO priority of its threads, where allowed
  double rate_hz = 10;          // of the sensor, frames a second
  int64_t batch = 1;            // frames of the sensor that are inferred together
  double offset_ms = 0;         // of its first frame
  double jitter_ms = 0;         // uniform, of each frame's stamp, seeded
  double deadline_ms = 0;       // from the stamp; 0: none
  int64_t queue = 1;            // frames that may wait
  QueueDrop drop = QueueDrop::kOldest;
  float score_threshold = 0.5F;
  int64_t memory_limit = 0;  // bytes of a process; 0: none
  bool layers = false;       // each layer is recorded, where the engine runs layer by layer
  int mps_share = 0;         // percent of the device's multiprocessors that it may use under MPS; 0: not told
  bool mps_below = false;    // its kernels give way to those of other clients of MPS
  FaultSpec fault;
  double batches_hz() const { return rate_hz / static_cast<double>(batch); }
  bool operator==(const TenantSpec&) const = default;
};

enum class Isolation : uint8_t { kThreads, kProcesses };

// One run of one set of tenants.
struct CellSpec {
  Policy policy = Policy::kConcurrent;
  Isolation isolation = Isolation::kThreads;
  double duration_s = 10;   // of the measured part
  double warmup_s = 1;      // that runs before it, recorded and left out
  double hang_s = 30;       // a tenant without a sign of life for so long has hung
  double time_limit_s = 0;  // of the whole cell, its loading included; 0: ten minutes and the duration
  uint64_t seed = 1;
  // NVIDIA's Multi-Process Service for the tenants' processes, or surely none; nullopt: as the environment has it.
  std::optional<bool> mps;
  std::vector<TenantSpec> tenants;
};

// A combination of the grid's values.
struct Cell {
  int64_t index = 0;                                         // of the run: 0, 1, ... in the order of the grid
  std::string folder;                                        // "003_policy=fifo_lidar.rate=10"
  std::vector<std::pair<std::string, std::string>> factors;  // key and value of each axis, and "repeat"
  std::string settings;                                      // all that decides what the cell does, as YAML
  CellSpec spec;
};

struct Experiment {
  std::string name, description;
  std::vector<std::string> axes;  // keys of the grid, in the file's order
  std::vector<Cell> cells;
};

// text: the file's content; base: paths in it that are not absolute start there. Errors: kBadData with line and column
// ("3:5: ...", to follow the file's name and a colon); an unknown key or word with what may have been meant.
// changes: "KEY=VALUE", with the keys that a grid has; of a key that the grid goes through, VALUE is all that is left
// of it ([fifo, edf]: several). Errors: kUsage.
Result<Experiment> read_experiment(const std::string& text, const std::filesystem::path& base,
                                   const std::vector<std::string>& changes = {});

}  // namespace strobe::tenants
