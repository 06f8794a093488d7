#include "base/tensorrt_layers.h"

#include <algorithm>

#include "base/json_scan.h"

namespace strobe {

using json::Scan;
using json::Value;

namespace {

std::string text_of(const Value& value) {
  return value.type == json::Type::kEscaped ? json::unescape(value.text) : std::string(value.text);
}

// "1x64x80x80" of the first of [{"Name": ..., "Dimensions": [1,64,80,80], ...}, ...].
std::string dimensions(std::string_view outputs) {
  constexpr std::string_view kKey = "\"Dimensions\"";
  const size_t key = outputs.find(kKey);
  if (key == std::string_view::npos) return {};
  const size_t open = outputs.find('[', key), close = outputs.find(']', key);
  if (open == std::string_view::npos || close == std::string_view::npos || open > close) return {};
  std::string shape;
  for (const char c : outputs.substr(open + 1, close - open - 1)) {
    if (c == ',') shape.push_back('x');
    if ((c >= '0' && c <= '9') || c == '-') shape.push_back(c);
  }
  return shape;
}

void add_once(std::vector<std::string>& names, std::string name) {
  if (!name.empty() && std::find(names.begin(), names.end(), name) == names.end()) names.push_back(std::move(name));
}

// "[ONNX Layer: conv1]\x1e[ONNX Layer: relu1]"; of other front ends other words before the colon.
std::vector<std::string> of_metadata(std::string_view metadata) {
  constexpr std::string_view kBegin = "[ONNX Layer: ";
  std::vector<std::string> names;
  for (size_t at = metadata.find(kBegin); at != std::string_view::npos; at = metadata.find(kBegin, at)) {
    at += kBegin.size();
    // A name may hold brackets: it ends before the next entry.
    size_t end = metadata.find('\x1e', at);
    const size_t next = metadata.find(kBegin, at);
    end = std::min({end, next, metadata.size()});
    const size_t close = metadata.rfind(']', end);
    if (close == std::string_view::npos || close < at) break;
    add_once(names, std::string(metadata.substr(at, close - at)));
  }
  return names;
}

// "conv1 + relu1", "conv1 || conv2", "PWN(PWN(a), b)". What lies between the ends of "{ForeignNode[a...b]}" is not
// told.
std::vector<std::string> of_name(std::string_view name) {
  std::vector<std::string> names;
  const auto is_edge = [](char c) { return c == '(' || c == ')' || c == '{' || c == '}' || c == '[' || c == ']'; };
  std::string word;
  for (size_t i = 0; i <= name.size(); ++i) {
    size_t skipped = 0;
    for (const std::string_view between : {" + ", " || ", ", ", "..."})
      if (name.substr(std::min(i, name.size())).starts_with(between)) skipped = between.size();
    if (i < name.size() && skipped == 0 && !is_edge(name[i])) {
      word += name[i];
      continue;
    }
    // A word before a bracket is TensorRT's own: PWN, ForeignNode.
    if (i == name.size() || (name[i] != '(' && name[i] != '[')) add_once(names, word);
    word.clear();
    if (skipped > 0) i += skipped - 1;
  }
  return names;
}

}  // namespace

TensorrtLayerScan::TensorrtLayerScan(std::string_view text) : text_(text) {
  const size_t key = text.find("\"Layers\"");
  const size_t open = key == std::string_view::npos ? key : text.find('[', key);
  if (open != std::string_view::npos) at_ = text.data() + open + 1;
}

std::optional<TensorrtLayer> TensorrtLayerScan::next() {
  if (at_ == nullptr || broken_at_) return std::nullopt;
  const char* const end = text_.data() + text_.size();
  while (at_ != end && (json::is_space(*at_) || *at_ == ',')) ++at_;
  if (at_ != end && *at_ == ']') return std::nullopt;
  const char* const first = at_;
  TensorrtLayer layer;
  std::string metadata;
  Scan scanned;
  if (at_ != end && *at_ == '{') {
    scanned = json::scan_object(at_, end, [&](std::string_view key, const char*& at, const char* stop) {
      Value value;
      const Scan result = json::scan_value(at, stop, value);
      if (result != Scan::kDone) return result;
      if (key == "Name") layer.name = text_of(value);
      if (key == "LayerType") layer.type = text_of(value);
      if (key == "TacticName") layer.tactic = text_of(value);
      if (key == "Outputs") layer.shape = dimensions(value.text);
      if (key == "Metadata") metadata = text_of(value);
      return result;
    });
  } else {
    Value name;
    scanned = json::scan_value(at_, end, name);
    layer.name = text_of(name);
  }
  if (scanned != Scan::kDone) {
    broken_at_ = static_cast<size_t>(first - text_.data());
    return std::nullopt;
  }
  layer.sources = of_metadata(metadata);
  if (layer.sources.empty()) layer.sources = of_name(layer.name);
  return layer;
}

}  // namespace strobe
