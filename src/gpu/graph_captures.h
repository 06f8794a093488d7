// Where the nodes of CUDA graphs come from: CUPTI calls back whenever one is made, by a stream's capture, by hand, or
// as the copy of another (which is what is launched in the end), and records of kernels name only the last one.
#pragma once

#include <functional>
#include <mutex>
#include <vector>

#include "gpu/activity.h"
#include "gpu/cupti.h"

namespace strobe::gpu {

class GraphCaptures {
 public:
  explicit GraphCaptures(const Cupti& cupti) : cupti_(cupti) {}

  // Asks for the calls back. False: the library cannot, or does not want to.
  bool enable(cupti::Subscriber subscriber) const;
  // What CUPTI calls back with, on the program's threads and under locks of its own.
  void take(int domain, uint32_t function, const void* data);
  // What came since the last time, in order; from one thread at a time. The number of those that found no room.
  uint64_t drain(const std::function<void(const GraphNode&)>& put);

 private:
  uint64_t id_of(void* node) const;

  static constexpr size_t kMost = 1 << 20;
  const Cupti& cupti_;
  std::mutex mutex_;
  std::vector<GraphNode> waiting_, taken_;
  uint64_t lost_ = 0;
};

}  // namespace strobe::gpu
