#include "models/graph_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/suggest.h"
#include "models/graph_builder.h"
#include "models/safetensors.h"

namespace strobe::models {
namespace {

using nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kFormat = "strobe network";
constexpr size_t kMostNameBytes = 256;

// 0.1F as 0.1, not as the double nearest to it, wherever that reads back as the same float.
double shortest(float value) {
  double number = 0;
  std::array<char, 32> text{};
  const auto [end, error] = std::to_chars(text.data(), text.data() + text.size(), value);
  std::from_chars(text.data(), end, number);
  return static_cast<float>(number) == value ? number : double{value};
}

template <typename Kind>
struct Word {
  std::string_view text;
  Kind kind;
};
constexpr Word<InputRule::Fit> kFits[] = {{"stretch", InputRule::Fit::kStretch},
                                          {"letterbox", InputRule::Fit::kLetterbox}};
constexpr Word<Pool::Kind> kPools[] = {{"max", Pool::Kind::kMax}, {"average", Pool::Kind::kAverage}};
const std::vector<Word<ActivationKind>>& activation_words() {
  static const std::vector<Word<ActivationKind>> words = [] {
    std::vector<Word<ActivationKind>> all;
    for (int kind = 0; kind <= static_cast<int>(ActivationKind::kHardSwish); ++kind)
      all.push_back({to_string(static_cast<ActivationKind>(kind)), static_cast<ActivationKind>(kind)});
    return all;
  }();
  return words;
}

// What an Operation holds is told once (describe(), below) and both written and read by it.
class Writer {
 public:
  explicit Writer(OrderedJson& object) : object_(object) {}

  template <typename... Numbers>
  void integers(const char* key, Numbers&... numbers) {
    if constexpr (sizeof...(numbers) == 1)
      ((object_[key] = numbers), ...);
    else
      object_[key] = {numbers...};
  }
  void number(const char* key, float value, double, double) { object_[key] = shortest(value); }
  void numbers(const char* key, std::vector<float>& values) {
    object_[key] = OrderedJson::array();
    for (const float value : values) object_[key].push_back(shortest(value));
  }
  void flag(const char* key, bool value) { object_[key] = value; }
  template <typename Kind, typename Words>
  void word(const char* key, Kind value, const Words& words) {
    for (const auto& word : words)
      if (word.kind == value) object_[key] = word.text;
  }
  void bias(const char* key, const Weights& tensor, int64_t) { object_[key] = tensor != nullptr; }
  void fixed(const char* key, int64_t value) { object_[key] = value; }

 private:
  OrderedJson& object_;
};

// The members of one JSON object. The first error is kept and later calls do nothing; finish() tells.
class Reader {
 public:
  explicit Reader(const json& object) : object_(object) {
    if (!object.is_object()) fail("expected a JSON object");
  }

