#include "models/darknet.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/file.h"
#include "models/darknet_cfg.h"
#include "models/graph_builder.h"

namespace strobe::models {
namespace {

// OpenCV's value, with which the reference boxes were made; Darknet itself adds 1e-6 to the root (its forks: 1e-5 to
// the variance). The difference is far below what a box shows.
constexpr float kDarknetEpsilon = 1e-6F;

struct NamedActivation {
  std::string_view name;
  Activation activation;
};
constexpr std::array kActivations = {
    NamedActivation{"linear", {ActivationKind::kLinear, 0}},
    NamedActivation{"relu", {ActivationKind::kRelu, 0}},
    NamedActivation{"relu6", {ActivationKind::kRelu6, 0}},
    NamedActivation{"leaky", {ActivationKind::kLeaky, 0.1F}},
    NamedActivation{"logistic", {ActivationKind::kLogistic, 0}},
    NamedActivation{"mish", {ActivationKind::kMish, 0}},
    NamedActivation{"swish", {ActivationKind::kSwish, 0}},
    NamedActivation{"tanh", {ActivationKind::kTanh, 0}},
    NamedActivation{"elu", {ActivationKind::kElu, 1}},
    NamedActivation{"hard_swish", {ActivationKind::kHardSwish, 0}},
};

Result<Activation> read_activation(const DarknetSection& section, std::string_view fallback) {
  const std::string name = section.text("activation", fallback);
  std::string known;
  for (const NamedActivation& entry : kActivations) {
    if (entry.name == name) return entry.activation;
    known += known.empty() ? "" : ", ";
    known += entry.name;
  }
  return section.unsupported_error(
      "activation", fmt::format("activation '{}' is not known, expected one of {}", clipped(name), known));
}

// A key that changes what a layer computes and that is not supported unless it has its usual value.
Result<void> expect_usual(const DarknetSection& section, std::string_view key, int64_t usual) {
  STROBE_ASSIGN(const int64_t value, section.integer(key, usual));
  if (value == usual) return {};
  return section.unsupported_error(key, fmt::format("{}={} is not supported, only {}", key, value, usual));
}

class Importer {
 public:
  Importer(std::string name, const DarknetOptions& options) : builder_(std::move(name)), options_(options) {}

  Result<Graph> run(const std::vector<DarknetSection>& sections) {
    STROBE_TRY(net(sections.front()));
    for (size_t i = 1; i < sections.size(); ++i) STROBE_TRY(layer(sections[i]));
    return std::move(builder_).finish();
  }

 private:
  using Reader = Result<LayerId> (Importer::*)(const DarknetSection&);
  struct NamedReader {
    std::string_view type;
    Reader reader;
  };

  // Sizes come from the file; every one of them can be wrong.
  struct Window {
    int64_t size = 1, stride_h = 1, stride_w = 1;
  };

  Result<void> net(const DarknetSection& section);
  Result<void> layer(const DarknetSection& section);

  Result<LayerId> convolutional(const DarknetSection& section);
  Result<LayerId> connected(const DarknetSection& section);
  Result<LayerId> max_pool(const DarknetSection& section) { return pool(section, Pool::Kind::kMax); }
  Result<LayerId> local_average_pool(const DarknetSection& section) { return pool(section, Pool::Kind::kAverage); }
  Result<LayerId> average_pool(const DarknetSection& section);
  Result<LayerId> route(const DarknetSection& section);
  Result<LayerId> shortcut(const DarknetSection& section);
  Result<LayerId> upsample(const DarknetSection& section);
  Result<LayerId> dropout(const DarknetSection& section);
  Result<LayerId> softmax(const DarknetSection& section);
  Result<LayerId> cost(const DarknetSection&) { return previous(); }
  Result<LayerId> yolo(const DarknetSection& section);

