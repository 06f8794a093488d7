// Small ONNX files, written as bytes: tests need no ONNX library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace strobe::test {

// A model "picture" {batch, 2, 3, 4} -> Conv "mix" (1x1, three filters) -> Relu "clip" -> "result", in float32. batch:
// 0 leaves it open under the name "N"; open_size leaves height and width open too. weight: 6 values, {out, in};
// bias: 3.
std::string onnx_bytes(int64_t batch, bool open_size, const std::vector<float>& weight, const std::vector<float>& bias);
void write_bytes(const std::filesystem::path& path, const std::string& bytes);

}  // namespace strobe::test