  template <typename... Numbers>
  void integers(const char* key, Numbers&... numbers) {
    const json* value = find(key);
    if (value == nullptr) return;
    if constexpr (sizeof...(numbers) == 1) {
      (integer(key, *value, numbers), ...);
    } else {
      if (!value->is_array() || value->size() != sizeof...(numbers))
        return fail(fmt::format("{}: expected a list of {} whole numbers", key, sizeof...(numbers)));
      size_t i = 0;
      (integer(key, (*value)[i++], numbers), ...);
    }
  }
  void number(const char* key, float& number, double low, double high) {
    const json* value = find(key);
    if (value != nullptr) number_within(key, *value, number, low, high);
  }
  void numbers(const char* key, std::vector<float>& numbers) {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_array()) return fail(fmt::format("{}: expected a list of numbers", key));
    numbers.assign(value->size(), 0);
    for (size_t i = 0; i < numbers.size(); ++i) number_within(key, (*value)[i], numbers[i], kLeast, kMost);
  }
  void flag(const char* key, bool& flag) {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_boolean()) return fail(fmt::format("{}: expected true or false", key));
    flag = value->get<bool>();
  }
  void text(const char* key, std::string& text) {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_string() || value->get_ref<const std::string&>().empty() ||
        value->get_ref<const std::string&>().size() > kMostNameBytes)
      return fail(fmt::format("{}: expected a text of 1 to {} bytes", key, kMostNameBytes));
    text = value->get<std::string>();
  }
  void texts(const char* key, std::vector<std::string>& texts) {
    const json* value = find(key);
    if (value == nullptr) return;
    if (!value->is_array() || !std::all_of(value->begin(), value->end(), [](const json& j) { return j.is_string(); }))
      return fail(fmt::format("{}: expected a list of texts", key));
    texts.assign(value->begin(), value->end());
  }
  template <typename Kind, typename Words>
  void word(const char* key, Kind& kind, const Words& words) {
    std::string given;
    text(key, given);
    if (failed()) return;
    std::vector<std::string> known;
    for (const auto& word : words) {
      if (word.text == given) {
        kind = word.kind;
        return;
      }
      known.emplace_back(word.text);
    }
    fail(fmt::format("{} '{}' is not known; {}", key, given, suggest(given, known)));
  }
  void bias(const char* key, Weights& tensor, int64_t length) {
    bool there = false;
    flag(key, there);
    if (there) tensor = declared_tensor({length});
  }
  void fixed(const char* key, int64_t expected) {
    int64_t found = expected;
    integers(key, found);
    if (found != expected) fail(fmt::format("{} is {}, its input has {}", key, found, expected));
  }

  const json* find(const char* key) {
    if (failed()) return nullptr;
    const auto found = object_.find(key);
    if (found == object_.end()) {
      fail(fmt::format("no \"{}\"", key));
      return nullptr;
    }
    known_.insert(key);
    return &*found;
  }
  bool failed() const { return error_.has_value(); }
  void fail(std::string why) {
    if (!error_) error_ = bad_data(std::move(why));
  }
  // The first error, or that of a key that nobody asked for.
  Result<void> finish() {
    if (!failed() && known_.size() != object_.size()) {
      for (const auto& [key, value] : object_.items())
        if (!known_.contains(key))
          fail(fmt::format("\"{}\" is not known; {}", key, suggest(key, {known_.begin(), known_.end()})));
    }
    if (error_) return *error_;
    return {};
  }

 private:
  static constexpr double kMost = std::numeric_limits<float>::max(), kLeast = -kMost;

  void integer(const char* key, const json& value, int64_t& number) {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{std::numeric_limits<int64_t>::max()}))
      return fail(fmt::format("{}: expected whole numbers", key));
    number = value.get<int64_t>();
  }
  void number_within(const char* key, const json& value, float& number, double low, double high) {
    const double found = value.is_number() ? value.get<double>() : std::numeric_limits<double>::quiet_NaN();
    if (!(found >= low && found <= high)) {
      if (low == kLeast) return fail(fmt::format("{}: expected a number", key));
      return fail(fmt::format("{}: expected a number of {} to {}", key, low, high));
    }
    number = static_cast<float>(found);
  }

  const json& object_;
  std::set<std::string> known_;
  std::optional<Error> error_;
};

constexpr double kLargeNumber = 1e30;  // well inside of float

