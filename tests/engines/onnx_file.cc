#include "engines/onnx_file.h"

#include <cstring>
#include <fstream>

namespace strobe::test {
namespace {

// Protocol buffers: a field is its number and kind, then the value.
std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>((value & 0x7F) | 0x80);
  return bytes + static_cast<char>(value);
}
std::string number(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
}
std::string text(int field, const std::string& bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}

// Field numbers of onnx.proto.
std::string dimension(int64_t value, const char* open_name) {
  return text(1, value > 0 ? number(1, value) : text(2, open_name));
}
std::string value_info(const char* name, const std::string& dimensions) {
  const std::string tensor = number(1, 1) + text(2, dimensions);  // elem_type FLOAT, shape
  return text(1, name) + text(2, text(1, tensor));
}
std::string initializer(const char* name, const std::vector<int64_t>& shape, const std::vector<float>& values) {
  std::string raw(values.size() * sizeof(float), '\0');
  std::memcpy(raw.data(), values.data(), raw.size());
  std::string tensor;
  for (const int64_t extent : shape) tensor += number(1, extent);
  return tensor + number(2, 1) + text(8, name) + text(9, raw);
}
std::string node(const char* name, const char* operation, const std::vector<const char*>& inputs, const char* output,
                 const std::string& attributes = "") {
  std::string bytes;
  for (const char* input : inputs) bytes += text(1, input);
  return bytes + text(2, output) + text(3, name) + text(4, operation) + attributes;
}

}  // namespace

std::string onnx_bytes(int64_t batch, bool open_size, const std::vector<float>& weight,
                       const std::vector<float>& bias) {
  const std::string n = dimension(batch, "N");
  const std::string size = open_size ? dimension(0, "H") + dimension(0, "W") : dimension(3, "") + dimension(4, "");
  const std::string kernel_shape = text(5, text(1, "kernel_shape") + number(8, 1) + number(8, 1) + number(20, 7));
  const std::string graph = text(1, node("mix", "Conv", {"picture", "weight", "bias"}, "mixed", kernel_shape)) +
                            text(1, node("clip", "Relu", {"mixed"}, "result")) + text(2, "small") +
                            text(5, initializer("weight", {3, 2, 1, 1}, weight)) +
                            text(5, initializer("bias", {3}, bias)) +
                            text(11, value_info("picture", n + dimension(2, "") + size)) +
                            text(12, value_info("result", n + dimension(3, "") + size));
  return number(1, 8) + text(7, graph) + text(8, text(1, "") + number(2, 13));  // IR version, graph, opset
}

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace strobe::test
