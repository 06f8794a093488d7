#include "onnx_weights.h"

#include <cstdint>
#include <optional>

namespace strobe::engines::tensorrt_plugin {
namespace {

// The messages of ONNX that a tensor can be in.
enum class Message : uint8_t { kModel, kGraph, kFunction, kNode, kAttribute, kSparse, kTensor };

std::optional<Message> message_in(Message outer, uint64_t field) {
  switch (outer) {
    case Message::kModel:
      return field == 7    ? std::optional(Message::kGraph)
             : field == 25 ? std::optional(Message::kFunction)
                           : std::nullopt;
    case Message::kGraph:
      if (field == 1) return Message::kNode;
      return field == 5    ? std::optional(Message::kTensor)
             : field == 15 ? std::optional(Message::kSparse)
                           : std::nullopt;
    case Message::kFunction:
      return field == 7 ? std::optional(Message::kNode) : std::nullopt;
    case Message::kNode:
      return field == 5 ? std::optional(Message::kAttribute) : std::nullopt;
    case Message::kAttribute:
      if (field == 5 || field == 10) return Message::kTensor;
      if (field == 6 || field == 11) return Message::kGraph;
      return field == 22 || field == 23 ? std::optional(Message::kSparse) : std::nullopt;
    case Message::kSparse:
      return field == 1 || field == 2 ? std::optional(Message::kTensor) : std::nullopt;
    case Message::kTensor:
      break;
  }
  return std::nullopt;
}

// Reads the fields of one message; over at its end and at the first thing that is no field.
class Fields {
 public:
  explicit Fields(std::string_view message) : left_(message) {}
  bool next() {
    uint64_t key = 0, size = 0;
    if (left_.empty() || !varint(key)) return false;
    number = key >> 3;
    bytes = {};
    switch (key & 7) {
      case 0:
        return varint(size);
      case 1:
        size = 8;
        break;
      case 2:
        if (!varint(size)) return false;
        break;
      case 5:
        size = 4;
        break;
      default:
        return false;
    }
    if (size > left_.size()) return false;
    bytes = left_.substr(0, size);
    left_.remove_prefix(size);
    return true;
  }
  uint64_t number = 0;
  std::string_view bytes;  // of a message or text

 private:
  bool varint(uint64_t& value) {
    value = 0;
    for (int shift = 0; !left_.empty() && shift < 64; shift += 7) {
      const auto byte = static_cast<uint8_t>(left_[0]);
      left_.remove_prefix(1);
      value |= uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  std::string_view left_;
};

void collect(std::string_view bytes, Message kind, int depth, std::set<std::string>& files) {
  constexpr int kDeepest = 100;  // what protocol buffers' own readers take
  constexpr uint64_t kExternalData = 13, kKey = 1, kValue = 2;
  if (depth > kDeepest) return;
  for (Fields field(bytes); field.next();) {
    if (kind == Message::kTensor && field.number == kExternalData) {
      std::string_view key, value;
      for (Fields entry(field.bytes); entry.next();) {
        if (entry.number == kKey) key = entry.bytes;
        if (entry.number == kValue) value = entry.bytes;
      }
      if (key == "location") files.emplace(value);
    } else if (const auto inner = message_in(kind, field.number)) {
      collect(field.bytes, *inner, depth + 1, files);
    }
  }
}

}  // namespace

std::set<std::string> external_weights(std::string_view onnx) {
  std::set<std::string> files;
  collect(onnx, Message::kModel, 0, files);
  return files;
}

}  // namespace strobe::engines::tensorrt_plugin