struct OperationWords {
  template <typename Archive>
  static void describe(Archive& a, Convolution& op, const Shape&) {
    a.integers("out_channels", op.out_channels);
    a.integers("kernel", op.kernel_h, op.kernel_w);
    a.integers("stride", op.stride_h, op.stride_w);
    a.integers("pad", op.pad_h, op.pad_w);
    a.integers("dilation", op.dilation);
    a.integers("groups", op.groups);
    a.bias("bias", op.bias, op.out_channels);
  }
  template <typename Archive>
  static void describe(Archive& a, TransposedConvolution& op, const Shape&) {
    a.integers("out_channels", op.out_channels);
    a.integers("kernel", op.kernel_h, op.kernel_w);
    a.integers("stride", op.stride_h, op.stride_w);
    a.integers("pad", op.pad_h, op.pad_w);
    a.bias("bias", op.bias, op.out_channels);
  }
  template <typename Archive>
  static void describe(Archive& a, BatchNorm& op, const Shape&) {
    a.number("epsilon", op.epsilon, 0, 1);
  }
  template <typename Archive>
  static void describe(Archive& a, Activation& op, const Shape&) {
    a.word("kind", op.kind, activation_words());
    a.number("slope", op.slope, -kLargeNumber, kLargeNumber);
  }
  template <typename Archive>
  static void describe(Archive& a, Pool& op, const Shape&) {
    a.word("kind", op.kind, kPools);
    a.integers("kernel", op.kernel_h, op.kernel_w);
    a.integers("stride", op.stride_h, op.stride_w);
    a.integers("pad", op.pad_top, op.pad_left, op.pad_bottom, op.pad_right);
    a.flag("count_padding", op.count_padding);
  }
  template <typename Archive>
  static void describe(Archive& a, Slice& op, const Shape&) {
    a.integers("channels", op.begin, op.end);
  }
  template <typename Archive>
  static void describe(Archive& a, Upsample& op, const Shape&) {
    a.integers("scale", op.scale);
  }
  template <typename Archive>
  static void describe(Archive& a, Linear& op, const Shape& in) {
    a.integers("out_features", op.out_features);
    a.fixed("in_features", in.channels);  // a network opened at another size must not become another one
    a.bias("bias", op.bias, op.out_features);
  }
  template <typename Archive>
  static void describe(Archive& a, Dropout& op, const Shape&) {
    a.number("probability", op.probability, 0, 1);
  }
  template <typename Archive>
  static void describe(Archive& a, YoloHead& op, const Shape&) {
    a.numbers("anchors", op.anchors);
    a.integers("classes", op.classes);
    a.number("scale_x_y", op.scale_x_y, 0, kLargeNumber);
    a.flag("new_coords", op.new_coords);
  }
  // The others have nothing to tell.
  template <typename Archive, typename Plain>
  static void describe(Archive&, Plain&, const Shape&) {}
};

template <typename Archive>
void describe_operation(Archive& a, Operation& operation, const Shape& in) {
  std::visit([&](auto& op) { OperationWords::describe(a, op, in); }, operation);
}

template <size_t... Index>
std::vector<Operation> one_of_each(std::index_sequence<Index...>) {
  return {Operation(std::in_place_index<Index>)...};
}

// "Convolution" -> a Convolution with its defaults.
Result<Operation> operation_named(const std::string& type) {
  static const auto all = one_of_each(std::make_index_sequence<std::variant_size_v<Operation>>());
  std::vector<std::string> names;
  for (const Operation& operation : all) {
    if (type_name(operation) == type) return operation;
    names.emplace_back(type_name(operation));
  }
  return bad_data(fmt::format("type '{}' is not known; {}", type, suggest(type, names)));
}

