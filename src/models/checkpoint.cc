#include "models/checkpoint.h"

#include <charconv>

#include "base/file.h"
#include "models/safetensors.h"

namespace strobe::models {
namespace {

constexpr std::string_view kOptimizer = "optimizer.";

}  // namespace

Result<void> write_checkpoint(const Checkpoint& checkpoint, const std::filesystem::path& path) {
  Safetensors content = weights_of(checkpoint.graph);
  for (const auto& [name, tensor] : checkpoint.optimizer)
    content.tensors.emplace(std::string(kOptimizer) + name, tensor);
  content.metadata = {{"step", std::to_string(checkpoint.step)}, {"network", checkpoint.graph.name}};
  return write_file(path, write_safetensors(content));
}

Result<Checkpoint> read_checkpoint(const Graph& graph, const std::filesystem::path& path) {
  STROBE_ASSIGN(const std::string bytes, read_file(path));
  const auto read = [&]() -> Result<Checkpoint> {
    STROBE_ASSIGN(Safetensors content, read_safetensors(bytes));
    Checkpoint checkpoint{.graph = graph, .optimizer = {}, .step = 0};
    const std::string& step = content.metadata["step"];
    const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), checkpoint.step);
    if (error != std::errc{} || end != step.data() + step.size() || checkpoint.step < 0)
      return bad_data("no checkpoint: its metadata lacks \"step\" (for weights alone there is --weights)");
    if (const std::string& network = content.metadata["network"]; network != graph.name)
      return bad_data("a checkpoint of " + network + ", not of " + graph.name);
    for (auto it = content.tensors.lower_bound(kOptimizer);
         it != content.tensors.end() && it->first.starts_with(kOptimizer); it = content.tensors.erase(it))
      checkpoint.optimizer.emplace(it->first.substr(kOptimizer.size()), std::move(it->second));
    STROBE_TRY(set_weights(checkpoint.graph, std::move(content)));
    return checkpoint;
  };
  auto checkpoint = read();
  if (!checkpoint) return std::move(checkpoint).error().at(path.string());
  return checkpoint;
}

}  // namespace strobe::models
