// What TensorRT says of an engine's layers, by trtexec's --exportLayerInfo or by its engine inspector:
// {"Layers": [...], "Bindings": [...]}.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace strobe {

struct TensorrtLayer {
  std::string name;    // as TensorRT fused it: "conv1 + relu1", "PWN(sigmoid)"
  std::string type;    // "CaskConvolution"; empty, as all that follows, where the engine was built without detail
  std::string tactic;  // the implementation that was chosen
  std::string shape;   // of the first output, "1x64x80x80"
  std::vector<std::string> sources;  // nodes of the ONNX file that ended in it, by its metadata, else by its name
};

// One layer after the other. The text must be followed by 16 readable bytes.
class TensorrtLayerScan {
 public:
  explicit TensorrtLayerScan(std::string_view text);
  // Whether the text has a list of layers.
  bool found() const { return at_ != nullptr; }
  // Nothing at the list's end, and where the text cannot be read any further.
  std::optional<TensorrtLayer> next();
  // Where the text broke off, as a position in it.
  std::optional<size_t> broken_at() const { return broken_at_; }

 private:
  std::string_view text_;
  const char* at_ = nullptr;
  std::optional<size_t> broken_at_;
};

}  // namespace strobe