std::string text_of(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string rule_text(const InputRule& rule) {
  OrderedJson object;
  Writer(object).word("fit", rule.fit, kFits);
  object["scale"] = shortest(rule.scale);
  object["mean"] = {shortest(rule.mean[0]), shortest(rule.mean[1]), shortest(rule.mean[2])};
  object["deviation"] = {shortest(rule.deviation[0]), shortest(rule.deviation[1]), shortest(rule.deviation[2])};
  object["bgr"] = rule.bgr;
  return text_of(object);
}

Result<InputRule> parse_rule(const json& object) {
  InputRule rule;
  Reader reader(object);
  reader.word("fit", rule.fit, kFits);
  reader.number("scale", rule.scale, -kLargeNumber, kLargeNumber);
  for (auto [key, target] : {std::pair("mean", rule.mean), std::pair("deviation", rule.deviation)}) {
    std::vector<float> three;
    reader.numbers(key, three);
    if (!reader.failed() && three.size() != 3) reader.fail(fmt::format("{}: expected 3 numbers", key));
    if (!reader.failed()) std::copy(three.begin(), three.end(), target);
  }
  if (std::find(rule.deviation, rule.deviation + 3, 0.0F) != rule.deviation + 3)
    reader.fail("deviation: expected numbers other than 0");
  reader.flag("bgr", rule.bgr);
  STROBE_TRY(reader.finish());
  return rule;
}

std::string layer_text(const Graph& graph, const Layer& layer) {
  OrderedJson object;
  object["name"] = layer.name;
  object["type"] = type_name(layer.operation);
  object["inputs"] = OrderedJson::array();
  for (const LayerId input : layer.inputs) object["inputs"].push_back(graph.layer(input).name);
  object["output"] = {layer.output.channels, layer.output.height, layer.output.width};
  Operation operation = layer.operation;
  Writer writer(object);
  describe_operation(writer, operation, layer.inputs.empty() ? layer.output : graph.layer(layer.inputs.front()).output);
  return text_of(object);
}

using NamedLayers = std::unordered_map<std::string, LayerId>;

Result<std::vector<LayerId>> layers_named(const std::vector<std::string>& names, const NamedLayers& known) {
  std::vector<LayerId> ids;
  for (const std::string& name : names) {
    const auto found = known.find(name);
    if (found == known.end()) return bad_data(fmt::format("no layer '{}' stands before it", name));
    ids.push_back(found->second);
  }
  return ids;
}

class GraphReader {
 public:
  GraphReader(const json& root, const GraphJsonSize& size) : root_(root), size_(size) {}

  Result<Graph> read() {
    std::string format, name;
    int64_t version = 0;
    root_.text("format", format);
    if (root_.failed() || format != kFormat) return bad_data(fmt::format("expected \"format\": \"{}\"", kFormat));
    root_.integers("version", version);
    if (!root_.failed() && version != kGraphJsonVersion)
      return bad_data(fmt::format("version {} of the form, this build reads version {}", version, kGraphJsonVersion));
    root_.text("name", name);
    bool trained = false;
    root_.flag("trained", trained);
    InputRule rule;
    if (const json* value = root_.find("input_rule")) {
      auto parsed = parse_rule(*value);
      if (!parsed) return std::move(parsed).error().at("input_rule");
      rule = *parsed;
    }
    std::vector<std::string> labels;
    root_.texts("labels", labels);
    GraphBuilder builder(name);
    if (const json* layers = root_.find("layers")) STROBE_TRY(read_layers(builder, *layers, rule));
    std::vector<std::string> outputs;
    root_.texts("outputs", outputs);
    STROBE_TRY(root_.finish());
    if (outputs.empty()) return bad_data("outputs: expected the name of at least one layer");
    for (const std::string& output : outputs) {
      const auto found = known_.find(output);
      if (found == known_.end()) return bad_data(fmt::format("outputs: no layer '{}'", output));
      builder.add_output(found->second);
    }
    STROBE_ASSIGN(Graph graph, std::move(builder).finish());
    graph.labels = std::move(labels);
    graph.trained = trained;
    return graph;
  }

 private:
  Result<void> read_layers(GraphBuilder& builder, const json& layers, const InputRule& rule) {
    if (!layers.is_array() || layers.empty()) return bad_data("layers: expected a list of layers");
    for (size_t i = 0; i < layers.size(); ++i) {
      const json& value = layers[i];
      std::string place = fmt::format("layers[{}]", i);
      if (value.is_object() && value.contains("name") && value["name"].is_string())
        place += " " + value["name"].get<std::string>();
      auto done = read_layer(builder, value, i == 0, rule);
      if (!done) return std::move(done).error().at(std::move(place));
    }
    return {};
  }

  Result<void> read_layer(GraphBuilder& builder, const json& value, bool first, const InputRule& rule) {
    Reader reader(value);
    std::string name, type;
    std::vector<std::string> inputs;
    Shape output;
    reader.text("name", name);
    reader.text("type", type);
    reader.texts("inputs", inputs);
    reader.integers("output", output.channels, output.height, output.width);
    if (reader.failed()) return reader.finish();
    if (known_.contains(name)) return bad_data("its name is taken");
    if (first != (type == type_name(Operation(Input{}))))
      return bad_data(first ? "the first layer is the network's Input" : "only the first layer can be an Input");
    STROBE_ASSIGN(Operation operation, operation_named(type));
    STROBE_ASSIGN(std::vector<LayerId> ids, layers_named(inputs, known_));
    if (first != ids.empty())
      return bad_data(first ? "inputs: an Input has none" : "inputs: expected the name of at least one layer");
    describe_operation(reader, operation, first ? output : builder.shape(ids.front()));
    STROBE_TRY(reader.finish());
    LayerId id = 0;
    if (first) {
      if (size_.width != 0) output.width = size_.width;
      if (size_.height != 0) output.height = size_.height;
      STROBE_ASSIGN(id, builder.input(output, rule, name));
    } else {
      // The caller knows the layer's name already.
      auto added = builder.append(name, std::move(operation), std::move(ids));
      if (!added) return bad_data(added.error().message());
      id = *added;
      if (size_.width == 0 && size_.height == 0 && builder.shape(id) != output)
        return bad_data(
            fmt::format("says its output is {}, it is {}", output.to_string(), builder.shape(id).to_string()));
    }
    known_.emplace(std::move(name), id);
    return {};
  }

  Reader root_;
  GraphJsonSize size_;
  NamedLayers known_;
};

}  // namespace

