#include "prep_onnx.h"

#include <fmt/format.h>

#include <bit>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "base/proto.h"
#include "engines/smoothing.h"

namespace strobe::engines::tensorrt_plugin {
namespace {

constexpr uint64_t kFloat = 1, kByte = 2, kInt64 = 7;
using Integers = std::vector<int64_t>;
using Reals = std::vector<float>;

class Writer {
 public:
  Writer(const PictureSampling& of, double sigma) : of_(of), sigma_(sigma) {}

  std::string run() {
    graph_.text(2, "preprocessing");
    for (size_t p = 0; p < of_.planes.size(); ++p) {
      const std::string name = kPrepPlane + std::to_string(p);
      end(11, name, kByte, {of_.planes[p].rows, of_.planes[p].bytes});
      planes_.push_back(node("Cast", name + "#float", {name}, {{"to", {kFloat}}}));
    }
    std::vector<std::string> components;
    for (size_t c = 0; c < PictureSampling::kChannels; ++c) components.push_back(component(c));
    std::string value = node("Concat", "components", components, {{"axis", {1}}});
    Reals mix;
    for (const auto& row : of_.mix) mix.insert(mix.end(), row.begin(), row.end());
    value =
        node("Conv", "colours",
             {value, reals("mix", mix, {3, 3, 1, 1}), reals("offset", {of_.offset.begin(), of_.offset.end()}, {3})});
    value = clipped("colours", value);
    const int64_t below = of_.height - of_.top - of_.placed_height, right = of_.width - of_.left - of_.placed_width;
    if (of_.top > 0 || of_.left > 0 || below > 0 || right > 0)
      value = node("Pad", "border",
                   {value, integers("border#pads", {0, 0, of_.top, of_.left, 0, 0, below, right}),
                    reals("border#value", {127.5F}, {})});
    value = node("Mul", "gain", {value, reals("gain#of", {of_.gain.begin(), of_.gain.end()}, {1, 3, 1, 1})});
    node("Add", kPrepOutput, {value, reals("bias", {of_.bias.begin(), of_.bias.end()}, {1, 3, 1, 1})});
    end(12, kPrepOutput, kFloat, {1, 3, of_.height, of_.width});

    ProtoMessage file, opset;
    file.integer(1, 8);  // IR version, of ONNX 1.12
    file.text(2, "strobe");
    file.message(7, graph_);
    opset.integer(2, 17);
    file.message(8, opset);
    return std::move(file).take();
  }

 private:
  struct Attribute {
    const char* name;
    Integers integers;  // one: an integer, which all attributes here are, or lists of more
    std::string_view text = {};
  };

  // Its value has its name.
  std::string node(const char* type, const std::string& name, const std::vector<std::string>& inputs,
                   const std::vector<Attribute>& attributes = {}) {
    ProtoMessage message;
    for (const std::string& input : inputs) message.text(1, input);
    message.text(2, name);
    message.text(3, name);
    message.text(4, type);
    for (const Attribute& one : attributes) {
      constexpr uint64_t kInteger = 2, kText = 3;
      ProtoMessage attribute;
      attribute.text(1, one.name);
      if (one.text.empty()) {
        attribute.integer_signed(3, one.integers[0]);
      } else {
        attribute.text(4, one.text);
      }
      attribute.integer(20, one.text.empty() ? kInteger : kText);
      message.message(5, attribute);
    }
    graph_.message(1, message);
    return name;
  }

  template <typename Number>
  std::string constant(const std::string& name, uint64_t type, std::span<const Number> values, const Integers& shape) {
    static_assert(std::endian::native == std::endian::little, "a tensor's bytes are little-endian");
    ProtoMessage tensor;
    for (const int64_t extent : shape) tensor.integer_signed(1, extent);
    tensor.integer(2, type);
    tensor.text(8, name);
    tensor.text(9, {reinterpret_cast<const char*>(values.data()), values.size_bytes()});
    graph_.message(5, tensor);
    return name;
  }
  std::string reals(const std::string& name, const Reals& values, const Integers& shape) {
    return constant<float>(name, kFloat, values, shape);
  }
  std::string integers(const std::string& name, const Integers& values) {
    return constant<int64_t>(name, kInt64, values, {static_cast<int64_t>(values.size())});
  }

