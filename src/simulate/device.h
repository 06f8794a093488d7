// The simulated device: virtual time, driven from one change of state to the next. What each holder had of each
// resource is integrated as time passes, so that the blame of every stage is known from the inside.
#pragma once

#include <cstdint>
#include <vector>

#include "simulate/scenario.h"

namespace strobe::simulate {

// Whoever can be blamed: tenants by number, then these two.
inline int32_t system_of(const Scenario& scenario) {
  return static_cast<int32_t>(scenario.tenants.size());
}
inline int32_t recorder_of(const Scenario& scenario) {
  return system_of(scenario) + 1;
}
// Resources by number, then queues: of tenant t before its threads (number resources + t), then before stage s of
// tenant t, numbered through.
int32_t thread_queue_of(const Scenario& scenario, int32_t tenant);
int32_t stage_queue_of(const Scenario& scenario, int32_t tenant, int32_t stage);
std::vector<std::string> resource_names(const Scenario& scenario);

struct Blame {
  int32_t by = 0, resource = 0;
  double ns = 0;
};
// A part of a wait for a thread: while it worked on that earlier frame.
struct Backlog {
  int32_t frame = 0;
  double ns = 0;
};

struct OperationLog {
  int32_t stage = 0;     // into Log::stages
  int32_t law = 0;       // of its stage; -1: a push into a full queue
  int32_t resource = 0;  // a queue's number, of a push
  int32_t slice = 0;
  double ready_ns = 0, start_ns = 0, end_ns = 0;
  double intrinsic_ns = 0;  // service without anybody beside it
  double runnable_ns = 0;   // on cores: ready and not running
};

struct StageLog {
  int32_t frame = 0, law = 0;
  int32_t worker = 0;  // of the whole device
  int32_t cause = -1;  // the stage whose end let this one begin to wait; -1: the arrival
  double queued_ns = 0, start_ns = 0, end_ns = 0;
  double intrinsic_ns = 0;
  std::vector<Blame> blame;      // between start and end
  std::vector<Backlog> backlog;  // between queued and start
};

struct FrameLog {
  int32_t tenant = 0;
  int64_t id = 0;
  double stamp_ns = 0, arrival_ns = 0, done_ns = 0;
  enum class Outcome : uint8_t { kFinished, kDroppedOldest, kDroppedNewest, kLost } outcome = Outcome::kLost;
  std::vector<int32_t> stages;  // into Log::stages, by law; -1: did not begin
  int32_t last = -1;            // the stage that ended it
};

struct OtherLog {
  int32_t by = 0, resource = 0;
  double start_ns = 0, end_ns = 0;
  bool is_recorded = true;
};

struct NotSent {
  int32_t tenant = 0;
  int64_t id = 0;
  double stamp_ns = 0;
};

struct Log {
  std::vector<FrameLog> frames;  // by arrival
  std::vector<StageLog> stages;
  std::vector<OperationLog> operations;
  std::vector<OtherLog> others;
  std::vector<NotSent> not_sent;
  std::vector<std::vector<int32_t>> worker_of;  // of a tenant: its workers' numbers, by thread group then worker
  int32_t workers = 0;
};

// Runs until the last frame is done, at most for 20 times the scenario's duration: what is not done by then is lost.
Log simulate(const Scenario& scenario);

}  // namespace strobe::simulate
