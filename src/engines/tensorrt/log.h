// What TensorRT says while it works: errors become our one line, warnings a fact.
#pragma once

#include <NvInferRuntime.h>

#include <cstdint>
#include <string>
#include <vector>

namespace strobe::engines::tensorrt_plugin {

// The one of the process: TensorRT keeps the first logger that it was given.
nvinfer1::ILogger& log();

// Hears what is said from now on: by the calling thread, or where that one was told nothing, by any.
class Listening {
 public:
  Listening();
  // One line of all errors; "TensorRT did not say why" where there is none.
  std::string errors() const;
  std::vector<std::string> warnings() const;

 private:
  uint64_t since_;
};

}  // namespace strobe::engines::tensorrt_plugin