  void end(uint32_t field, const std::string& name, uint64_t type, const Integers& shape) {
    ProtoMessage dims, tensor, of, value;
    for (const int64_t extent : shape) {
      ProtoMessage dim;
      dim.integer_signed(1, extent);
      dims.message(1, dim);
    }
    tensor.integer(1, type);
    tensor.message(2, dims);
    of.message(1, tensor);
    value.text(1, name);
    value.message(2, of);
    graph_.message(field, value);
  }

  std::string clipped(const std::string& name, const std::string& value) {
    return node("Clip", name + "#clip", {value, reals(name + "#least", {0}, {}), reals(name + "#most", {255}, {})});
  }

  std::string between(const std::string& name, const std::string& value, int64_t axis, const SampleTaps& taps,
                      int64_t offset, int64_t step) {
    const auto gather = [&](const char* which, const Integers& at) {
      Integers places = at;
      for (int64_t& place : places) place = offset + step * place;
      const std::string here = name + which;
      return node("Gather", here, {value, integers(here + "#at", places)}, {{"axis", {axis}}});
    };
    const std::string first = gather("#first", taps.first), second = gather("#second", taps.second);
    const auto count = static_cast<int64_t>(taps.weight.size());
    const Integers shape = axis == 0 ? Integers{count, 1} : Integers{1, count};
    const std::string apart = node("Sub", name + "#apart", {second, first});
    const std::string part = node("Mul", name + "#part", {apart, reals(name + "#weight", taps.weight, shape)});
    return node("Add", name, {first, part});
  }

  std::string component(size_t c) {
    const PictureSampling::Component& from = of_.components[c];
    const std::string name = fmt::format("component{}", c);
    std::string value = planes_[static_cast<size_t>(from.plane)];
    int64_t offset = from.offset, step = from.step;
    if (sigma_ > 0) {
      value = smoothed(name, value, from);
      offset = 0, step = 1;
    }
    value = between(name + ".rows", value, 0, from.rows, 0, 1);
    value = between(name + ".columns", value, 1, from.columns, offset, step);
    return node("Reshape", name, {value, integers(name + "#shape", {1, 1, of_.placed_height, of_.placed_width})});
  }

  // {height, width} of the component's samples, whole values.
  std::string smoothed(const std::string& name, const std::string& plane, const PictureSampling::Component& from) {
    const Smoothing smoothing(sigma_);
    const int64_t last = from.offset + (from.width - 1) * from.step + 1;
    std::string value =
        node("Slice", name + ".samples",
             {plane, integers(name + "#begin", {0, from.offset}), integers(name + "#end", {from.height, last}),
              integers(name + "#axes", {0, 1}), integers(name + "#steps", {1, from.step})});
    value = node("Reshape", name + ".samples#4d", {value, integers(name + "#4d", {1, 1, from.height, from.width})});
    const int64_t reach = smoothing.reach;
    const auto pass = [&](const char* which, const Reals& weights, const Integers& pads, bool across) {
      const std::string here = name + which;
      value = node("Pad", here + "#edge", {value, integers(here + "#pads", pads)}, {{"mode", {}, "edge"}});
      value = node("Conv", here,
                   {value, reals(here + "#weights", weights,
                                 across ? Integers{1, 1, 1, reach + 1} : Integers{1, 1, reach + 1, 1})});
    };
    pass(".right", smoothing.forth, {0, 0, 0, reach, 0, 0, 0, 0}, true);
    pass(".left", smoothing.back(), {0, 0, 0, 0, 0, 0, 0, reach}, true);
    pass(".down", smoothing.forth, {0, 0, reach, 0, 0, 0, 0, 0}, false);
    pass(".up", smoothing.back(), {0, 0, 0, 0, 0, 0, reach, 0}, false);
    value = node("Mul", name + ".scaled", {value, reals(name + "#scale", {static_cast<float>(smoothing.scale)}, {})});
    value = clipped(name + ".whole", node("Round", name + ".whole", {value}));
    return node("Reshape", name + ".smooth", {value, integers(name + "#2d", {from.height, from.width})});
  }

  const PictureSampling& of_;
  const double sigma_;
  std::vector<std::string> planes_;
  ProtoMessage graph_;
};

}  // namespace

std::string write_prep_onnx(const PictureSampling& sampling, double sigma) {
  return Writer(sampling, sigma).run();
}

}  // namespace strobe::engines::tensorrt_plugin
