// Another program's answer.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace strobe::bench {

// What it wrote to its output; nothing where it cannot be started, fails, or takes longer than that. Its errors are
// dropped. Signals that end a program do not reach it.
std::optional<std::string> run_tool(const std::vector<std::string>& command, int timeout_s = 20);

// The lines of `nvidia-smi --query-gpu=FIELDS`, without units; cells split at commas. Empty without a GPU.
std::vector<std::vector<std::string>> query_gpus(const std::string& fields, int gpu);

}  // namespace strobe::bench
