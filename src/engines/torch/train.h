// Training a Graph with ATen's automatic differentiation.
#pragma once

#include <c10/core/Device.h>

#include <memory>

#include "strobe/base/result.h"
#include "strobe/engines/trainer.h"

namespace strobe::engines::torch_plugin {

// device: TrainOptions::device, opened.
Result<std::unique_ptr<Trainer>> make_trainer(std::shared_ptr<const models::Graph> graph, const TrainOptions& options,
                                              c10::Device device);

}  // namespace strobe::engines::torch_plugin
