// Training a Graph with ATen's automatic differentiation.
#pragma once

#include <memory>

#include "strobe/base/result.h"
#include "strobe/engines/trainer.h"

namespace strobe::engines::torch_plugin {

Result<std::unique_ptr<Trainer>> make_trainer(std::shared_ptr<const models::Graph> graph, const TrainOptions& options);

}  // namespace strobe::engines::torch_plugin
