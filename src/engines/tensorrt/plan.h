// TensorRT engines: built of ONNX or found in the cache, or read from a file in which one was written down.
#pragma once

#include <NvInfer.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "driver.h"
#include "library.h"
#include "strobe/base/result.h"
#include "strobe/engines/engine.h"

namespace strobe::engines::tensorrt_plugin {

// The engine, and the runtime that must outlive it.
struct Plan {
  std::shared_ptr<nvinfer1::IRuntime> runtime;
  std::shared_ptr<nvinfer1::ICudaEngine> engine;
  // The ends in the network's order, which an engine need not keep; empty for one that was read from a file.
  std::vector<std::string> inputs, outputs;
  std::vector<std::pair<std::string, std::string>> facts;  // of building or reading it
};

struct OnnxSource {
  std::string_view bytes;
  std::string name;             // of the network or file, for messages
  std::string path;             // of the file; empty for a Graph. Weights may lie beside it
  bool carries_numbers = true;  // the precision is in the bytes themselves
  bool whole = false;           // every shape is, too, and its ends are of any type: no batch and size is put in
};

// Every input gets the batch and what else it leaves open of options.input_shape, unless the source is whole. What was
// built before on a device of this kind comes out of the cache (cache.h), what is built goes there; what is in the way
// of that is said on stderr and in the fact engine_cache_note. The device must be current. Errors: kUsage (a size that
// the file has otherwise, or leaves open and none was given), kBadData (no ONNX), kUnsupported (an operation that
// TensorRT lacks: names the node; types other than float32 at the ends), kEngine.
Result<Plan> build(const Tensorrt& tensorrt, const Device& device, const OnnxSource& source,
                   const LoadOptions& options);

// Errors: kBadData (no engine, or one of another TensorRT or GPU: TensorRT's own words), kEngine.
Result<Plan> deserialize(const Tensorrt& tensorrt, std::string_view bytes);

}  // namespace strobe::engines::tensorrt_plugin
