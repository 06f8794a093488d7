// A Graph as a network of OpenCV's DNN module, one of its layers for each of ours.
#pragma once

#include <opencv2/dnn.hpp>
#include <string>
#include <vector>

#include "strobe/models/graph.h"

namespace strobe::engines::opencv_plugin {

struct Emitted {
  cv::dnn::Net net;
  std::vector<std::string> outputs;  // names to ask for, in the graph's order
};
// Layers keep their names; helpers are called "<layer>#<what>". Weights share the graph's memory. Throws cv::Exception.
Emitted emit(const models::Graph& graph);

}  // namespace strobe::engines::opencv_plugin
