// Structured pruning: whole channels are removed, with everything that belongs to them, and a smaller ordinary network
// is left. What each method does exactly stands in docs/pruning.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/channel_groups.h"
#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

enum class PruneMethod : uint8_t {
  kUniform,  // the same share of every group of channels, which ones by chance
  kRandom,   // filters of the whole network by chance, so that every layer loses another share
  kL1        // the same share of every group, the channels whose filters have the least sum of magnitudes
};
// Of what a level is the percentage that goes.
enum class PruneShare : uint8_t { kChannels, kParameters };

// "uniform", "random", "l1"; "channels", "parameters". Errors: kUsage with the names that there are.
Result<PruneMethod> parse_prune_method(const std::string& name);
Result<PruneShare> parse_prune_share(const std::string& name);

inline constexpr int kMostPruned = 95;  // percent

// Levels in percent: "50", "0,10,50", "0,10,...,90" (the step of the two before the dots), "0:90:10". Each of 0 to
// kMostPruned, in ascending order. Errors: kUsage.
Result<std::vector<int>> parse_levels(const std::string& text);

struct PruneOptions {
  PruneMethod method = PruneMethod::kUniform;
  PruneShare share = PruneShare::kChannels;
  uint64_t seed = 1;
};

// The pruned family of one network.
class Pruner {
 public:
  // graph: sound, for kL1 with its weights filled. It must outlive the pruner. Errors: kUnsupported when no channel of
  // it may be removed.
  static Result<Pruner> create(const Graph& graph, const PruneOptions& options);

  // The network at a level, 0 to kMostPruned, named NAME_LEVEL; at 0 it is the network itself. Layers keep their names.
  // What cannot be reached (every group keeps a channel, outputs keep all) is come as near to as can be.
  Result<Graph> at(int level) const;

  const ChannelMap& channels() const { return map_; }
  // Filters that may be removed (one output channel of a layer with weights each).
  int64_t prunable_filters() const { return prunable_; }

 private:
  Pruner(const Graph& graph, const PruneOptions& options);
  using Removed = std::vector<bool>;  // by number of the coupled channel
  Removed share_of_groups(double share) const;
  Removed first_in_order(const std::vector<const CoupledChannel*>& order, size_t count) const;
  std::vector<const CoupledChannel*> random_order(int level) const;
  Result<Removed> uniform_at(int level) const;
  Result<Removed> random_at(int level) const;
  Result<double> parameters_without(const Removed& removed) const;  // as a share of all, 0..1

  const Graph* graph_;
  PruneOptions options_;
  ChannelMap map_;
  std::vector<std::vector<size_t>> order_;  // by group: its channels, which goes first
  Graph bare_;                              // the structure alone, to count parameters
  int64_t prunable_ = 0;
};

}  // namespace strobe::models
