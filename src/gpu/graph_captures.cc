#include "gpu/graph_captures.h"

#include <unistd.h>

#include <utility>

namespace strobe::gpu {

bool GraphCaptures::enable(cupti::Subscriber subscriber) const {
  if (cupti_.enable_callback == nullptr || cupti_.graph_node_id == nullptr || subscriber == nullptr) return false;
  for (const uint32_t function : {cupti::kGraphNodeCreated, cupti::kGraphNodeCloned})
    if (cupti_.enable_callback(1, subscriber, cupti::kDomainResource, function) != cupti::kSuccess) return false;
  return true;
}

uint64_t GraphCaptures::id_of(void* node) const {
  uint64_t id = 0;
  return node != nullptr && cupti_.graph_node_id(node, &id) == cupti::kSuccess ? id : 0;
}

void GraphCaptures::take(int domain, uint32_t function, const void* data) {
  if (domain != cupti::kDomainResource || data == nullptr) return;
  if (function != cupti::kGraphNodeCreated && function != cupti::kGraphNodeCloned) return;
  const auto* graph = static_cast<const cupti::GraphData*>(static_cast<const cupti::ResourceData*>(data)->descriptor);
  if (graph == nullptr) return;
  GraphNode node;
  cupti_.timestamp(&node.time.ns);
  node.thread = static_cast<uint32_t>(::gettid());
  node.node = id_of(graph->node);
  if (function == cupti::kGraphNodeCloned) node.original = id_of(graph->original_node);
  node.type = static_cast<uint32_t>(graph->node_type);
  // Without a number no kernel can be brought together with it.
  if (node.node == 0 || (function == cupti::kGraphNodeCloned && node.original == 0)) return;
  // Never held while CUPTI is called, which holds locks of its own now.
  const std::lock_guard lock(mutex_);
  if (waiting_.size() < kMost)
    waiting_.push_back(node);
  else
    ++lost_;
}

uint64_t GraphCaptures::drain(const std::function<void(const GraphNode&)>& put) {
  uint64_t lost = 0;
  {
    const std::lock_guard lock(mutex_);
    taken_.swap(waiting_);
    lost = std::exchange(lost_, 0);
  }
  for (const GraphNode& node : taken_) put(node);
  taken_.clear();
  return lost;
}

}  // namespace strobe::gpu
