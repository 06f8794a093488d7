// TensorRT's libraries, opened at run time: the plugin needs its headers to be built and nothing of it to be loaded.
#pragma once

#include <NvInfer.h>
#include <NvOnnxParser.h>

#include <memory>
#include <string>

#include "strobe/base/result.h"

namespace strobe::engines::tensorrt_plugin {

struct Tensorrt {
  std::string path;     // of libnvinfer
  std::string version;  // of the library, "11.1.0"
  std::string build;    // its number among those of the version; may be empty

  std::unique_ptr<nvinfer1::IBuilder> builder() const;
  std::unique_ptr<nvinfer1::IRuntime> runtime() const;
  std::unique_ptr<nvonnxparser::IParser> parser(nvinfer1::INetworkDefinition& network) const;

  void* (*create_builder)(void* logger, int32_t version) = nullptr;
  void* (*create_runtime)(void* logger, int32_t version) = nullptr;
  void* (*create_parser)(void* network, void* logger, int version) = nullptr;
};

// Opened at the first call: out of the folder in STROBE_TENSORRT_LIBRARY, else where the loader finds it, else out of
// the wheel of the active Python environment. Errors: kUnsupported (not there, another version than the headers').
const Result<Tensorrt>& tensorrt();

std::string header_version();  // "11.1.0"

}  // namespace strobe::engines::tensorrt_plugin
