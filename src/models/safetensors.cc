#include "models/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "models/graph_builder.h"

namespace strobe::models {
namespace {

using nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the format is little-endian and read as it lies");

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kMostHeaderBytes = 100'000'000;  // as the format's own reader
constexpr int64_t kMostElements = int64_t{1} << 40;

size_t bytes_of(std::string_view dtype) {
  if (dtype == "F64" || dtype == "I64" || dtype == "U64") return 8;
  if (dtype == "F32" || dtype == "I32" || dtype == "U32") return 4;
  if (dtype == "F16" || dtype == "BF16" || dtype == "I16" || dtype == "U16") return 2;
  if (dtype == "I8" || dtype == "U8" || dtype == "BOOL" || dtype == "F8_E5M2" || dtype == "F8_E4M3") return 1;
  return 0;
}

float half_to_float(uint16_t half) {
  const uint32_t sign = (half & 0x8000U) << 16;
  const uint32_t exponent = (half >> 10) & 0x1FU;
  const uint32_t fraction = half & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F80'0000U | fraction << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
  const float subnormal = static_cast<float>(fraction) * 0x1p-24F;
  return sign != 0 ? -subnormal : subnormal;
}

template <typename Stored, typename Convert>
std::vector<float> converted(std::string_view data, Convert convert) {
  std::vector<float> values(data.size() / sizeof(Stored));
  for (size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, data.data() + i * sizeof stored, sizeof stored);
    values[i] = convert(stored);
  }
  return values;
}

// Nothing for a type that is no floating-point number.
std::vector<float> floats(std::string_view dtype, std::string_view data) {
  if (dtype == "F32") return converted<float>(data, [](float value) { return value; });
  if (dtype == "F64") return converted<double>(data, [](double value) { return static_cast<float>(value); });
  if (dtype == "F16") return converted<uint16_t>(data, half_to_float);
  if (dtype == "BF16")
    return converted<uint16_t>(data, [](uint16_t v) { return std::bit_cast<float>(uint32_t{v} << 16); });
  return {};
}

bool is_float(std::string_view dtype) {
  return dtype == "F32" || dtype == "F64" || dtype == "F16" || dtype == "BF16";
}

struct Entry {
  std::string name, dtype;
  std::vector<int64_t> shape;
  uint64_t begin = 0, end = 0;
};

Result<Entry> parse_entry(const std::string& name, const json& value) {
  const auto refuse = [&](const std::string& why) { return bad_data(fmt::format("tensor '{}': {}", name, why)); };
  if (!value.is_object()) return refuse("expected an object with dtype, shape and data_offsets");
  const auto dtype = value.find("dtype"), shape = value.find("shape"), offsets = value.find("data_offsets");
  if (dtype == value.end() || !dtype->is_string()) return refuse("no dtype");
  if (shape == value.end() || !shape->is_array()) return refuse("no shape");
  if (offsets == value.end() || !offsets->is_array() || offsets->size() != 2 ||
      !std::all_of(offsets->begin(), offsets->end(), [](const json& at) { return at.is_number_unsigned(); }))
    return refuse("no data_offsets [begin, end]");
  Entry entry{name, *dtype, {}, (*offsets)[0], (*offsets)[1]};
  const size_t size = bytes_of(entry.dtype);
  if (size == 0) return refuse("unknown dtype '" + entry.dtype + "'");
  int64_t elements = 1;
  for (const json& side : *shape) {
    if (!side.is_number_unsigned() || side.get<uint64_t>() > static_cast<uint64_t>(kMostElements))
      return refuse("a side of its shape is no size");
    entry.shape.push_back(side.get<int64_t>());
    if (entry.shape.back() != 0 && elements > kMostElements / entry.shape.back())
      return refuse("its shape is too large");
    elements *= entry.shape.back();
  }
  if (entry.end < entry.begin || entry.end - entry.begin != static_cast<uint64_t>(elements) * size)
    return refuse(fmt::format("{} elements of {} take {} bytes, data_offsets say [{}, {})", elements, entry.dtype,
                              static_cast<uint64_t>(elements) * size, entry.begin, entry.end));
  return entry;
}

constexpr std::pair<std::string_view, std::string_view> kKeys[] = {
    {"weight", "weight"}, {"bias", "bias"},         {"scale", "weight"},
    {"shift", "bias"},    {"mean", "running_mean"}, {"variance", "running_var"}};

std::string key_of(const Layer& layer, std::string_view role) {
  const auto* found =
      std::find_if(std::begin(kKeys), std::end(kKeys), [&](const auto& key) { return key.first == role; });
  return layer.name + "." + std::string(found->second);
}

bool may_be_left_over(std::string_view key) {
  return key.ends_with(".num_batches_tracked") || key.starts_with("aux1.") || key.starts_with("aux2.");
}

}  // namespace

