// Files that an ONNX file keeps its weights in.
#pragma once

#include <set>
#include <string>
#include <string_view>

namespace strobe::engines::tensorrt_plugin {

// Their names as the file has them, relative to its folder; empty where all weights are in it, or where it is no ONNX.
std::set<std::string> external_weights(std::string_view onnx);

}  // namespace strobe::engines::tensorrt_plugin
