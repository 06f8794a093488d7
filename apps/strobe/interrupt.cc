#include "interrupt.h"

#include <csignal>

namespace strobe::app {

namespace {

std::atomic<bool> stop_requested{false};

void on_interrupt(int signal) {
  if (stop_requested.exchange(true)) {
    std::signal(signal, SIG_DFL);
    std::raise(signal);
  }
}

}  // namespace

const std::atomic<bool>& stop_on_interrupt() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
  return stop_requested;
}

}  // namespace strobe::app
