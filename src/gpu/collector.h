// Collects what CUPTI tells of this process into a log (log_file.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "strobe/base/result.h"

namespace strobe::gpu {

// By this variable ("1") whoever starts a program asks for it.
inline constexpr const char* kGraphNodesVariable = "STROBE_GPU_GRAPH_NODES";
bool graph_nodes_wanted();

struct CollectOptions {
  std::filesystem::path folder;  // of the log; the recorder's, so that both are found together
  // Called by the driver while it initialises itself: the driver is not to be called, and what was collected is
  // completed when the process exits.
  bool in_driver_start = false;
  // Every kernel of a graph, and where it was captured, instead of one record a launch: slows graphs down.
  bool graph_nodes = graph_nodes_wanted();
  bool markers = false;  // NVTX as CUPTI sees it, for programs whose NVTX is bound to CUPTI itself
  size_t buffer_bytes = 2 << 20;
  size_t most_buffers = 96;
  // What a killed process loses, where the device rests now and then: a buffer in which anything is under way is not
  // given back before it is full.
  int flush_period_ms = 500;
  int stop_timeout_ms = 5000;
};

struct CollectTotals {
  uint64_t records = 0;
  uint64_t dropped = 0;          // no buffer was left; shown with every result
  bool flush_timed_out = false;  // CUPTI did not answer at the end: what it still had is lost
};

// Begins; one at a time in a process. Says in one line why it is not possible: no driver, no device, no CUPTI, another
// client, no permission. Errors: kUnsupported, kIo, kUsage (already collecting).
Result<void> start_collecting(const CollectOptions& options);
// Collects what is still under way and completes the log; does nothing where nothing was begun.
CollectTotals stop_collecting();
bool collecting();

// start_collecting(), but a reason against it goes into a log of its own, so that the trace tells it. False: off.
bool start_collecting_or_say_why(const CollectOptions& options);

// Lets record::start() with Options::gpu collect by this program's own collector. To be called once, before that.
void provide_to_recorder();
// What it then calls: start_collecting(), but not in a process of which `strobe record` collects already. Empty: begun;
// else why not.
std::string start_for_recorder(const std::filesystem::path& folder);

}  // namespace strobe::gpu
