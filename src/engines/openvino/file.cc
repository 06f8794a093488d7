#include "file.h"

#include <algorithm>
#include <map>
#include <openvino/core/preprocess/pre_post_process.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/fake_quantize.hpp>

#include "error.h"

namespace strobe::engines::openvino_plugin {
namespace {

// A quantised model has FakeQuantize operations, or weights that are stored as integers of 8 bits or fewer.
bool quantised(const ov::Model& model) {
  const auto operations = model.get_ops();
  return std::any_of(operations.begin(), operations.end(), [](const auto& operation) {
    if (ov::is_type<ov::op::v0::FakeQuantize>(operation)) return true;
    const auto* constant = ov::as_type<ov::op::v0::Constant>(operation.get());
    if (constant == nullptr || ov::shape_size(constant->get_shape()) < 2) return false;
    const auto& type = constant->get_element_type();
    return type == ov::element::i8 || type == ov::element::u8 || type == ov::element::i4 || type == ov::element::u4;
  });
}

// The first extent of every input becomes the batch; the others the asked ones where the file leaves them open.
Result<void> set_shapes(ov::Model& model, const LoadOptions& options, const std::string& file) {
  std::map<size_t, ov::PartialShape> shapes;
  for (size_t i = 0; i < model.inputs().size(); ++i) {
    ov::PartialShape shape = model.input(i).get_partial_shape();
    if (shape.rank().is_dynamic()) {
      if (options.input_shape.empty()) return usage_error(file + ": its input has no shape; give one");
      shape = ov::PartialShape::dynamic(static_cast<int64_t>(options.input_shape.size()) + 1);
    }
    if (shape.size() == 0) continue;
    shape[0] = options.batch;
    if (!options.input_shape.empty() && options.input_shape.size() + 1 != shape.size()) {
      return usage_error(file + ": its input has " + std::to_string(shape.size() - 1) +
                         " extents without the batch, the input shape given has " +
                         std::to_string(options.input_shape.size()));
    }
    for (size_t d = 1; d < shape.size(); ++d) {
      if (!options.input_shape.empty()) {
        shape[d] = options.input_shape[d - 1];
      } else if (shape[d].is_dynamic()) {
        return usage_error(file + ": its input " + shape.to_string() + " leaves extents open; give an input shape");
      }
    }
    shapes[i] = shape;
  }
  model.reshape(shapes);
  return {};
}

}  // namespace

Result<std::shared_ptr<ov::Model>> read_file(ov::Core& core, const std::filesystem::path& path,
                                             const LoadOptions& options) {
  const std::string file = path.string();
  auto read =
      guarded(ErrorKind::kBadData, [&]() -> Result<std::shared_ptr<ov::Model>> { return core.read_model(file); });
  if (!read) return std::move(read).error().at(file);
  auto model = std::move(*read);
  if (options.precision == Precision::kInt8 && !quantised(*model)) {
    return unsupported(file + ": i8 was asked for, but the model holds no quantised layers; quantise it first (NNCF)");
  }
  auto shaped = guarded(ErrorKind::kUnsupported, [&] { return set_shapes(*model, options, file); });
  if (!shaped) return std::move(shaped).error().at("batch " + std::to_string(options.batch)).at(file);
  auto converted = guarded(ErrorKind::kUnsupported, [&]() -> Result<std::shared_ptr<ov::Model>> {
    ov::preprocess::PrePostProcessor ends(model);
    for (size_t i = 0; i < model->inputs().size(); ++i) ends.input(i).tensor().set_element_type(ov::element::f32);
    for (size_t i = 0; i < model->outputs().size(); ++i) ends.output(i).tensor().set_element_type(ov::element::f32);
    return ends.build();
  });
  if (!converted) return std::move(converted).error().at(file);
  return converted;
}

}  // namespace strobe::engines::openvino_plugin
