// What `strobe record` collects about a program that it did not write, and what a collector is.
#pragma once

#include <sys/resource.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::collect {

// Times are nanoseconds of CLOCK_MONOTONIC, as the recorder's.
struct ProcessFacts {
  int32_t pid = 0, parent = 0;
  std::string name, command;
  int64_t start_ns = 0, end_ns = 0;  // end 0: still running when the recording ended
  std::optional<int> wait_status;  // of waitpid(); known of the program and of processes whose parent died before them
  int64_t cpu_ns = 0;              // user and system
  int64_t peak_rss_bytes = 0;
  int64_t minor_faults = 0, major_faults = 0;
};
struct ThreadFacts {
  int32_t pid = 0, tid = 0;
  std::string name;
  int64_t first_ns = 0, last_ns = 0;  // seen
  int64_t cpu_ns = 0;                 // ran
  int64_t wait_ns = 0;                // ready to run, but the processor did something else
  int64_t voluntary_switches = 0, involuntary_switches = 0;
};
struct CounterSample {
  int64_t time_ns;
  int32_t pid, tid;  // tid 0: of the whole process
  const char* name;  // a literal
  double value;
};
struct Findings {
  std::vector<ProcessFacts> processes;
  std::vector<ThreadFacts> threads;
  std::vector<CounterSample> samples;
  std::map<std::string, std::string> facts;
};

// One kind of thing that is collected while a program runs. Called from one thread.
class Collector {
 public:
  virtual ~Collector() = default;
  // What the program needs in its environment, put there before it starts.
  virtual Result<void> prepare(std::map<std::string, std::string>& environment) {
    (void)environment;
    return {};
  }
  // A process of the tree that is ours to wait for: just started; dead, but not yet gone; gone with its resources.
  virtual void started(int32_t pid, const std::vector<std::string>& command, int64_t start_ns) {
    (void)pid, (void)command, (void)start_ns;
  }
  virtual void died(int32_t pid) { (void)pid; }
  virtual void reaped(int32_t pid, int wait_status, const rusage& used) { (void)pid, (void)wait_status, (void)used; }
  // Looks around. The next time to be called, or nothing: never.
  virtual std::optional<int64_t> sample() { return std::nullopt; }
  // Adds what was found; called once, at the end.
  virtual void finish(Findings& findings) { (void)findings; }
};

}  // namespace strobe::collect