Result<Safetensors> read_safetensors(std::string_view bytes) {
  uint64_t length = 0;
  if (bytes.size() < kLengthBytes) return bad_data("no safetensors file: shorter than its 8-byte length");
  std::memcpy(&length, bytes.data(), sizeof length);
  bytes.remove_prefix(kLengthBytes);
  if (length > kMostHeaderBytes || length > bytes.size())
    return bad_data(fmt::format("no safetensors file, or cut short: a header of {} bytes in a file of {}", length,
                                bytes.size() + kLengthBytes));
  const json header = json::parse(bytes.substr(0, length), nullptr, false);
  if (!header.is_object()) return bad_data("its header is no JSON object");
  const std::string_view data = bytes.substr(length);

  Safetensors content;
  std::vector<Entry> entries;
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) return bad_data("__metadata__ is no object");
      for (const auto& [key, text] : value.items())
        if (text.is_string()) content.metadata[key] = text;
      continue;
    }
    STROBE_ASSIGN(Entry entry, parse_entry(name, value));
    entries.push_back(std::move(entry));
  }
  // Tensors without gaps or overlaps, so that a file holds nothing but what it names.
  std::sort(entries.begin(), entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t at = 0;
  for (const Entry& entry : entries) {
    if (entry.begin != at)
      return bad_data(fmt::format("tensor '{}' begins at byte {}, expected {}", entry.name, entry.begin, at));
    at = entry.end;
  }
  if (at != data.size())
    return bad_data(fmt::format("its tensors take {} bytes, the file has {} (cut short?)", at, data.size()));
  for (Entry& entry : entries) {
    if (!is_float(entry.dtype)) continue;
    Tensor tensor{std::move(entry.shape), floats(entry.dtype, data.substr(entry.begin, entry.end - entry.begin))};
    content.tensors.emplace(std::move(entry.name), std::move(tensor));
  }
  return content;
}

std::string write_safetensors(const Safetensors& content) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!content.metadata.empty())
    for (const auto& [key, text] : content.metadata) header["__metadata__"][key] = text;
  uint64_t at = 0;
  for (const auto& [name, tensor] : content.tensors) {
    const uint64_t size = tensor.values.size() * sizeof(float);
    header[name] = {{"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {at, at + size}}};
    at += size;
  }
  std::string text = header.dump(-1, ' ', false, json::error_handler_t::replace);
  text.append((kLengthBytes - text.size() % kLengthBytes) % kLengthBytes, ' ');
  const uint64_t length = text.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  bytes.reserve(bytes.size() + text.size() + at);
  bytes += text;
  for (const auto& [name, tensor] : content.tensors)
    bytes.append(reinterpret_cast<const char*>(tensor.values.data()), tensor.values.size() * sizeof(float));
  return bytes;
}

Result<void> set_weights(Graph& graph, Safetensors content) {
  for (Layer& layer : graph.layers) {
    for (const WeightSlot& slot : weight_slots(layer.operation)) {
      const std::string key = key_of(layer, slot.role);
      const auto found = content.tensors.find(key);
      if (found == content.tensors.end())
        return bad_data(fmt::format("no tensor '{}', which {} needs", key, graph.name));
      const std::vector<int64_t>& wanted = (*slot.tensor)->shape;
      if (found->second.shape != wanted)
        return bad_data(fmt::format("tensor '{}' has shape [{}], {} needs [{}]", key,
                                    fmt::join(found->second.shape, ", "), graph.name, fmt::join(wanted, ", ")));
      *slot.tensor = std::make_shared<const Tensor>(std::move(found->second));
      content.tensors.erase(found);
    }
  }
  for (const auto& [name, tensor] : content.tensors)
    if (!may_be_left_over(name)) return bad_data(fmt::format("tensor '{}' is none of {}'s weights", name, graph.name));
  graph.trained = true;
  return {};
}

Safetensors weights_of(const Graph& graph) {
  Safetensors content;
  for (const Layer& layer : graph.layers) {
    Operation operation = layer.operation;
    for (const WeightSlot& slot : weight_slots(operation))
      content.tensors.emplace(key_of(layer, slot.role), **slot.tensor);
  }
  return content;
}

}  // namespace strobe::models
