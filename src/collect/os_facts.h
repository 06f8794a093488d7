// Samples what the operating system knows of a tree of processes, out of /proc.
#pragma once

#include <memory>

#include "collect/collector.h"

namespace strobe::collect {

struct OsOptions {
  int64_t period_ns = 10'000'000;
};
// The tree is what descends from this process. Sampling takes at most a twentieth of one core: where a look around
// takes longer than that, the next one comes later, and the facts say how often it was.
std::unique_ptr<Collector> make_os_collector(const OsOptions& options);

}  // namespace strobe::collect
