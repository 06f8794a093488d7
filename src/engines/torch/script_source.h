// A Graph written out as TorchScript source.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "strobe/models/graph.h"

namespace strobe::engines::torch_plugin {

struct ScriptSource {
  std::string text;                       // "def forward(self, x0): ..."; weights are self.<layer id>_<what>
  std::map<size_t, std::string> line_of;  // layer name by line of the text, counted from 0
};
ScriptSource script_source(const models::Graph& graph);

}  // namespace strobe::engines::torch_plugin
