// Collects what programs say of themselves through NVTX and ITT, and what they do on a GPU, by the library
// libstrobe_inject.so.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "collect/collector.h"

namespace strobe::collect {

struct InjectionOptions {
  std::filesystem::path folder;  // the recorders' folder
  bool nvtx = true, itt = true;
  bool gpu = true;               // the CUDA driver loads the library; without one nothing happens
  bool gpu_graph_nodes = false;  // every kernel of a CUDA graph instead of one record a launch
  std::string gpu_replay =
      {};  // instead of all else: the counters of each kernel by running it again; figures or "all"
  size_t ring_bytes = 1 << 20;  // per thread
  bool block_when_full = false;
};
// Errors: kNotFound (the library is not beside this program).
Result<std::unique_ptr<Collector>> make_injection_collector(const InjectionOptions& options);

}  // namespace strobe::collect
