// GPU clocks at their maximum for as long as somebody needs them, and put back whatever becomes of him.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <vector>

#include "strobe/bench/clocks.h"

namespace strobe::bench {

// A child process (the guardian) changes the clocks and puts them back when it is told to, or when this process is
// gone: ended, crashed or killed. Where the guardian itself is gone, this process puts them back.
class HeldClocks {
 public:
  // To be called while the process has one thread. gpus: numbers of NVML and nvidia-smi; empty: the devices that this
  // process's environment leaves to programs. What cannot be done is logged, in a line each.
  HeldClocks(std::vector<int> gpus, Log log);
  HeldClocks(const HeldClocks&) = delete;
  HeldClocks& operator=(const HeldClocks&) = delete;
  ~HeldClocks() { release(); }

  // Of every GPU, and there is one.
  bool done() const;
  // In a forked child: nothing, they are its parent's.
  void release();
  pid_t guardian() const { return guardian_; }

 private:
  bool read_messages();  // up to the next answer; false: the guardian is gone or silent
  Log log_;
  const pid_t owner_;
  pid_t guardian_ = -1;
  int socket_ = -1;
  std::map<int, GpuClocks> before_;
};

}  // namespace strobe::bench
