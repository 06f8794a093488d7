// A Graph as an ov::Model. Each layer becomes its own operation (batch norm too), so that what is fused is OpenVINO's
// own doing.
#pragma once

#include <memory>
#include <openvino/core/model.hpp>
#include <string>

#include "strobe/models/graph.h"

namespace strobe::engines::openvino_plugin {

// The operation of a layer has the layer's name; helpers of it (constants, reshapes) are called "<layer>#<what>". The
// model's weights share the graph's memory: the graph must outlive it.
std::shared_ptr<ov::Model> emit(const models::Graph& graph, int64_t batch);

// The layer that an operation made by emit() belongs to.
std::string layer_of(const std::string& operation_name);

}  // namespace strobe::engines::openvino_plugin