std::string write_graph_json(const Graph& graph) {
  std::string text = fmt::format("{{\n\"format\": \"{}\",\n\"version\": {},\n\"name\": {},\n\"trained\": {},\n",
                                 kFormat, kGraphJsonVersion, text_of(graph.name), graph.trained);
  text += fmt::format("\"input_rule\": {},\n\"labels\": {},\n\"layers\": [", rule_text(graph.input_rule),
                      text_of(graph.labels));
  for (size_t i = 0; i < graph.layers.size(); ++i) text += (i == 0 ? "\n" : ",\n") + layer_text(graph, graph.layers[i]);
  OrderedJson outputs = OrderedJson::array();
  for (const LayerId output : graph.outputs) outputs.push_back(graph.layer(output).name);
  return text + fmt::format("\n],\n\"outputs\": {}\n}}\n", text_of(outputs));
}

Result<Graph> parse_graph_json(std::string_view text, const GraphJsonSize& size) {
  json root;
  try {
    root = json::parse(text);
  } catch (const json::parse_error& error) {
    const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(error.byte, text.size()));
    return bad_data(fmt::format("line {}: no JSON text", 1 + std::count(text.begin(), end, '\n')));
  } catch (const json::exception&) {  // says not where
    return bad_data("no JSON text: a number is too large");
  }
  return GraphReader(root, size).read();
}

Result<Graph> read_graph_json(const std::filesystem::path& path, const GraphJsonSize& size) {
  STROBE_ASSIGN(const std::string text, read_file(path));
  auto graph = parse_graph_json(text, size);
  if (!graph) return std::move(graph).error().at(path.string());
  return graph;
}

std::filesystem::path weights_beside(const std::filesystem::path& graph_file) {
  return std::filesystem::path(graph_file).replace_extension(".safetensors");
}

Result<void> save_graph(const Graph& graph, const std::filesystem::path& path, WithWeights weights) {
  const std::filesystem::path beside = weights_beside(path);
  std::error_code ignored;
  if (weights == WithWeights::kYes)
    STROBE_TRY(write_file(beside, write_safetensors(weights_of(graph))));
  else if (std::filesystem::exists(beside, ignored))
    return usage_error(fmt::format("{} would be taken for the weights of {}: remove it or choose another folder",
                                   beside.string(), path.filename().string()));
  return write_file(path, write_graph_json(graph));
}

}  // namespace strobe::models
