// Runs several programs at once and sees to it that none of them stays behind.
#pragma once

#include <csignal>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "bench/plan.h"
#include "strobe/base/result.h"

namespace strobe::bench {

// While it lives, the signals that end a program wait for wait(), so that what must be undone can be. The mask that the
// process had before goes to the children.
class HeldSignals {
 public:
  HeldSignals();
  HeldSignals(const HeldSignals&) = delete;
  HeldSignals& operator=(const HeldSignals&) = delete;
  ~HeldSignals();
  // The next one that came (SIGCHLD, too); 0: none within that time.
  int wait(int64_t milliseconds) const;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t held_{}, before_{};
};

struct ProcessEnd {
  bool started = false, finished = false;  // finished: exit code 0
  std::string reason;                      // why not, for people
  double seconds = 0;
};
struct ChildrenEnd {
  std::vector<ProcessEnd> processes;
  int interrupted = 0;  // by this signal
};

struct ChildrenOptions {
  double timeout_s = 0;  // of each process; 0: none
  std::function<void(const PlannedProcess&, const ProcessEnd&)> ended;
};

// Starts them all, their output into "log.txt" of their folders, their input empty. Each is the head of a process group
// of its own and ends with this process. After its time or an interruption a process gets SIGTERM or that signal, after
// 3 s again, after 15 s SIGKILL with all of its group; a second interruption is the SIGKILL at once.
Result<ChildrenEnd> run_children(const std::vector<PlannedProcess>& planned, const HeldSignals& signals,
                                 const ChildrenOptions& options);

}  // namespace strobe::bench
