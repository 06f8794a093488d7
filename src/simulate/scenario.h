// What is simulated: tenants with laws of arrival and service, the resources that they share, what disturbs them, and
// how exactly it is recorded. docs/simulate.md has the YAML form. Times are nanoseconds of virtual time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::simulate {

// How long something takes, drawn once a frame and operation.
struct Law {
  enum class Kind : uint8_t {
    kConstant,   // base_ns
    kLognormal,  // median base_ns, spread = standard deviation of the logarithm
    kGamma,      // mean base_ns, spread = standard deviation / mean
    kInput,      // base_ns + per_unit_ns * units of the frame's input
    kTrace,      // values_ns, one a frame, again from the start when they end
  } kind = Kind::kConstant;
  double base_ns = 0;
  double spread = 0;
  double per_unit_ns = 0;
  std::vector<double> values_ns;
};

struct Arrivals {
  enum class Kind : uint8_t { kPeriodic, kPoisson, kBurst, kTrace } kind = Kind::kPeriodic;
  double period_ns = 1e8;  // mean distance; of bursts: from one burst to the next
  double phase_ns = 0;
  double jitter_ns = 0;  // standard deviation of a periodic stamp; never more than half a period
  int64_t burst = 1;     // frames a burst
  double gap_ns = 0;     // between them
  std::vector<double> stamps_ns;
};

enum class Serve : uint8_t { kFifo, kPriority, kEdf, kRoundRobin };

struct Resource {
  enum class Kind : uint8_t { kExclusive, kShared, kCores } kind = Kind::kExclusive;
  std::string name;
  int64_t capacity = 1;
  Serve serve = Serve::kFifo;
  bool by_stage = false;        // a server stays with the consecutive operations of a stage
  bool gives_way = false;       // but is left between two of them to a waiting tenant of greater priority
  double quantum_ns = 0;        // of round robin; 0: an operation is never cut
  double switch_ns = 0;         // a server's way from one tenant to another
  std::string policy = "fifo";  // the word for it in the trace
};

struct OperationLaw {
  std::string name;
  int32_t kind = 0;      // into Scenario::classes
  int32_t resource = 0;  // into Scenario::resources
  Law service;
};

struct StageLaw {
  std::string name;
  int32_t thread = 0;  // a group of `workers` threads of the tenant
  int64_t queue = 0;   // frames that may wait before it, when it is on another thread than what comes before; 0: any
  std::vector<int32_t> after;  // stages that must have ended; empty: it is the first
  std::vector<OperationLaw> operations;
};

enum class Drop : uint8_t { kNever, kOldest, kNewest };

struct Tenant {
  std::string name;
  double priority = 0;
  int32_t cpu = -1;  // its run queue
  Arrivals arrivals;
  Law comm;   // from the sensor's stamp to the arrival
  Law input;  // units of a frame's input
  double deadline_ns = 0;
  int64_t queue_depth = 0;  // before the first stage; 0: any
  Drop drop = Drop::kNever;
  int64_t workers = 1;  // threads of each group
  std::string model, model_type;
  std::vector<StageLaw> stages;  // in an order in which each comes after those it waits for
};

// Somebody who is no tenant keeps cores busy.
struct Load {
  bool is_recorder = false;  // else: the system
  int32_t resource = 0;      // of cores
  int64_t threads = 1;
  double from_ns = 0, to_ns = 0;  // 0: to the end
  double every_ns = 0;            // 0: all the time
  double for_ns = 0;              // of each period
  bool is_recorded = true;        // the trace knows of it
};

struct Slowdown {  // of a resource's clock
  int32_t resource = 0;
  double from_ns = 0, to_ns = 0;
  double factor = 1;  // of service times
};

struct Gap {  // a sensor that sends nothing
  int32_t tenant = 0;
  double from_ns = 0, to_ns = 0;
};

// How the recording differs from what happened.
struct Damage {
  double sigma_ns = 0;        // independent noise of each stamp
  double lost = 0;            // share of operations that are not in the trace
  double missing_flows = 0;   // share of hand-overs
  int32_t wrong_tenant = -1;  // whose threads' clock is off
  double offset_ns = 0;
  bool says_losses = true;  // the trace counts what it lost
};

struct Scenario {
  uint64_t seed = 1;
  double duration_ns = 1e10;
  std::string policy = "fifo";
  std::vector<std::string> classes;
  std::vector<std::vector<double>> interference;  // [slowed][beside]: time beside / time alone - 1
  double saturation = 0;                          // most that neighbours slow together; 0: they add up
  std::vector<Resource> resources;
  std::vector<Tenant> tenants;
  std::vector<Load> loads;
  std::vector<Slowdown> slowdowns;
  std::vector<Gap> gaps;
  Damage damage;
};

// Errors: kBadData naming the place in the file.
Result<Scenario> parse_scenario(const std::string& yaml);

// How a policy's word serves an exclusive resource: the order, and whether a server gives way. "concurrent"
// and "exclusive" serve as fifo. Errors: kUsage.
struct ServeRule {
  Serve serve = Serve::kFifo;
  bool gives_way = false;
};
Result<ServeRule> serve_rule(const std::string& policy);

}  // namespace strobe::simulate
