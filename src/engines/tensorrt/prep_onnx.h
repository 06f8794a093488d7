// Preprocessing as a network of its own, for TensorRT to build: what the media room does on the CPU, in ONNX's words.
#pragma once

#include <string>

#include "strobe/base/picture_sampling.h"

namespace strobe::engines::tensorrt_plugin {

inline constexpr const char* kPrepPlane = "plane";     // inputs plane0, plane1, ...: uint8 {rows, bytes of a row}
inline constexpr const char* kPrepOutput = "picture";  // float32 {1, 3, height, width}

// An ONNX file of opset 17, the same for the same pictures. sigma: PrepOptions::smoothing_sigma.
std::string write_prep_onnx(const PictureSampling& sampling, double sigma);

}  // namespace strobe::engines::tensorrt_plugin
