#pragma once

#include <csignal>
#include <ctime>

namespace strobe::record {

// Growing a file past RLIMIT_FSIZE raises SIGXFSZ, which ends the program unless it is held back. While this lives, the
// calling thread gets EFBIG alone.
class HoldFileLimitSignal {
 public:
  HoldFileLimitSignal() {
    sigset_t pending;
    ::sigemptyset(&only_);
    ::sigaddset(&only_, SIGXFSZ);
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGXFSZ) == 1;
    ::pthread_sigmask(SIG_BLOCK, &only_, &before_);
  }
  HoldFileLimitSignal(const HoldFileLimitSignal&) = delete;
  HoldFileLimitSignal& operator=(const HoldFileLimitSignal&) = delete;
  ~HoldFileLimitSignal() {
    const timespec now{};
    if (!was_pending_) ::sigtimedwait(&only_, nullptr, &now);  // takes back the one that we caused, if any
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  sigset_t only_{};
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace strobe::record
