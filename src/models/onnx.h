// A Graph as an ONNX file, for programs that run networks in this form: TensorRT, ONNX Runtime, OpenVINO.
#pragma once

#include <cstdint>
#include <string>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

// What weights and the values between the layers are; inputs and outputs stay float32. A reader whose networks are
// strongly typed computes in just that.
enum class OnnxNumber : uint8_t { kF32, kF16, kBf16 };

struct OnnxOptions {
  int64_t batch = 1;  // 0: left open, under the name "batch"
  OnnxNumber number = OnnxNumber::kF32;
};

// The file's bytes: opset 17, the same for the same graph. A layer's operation is a node with the layer's name, helpers
// of it are "<layer>#<what>"; inputs and outputs have their layers' names; an identity (dropout, linear activation,
// YOLO head) has a node only where an output needs one. bf16 goes beyond opset 17, in which few operations have it.
// Errors: kUnsupported (over 2 GB, which a file of this form cannot hold; weights in files beside it are not written),
// kBadData (a graph that is not finished, a name that two things would have).
Result<std::string> write_onnx(const Graph& graph, const OnnxOptions& options = {});

}  // namespace strobe::models
