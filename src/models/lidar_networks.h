// The graphs of LiDAR detectors: a pillar feature net, and the 2-D network behind the scatter.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/centre_head.h"
#include "models/module_builder.h"
#include "models/pillar_anchors.h"
#include "models/safetensors.h"
#include "models/voxel.h"

namespace strobe::models {

// {features, points, pillars} -> {channels, 1, pillars}: a 1x1 convolution, batch norm and ReLU a point, the largest of
// each pillar (Lang et al. 2019).
Result<Graph> make_pillar_net(const std::string& name, const PillarRule& rule, int64_t channels);

// SECOND's backbone and neck (Yan et al. 2018): blocks of 3x3 convolutions, the first of each with a stride, each
// brought to one size and joined. up: stride of a transposed convolution; 0: a convolution of stride 2.
struct BevBlock {
  int64_t convolutions;  // after the first
  int64_t channels;
  int64_t stride;
  int64_t up, up_channels;
};
LayerId add_bev_network(ModuleBuilder& build, LayerId canvas, const std::vector<BevBlock>& blocks);

// Three outputs: classes, codes, directions (AnchorMaps).
void add_anchor_head(ModuleBuilder& build, LayerId x, int64_t anchors, int64_t classes, int64_t code);
// A shared convolution of `channels`, then for each task one hidden convolution and its map; an output a task. The
// original has a hidden convolution for each of the six quantities of a task; here a task's share one.
void add_centre_head(ModuleBuilder& build, LayerId x, int64_t channels, const std::vector<CentreTask>& tasks);

// The weights of several graphs in one file, by layer names that no two of them share. Without a file: seeded ones, the
// outputs of heads as rare as 0.01 (graph.trained is false). Errors: as of read_safetensors and set_weights.
Result<void> fill_parts(std::vector<Graph>& parts, const std::filesystem::path& weights, uint64_t seed);
Safetensors weights_of_parts(const std::vector<std::shared_ptr<const Graph>>& parts);

}  // namespace strobe::models
