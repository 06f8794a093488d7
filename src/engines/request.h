// What every engine checks and derives from a request to load a network.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::engines {

// Cores that this process may use: its affinity mask, cut by the CPU quota of its cgroup. At least 1.
int allowed_cores();

// options.threads_per_session, or the allowed cores divided by the sessions; at least 1.
int session_threads(const LoadOptions& options);

// Whether LoadOptions::device could name a device: "cpu", or "cuda:" and up to two digits. Errors: kUsage.
Result<void> check_device_word(const std::string& device);

// Whether the engine runs on that device, "cpu" or "cuda:N". Errors: kUsage (an engine for GPUs alone), those of
// Engine::precisions_on.
Result<void> check_runs_on(const Engine& engine, const std::string& device);

// Checks numbers, variant, device, precision and the kind of source against what the engine says of itself, and that a
// file is there. Errors: kUsage, kUnsupported, kNotFound.
Result<void> check_request(const Engine& engine, const ModelSource& source, const LoadOptions& options);

// The two ends of a network.
struct Ends {
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
};
// Those of a Graph: NCHW, {n, c, 1, 1} for a vector.
Ends ends_of(const models::Graph& graph, int64_t batch);
// Checks that as many buffers were given to a session as its network has. Errors: kInternal.
Result<void> check_buffers(const Ends& ends, std::span<const float* const> inputs, std::span<float* const> outputs);

// A foreign message cut to one line of at most `limit` characters: frameworks add source places and stack traces.
std::string one_line(std::string_view message, size_t limit = 300);

}  // namespace strobe::engines