  Result<LayerId> pool(const DarknetSection& section, Pool::Kind kind);
  Result<Window> window(const DarknetSection& section, int64_t size, int64_t stride);
  Result<LayerId> referred(const DarknetSection& section, std::string_view key, int64_t number);
  // Batch norm and activation behind a convolution, connected layer or shortcut.
  Result<LayerId> finish_layer(const DarknetSection& section, LayerId id, bool normalize, const Activation& activation);
  // A suffix for the operations beside the main one: "012_route.slice0".
  Result<LayerId> append(const DarknetSection& section, std::string_view suffix, Operation operation,
                         std::vector<LayerId> inputs);

  LayerId previous() const { return layers_.empty() ? 0 : layers_.back(); }
  const Shape& shape(LayerId id) const { return builder_.shape(id); }

  static const std::array<NamedReader, 12> kReaders;

  GraphBuilder builder_;
  DarknetOptions options_;
  std::vector<LayerId> layers_;  // of each Darknet layer so far: the layer of the graph that holds its result
};

const std::array<Importer::NamedReader, 12> Importer::kReaders = {{
    {"convolutional", &Importer::convolutional},
    {"maxpool", &Importer::max_pool},
    {"avgpool", &Importer::average_pool},
    {"local_avgpool", &Importer::local_average_pool},
    {"route", &Importer::route},
    {"shortcut", &Importer::shortcut},
    {"upsample", &Importer::upsample},
    {"connected", &Importer::connected},
    {"dropout", &Importer::dropout},
    {"softmax", &Importer::softmax},
    {"cost", &Importer::cost},
    {"yolo", &Importer::yolo},
}};

Result<void> Importer::net(const DarknetSection& section) {
  if (section.type() != "net" && section.type() != "network") {
    return bad_data(fmt::format("expected [net] first, found [{}]", clipped(section.type())))
        .at(fmt::format("line {}", section.line()));
  }
  STROBE_ASSIGN(int64_t width, section.integer("width"));
  STROBE_ASSIGN(int64_t height, section.integer("height"));
  STROBE_ASSIGN(const int64_t channels, section.integer("channels", 3));
  STROBE_ASSIGN(const int64_t letter_box, section.integer("letter_box", 0));
  if (options_.width != 0) width = options_.width;
  if (options_.height != 0) height = options_.height;
  InputRule rule;
  rule.fit = letter_box != 0 ? InputRule::Fit::kLetterbox : InputRule::Fit::kStretch;
  auto input = builder_.input({channels, height, width}, rule);
  if (!input) return std::move(input).error().at(section.place());
  return {};
}

Result<void> Importer::layer(const DarknetSection& section) {
  for (const NamedReader& entry : kReaders) {
    if (entry.type != section.type()) continue;
    STROBE_ASSIGN(const LayerId id, (this->*entry.reader)(section));
    layers_.push_back(id);
    return {};
  }
  std::string known;
  for (const NamedReader& entry : kReaders) known += fmt::format("{}[{}]", known.empty() ? "" : " ", entry.type);
  return unsupported(
             fmt::format("layer type [{}] is not supported, expected one of {}", clipped(section.type()), known))
      .at(fmt::format("line {}", section.line()));
}

Result<LayerId> Importer::append(const DarknetSection& section, std::string_view suffix, Operation operation,
                                 std::vector<LayerId> inputs) {
  auto id = builder_.append(fmt::format("{:03}_{}{}", layers_.size(), section.type(), suffix), std::move(operation),
                            std::move(inputs));
  if (!id) return std::move(id).error().at(fmt::format("line {}", section.line()));
  return id;
}

Result<LayerId> Importer::finish_layer(const DarknetSection& section, LayerId id, bool normalize,
                                       const Activation& activation) {
  if (normalize) {
    BatchNorm norm;
    norm.epsilon = kDarknetEpsilon;
    STROBE_ASSIGN(id, append(section, ".bn", norm, {id}));
  }
  if (activation.kind == ActivationKind::kLinear) return id;
  return append(section, fmt::format(".{}", to_string(activation.kind)), activation, {id});
}

Result<Importer::Window> Importer::window(const DarknetSection& section, int64_t size, int64_t stride) {
  Window window;
  STROBE_ASSIGN(stride, section.integer("stride", stride));
  STROBE_ASSIGN(window.stride_h, section.integer("stride_y", stride));
  STROBE_ASSIGN(window.stride_w, section.integer("stride_x", stride));
  STROBE_ASSIGN(window.size, section.integer("size", size != 0 ? size : stride));
  for (const auto& [key, value] :
       {std::pair{"stride", std::min(window.stride_h, window.stride_w)}, std::pair{"size", window.size}}) {
    if (value < 1) return section.error(key, fmt::format("{} is {}, expected 1 or more", key, value));
  }
  return window;
}

Result<LayerId> Importer::convolutional(const DarknetSection& section) {
  for (const char* key : {"binary", "xnor", "antialiasing", "flipped"}) STROBE_TRY(expect_usual(section, key, 0));
  Convolution conv;
  STROBE_ASSIGN(conv.out_channels, section.integer("filters"));
  STROBE_ASSIGN(const Window win, window(section, 1, 1));
  STROBE_ASSIGN(const int64_t pad, section.integer("pad", 0));
  STROBE_ASSIGN(int64_t padding, section.integer("padding", 0));
  STROBE_ASSIGN(conv.dilation, section.integer("dilation", 1));
  STROBE_ASSIGN(conv.groups, section.integer("groups", 1));
  STROBE_ASSIGN(const int64_t normalize, section.integer("batch_normalize", 0));
  STROBE_ASSIGN(const Activation activation, read_activation(section, "logistic"));
  conv.kernel_h = conv.kernel_w = win.size;
  conv.stride_h = win.stride_h;
  conv.stride_w = win.stride_w;
  if (pad != 0) padding = win.size / 2;
  constexpr int64_t kBeyondAnyPadding = 1 << 20;  // refused later; keeps the product small
  conv.pad_h = conv.pad_w =
      std::clamp<int64_t>(padding, -1, kBeyondAnyPadding) * std::clamp<int64_t>(conv.dilation, 0, kBeyondAnyPadding);
  if (normalize == 0) conv.bias = declared_tensor({conv.out_channels});
  STROBE_ASSIGN(const LayerId id, append(section, "", conv, {previous()}));
  return finish_layer(section, id, normalize != 0, activation);
}

Result<LayerId> Importer::connected(const DarknetSection& section) {
  Linear linear;
  STROBE_ASSIGN(linear.out_features, section.integer("output"));
  STROBE_ASSIGN(const int64_t normalize, section.integer("batch_normalize", 0));
  STROBE_ASSIGN(const Activation activation, read_activation(section, "logistic"));
  LayerId id = previous();
  if (shape(id).height != 1 || shape(id).width != 1) {
    STROBE_ASSIGN(id, append(section, ".flatten", Flatten{}, {id}));
  }
  if (normalize == 0) linear.bias = declared_tensor({linear.out_features});
  STROBE_ASSIGN(id, append(section, "", linear, {id}));
  return finish_layer(section, id, normalize != 0, activation);
}

// Darknet: out = (in + padding - size) / stride + 1, and the first window starts padding / 2 outside. The right and
// bottom padding is cut to what the windows reach, which leaves none for the usual 2x2 pools of even maps.
Result<LayerId> Importer::pool(const DarknetSection& section, Pool::Kind kind) {
  for (const char* key : {"maxpool_depth", "antialiasing"}) STROBE_TRY(expect_usual(section, key, 0));
  STROBE_ASSIGN(const Window win, window(section, 0, 1));
  STROBE_ASSIGN(const int64_t padding, section.integer("padding", win.size - 1));
  if (padding < 0 || padding >= 2 * win.size) {
    return section.error(
        "padding", fmt::format("padding is {}, expected 0 to {} for size {}", padding, 2 * win.size - 1, win.size));
  }
  Pool op;
  op.kind = kind;
  op.kernel_h = op.kernel_w = win.size;
  op.stride_h = win.stride_h;
  op.stride_w = win.stride_w;
  op.pad_top = op.pad_left = padding / 2;
  const auto reached = [&](int64_t in, int64_t stride) {
    const int64_t room = in + padding - win.size;
    if (room < 0) return padding - padding / 2;  // append() says what is wrong
    return std::max<int64_t>(0, room / stride * stride + win.size - in - padding / 2);
  };
  op.pad_bottom = reached(shape(previous()).height, win.stride_h);
  op.pad_right = reached(shape(previous()).width, win.stride_w);
  return append(section, "", op, {previous()});
}

Result<LayerId> Importer::average_pool(const DarknetSection& section) {
  return append(section, "", GlobalAveragePool{}, {previous()});
}

Result<LayerId> Importer::referred(const DarknetSection& section, std::string_view key, int64_t number) {
  const auto count = static_cast<int64_t>(layers_.size());
  const int64_t index = number < 0 ? count + number : number;
  if (number < -count || index >= count) {
    return section.error(key, fmt::format("{}={} in layer {} does not name an earlier layer", key, number, count));
  }
  return layers_[static_cast<size_t>(index)];
}

Result<LayerId> Importer::route(const DarknetSection& section) {
  STROBE_ASSIGN(const std::vector<int64_t> numbers, section.integers("layers"));
  STROBE_ASSIGN(const int64_t groups, section.integer("groups", 1));
  STROBE_ASSIGN(const int64_t group, section.integer("group_id", 0));
  if (groups < 1) return section.error("groups", fmt::format("groups is {}, expected 1 or more", groups));
  if (group < 0 || group >= groups) {
    return section.error("group_id", fmt::format("group_id is {}, expected 0 to {}", group, groups - 1));
  }
  std::vector<LayerId> parts;
  for (const int64_t number : numbers) {
    STROBE_ASSIGN(LayerId id, referred(section, "layers", number));
    if (groups > 1) {
      const int64_t channels = shape(id).channels;
      if (channels % groups != 0) {
        return section.error("groups", fmt::format("groups={} does not divide the {} channels of {}", groups, channels,
                                                   builder_.name(id)));
      }
      const Slice slice{channels / groups * group, channels / groups * (group + 1)};
      STROBE_ASSIGN(id, append(section, numbers.size() == 1 ? "" : fmt::format(".slice{}", parts.size()), slice, {id}));
    }
    parts.push_back(id);
  }
  if (parts.size() == 1) return parts.front();
  return append(section, "", Concat{}, std::move(parts));
}

Result<LayerId> Importer::shortcut(const DarknetSection& section) {
  const std::string weights = section.text("weights_type", "none");
  if (weights != "none") {
    return section.unsupported_error("weights_type", "weighted shortcuts are not supported, expected none");
  }
  STROBE_ASSIGN(const std::vector<int64_t> from, section.integers("from"));
  STROBE_ASSIGN(const Activation activation, read_activation(section, "linear"));
  LayerId sum = previous();
  for (size_t i = 0; i < from.size(); ++i) {
    STROBE_ASSIGN(LayerId other, referred(section, "from", from[i]));
    const std::string index = i == 0 ? "" : std::to_string(i);
    // Darknet adds the channels that both have.
    if (shape(other).channels > shape(sum).channels) {
      STROBE_ASSIGN(other, append(section, ".slice" + index, Slice{0, shape(sum).channels}, {other}));
    }
    STROBE_ASSIGN(sum, append(section, i == 0 ? "" : ".add" + index, Add{}, {sum, other}));
  }
  return finish_layer(section, sum, false, activation);
}

Result<LayerId> Importer::upsample(const DarknetSection& section) {
  STROBE_ASSIGN(const float scale, section.number("scale", 1));
  if (scale != 1) return section.unsupported_error("scale", "a scale of values is not supported, only 1");
  STROBE_ASSIGN(const int64_t stride, section.integer("stride", 2));
  return append(section, "", Upsample{stride}, {previous()});
}

Result<LayerId> Importer::dropout(const DarknetSection& section) {
  STROBE_ASSIGN(const float probability, section.number("probability", 0.5F));
  if (probability < 0 || probability >= 1) {
    return section.error("probability", fmt::format("probability is {}, expected 0 up to 1", probability));
  }
  return append(section, "", Dropout{probability}, {previous()});
}

Result<LayerId> Importer::softmax(const DarknetSection& section) {
  STROBE_TRY(expect_usual(section, "groups", 1));
  STROBE_ASSIGN(const float temperature, section.number("temperature", 1));
  if (temperature != 1) return section.unsupported_error("temperature", "a temperature is not supported, only 1");
  if (section.has("tree")) return section.unsupported_error("tree", "class trees are not supported");
  LayerId id = previous();
  if (shape(id).height != 1 || shape(id).width != 1) {
    STROBE_ASSIGN(id, append(section, ".flatten", Flatten{}, {id}));
  }
  return append(section, "", Softmax{}, {id});
}

Result<LayerId> Importer::yolo(const DarknetSection& section) {
  YoloHead head;
  STROBE_ASSIGN(const std::vector<float> anchors, section.numbers("anchors"));
  STROBE_ASSIGN(const int64_t number, section.integer("num", static_cast<int64_t>(anchors.size() / 2)));
  STROBE_ASSIGN(head.classes, section.integer("classes", 20));
  STROBE_ASSIGN(head.scale_x_y, section.number("scale_x_y", 1));
  STROBE_ASSIGN(const int64_t new_coords, section.integer("new_coords", 0));
  head.new_coords = new_coords != 0;
  if (number < 1 || static_cast<int64_t>(anchors.size()) != 2 * std::min<int64_t>(number, 1 << 20)) {
    return section.error(
        "anchors", fmt::format("anchors= has {} numbers, expected {} pairs as num= says", anchors.size(), number));
  }
  std::vector<int64_t> mask;
  if (section.has("mask")) {
    STROBE_ASSIGN(mask, section.integers("mask"));
  } else {
    for (int64_t i = 0; i < number; ++i) mask.push_back(i);
  }
  for (const int64_t index : mask) {
    if (index < 0 || index >= number) {
      return section.error("mask", fmt::format("mask= names anchor {}, expected 0 to {}", index, number - 1));
    }
    const auto first = static_cast<size_t>(2 * index);
    if (anchors[first] <= 0 || anchors[first + 1] <= 0) {
      return section.error("anchors", fmt::format("anchor {} is {} x {}, expected sizes above 0", index, anchors[first],
                                                  anchors[first + 1]));
    }
    head.anchors.insert(head.anchors.end(), {anchors[first], anchors[first + 1]});
  }
  STROBE_ASSIGN(const LayerId id, append(section, "", head, {previous()}));
  builder_.add_output(id);
  return id;
}

}  // namespace

Result<Graph> parse_darknet(std::string_view cfg, std::string name, const DarknetOptions& options) {
  STROBE_ASSIGN(const std::vector<DarknetSection> sections, parse_darknet_text(cfg));
  return Importer(std::move(name), options).run(sections);
}

Result<Graph> read_darknet(const std::filesystem::path& cfg, const DarknetOptions& options) {
  constexpr uintmax_t kLargestText = 16 << 20;
  std::error_code ignored;
  const uintmax_t size = std::filesystem::file_size(cfg, ignored);
  if (!ignored && size > kLargestText) {
    return bad_data(fmt::format("{} bytes, expected the text of a Darknet configuration", size)).at(cfg.string());
  }
  STROBE_ASSIGN(const std::string text, read_file(cfg));
  auto graph = parse_darknet(text, cfg.stem().string(), options);
  if (!graph) return std::move(graph).error().at(cfg.string());
  return graph;
}

}  // namespace strobe::models
