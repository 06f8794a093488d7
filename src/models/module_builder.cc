#include "models/module_builder.h"

#include <algorithm>

namespace strobe::models {
namespace {

// Zeros after the far edge that make every window of ceil mode whole. A window that would begin behind the picture and
// its near padding does not count (PyTorch, pooling_output_shape).
int64_t far_pad(int64_t size, int64_t kernel, int64_t stride, int64_t pad, bool ceil_mode) {
  if (!ceil_mode) return pad;
  int64_t windows = (size + 2 * pad - kernel + stride - 1) / stride + 1;
  if ((windows - 1) * stride >= size + pad) --windows;
  return std::max<int64_t>(0, (windows - 1) * stride + kernel - size - pad);
}

}  // namespace

LayerId ModuleBuilder::picture(const ZooOptions& options, int64_t own_width, int64_t own_height) {
  InputRule rule;
  const float mean[] = {0.485F, 0.456F, 0.406F};
  const float deviation[] = {0.229F, 0.224F, 0.225F};
  std::copy(std::begin(mean), std::end(mean), rule.mean);
  std::copy(std::begin(deviation), std::end(deviation), rule.deviation);
  auto id = builder_.input({3, options.height ? options.height : own_height, options.width ? options.width : own_width},
                           rule);
  if (id) return *id;
  fail(std::move(id).error());
  return 0;
}

LayerId ModuleBuilder::input(const Shape& shape) {
  auto id = builder_.input(shape);
  if (id) return *id;
  fail(std::move(id).error());
  return 0;
}

LayerId ModuleBuilder::convolution(const std::string& name, LayerId x, const ConvolutionOf& of) {
  Convolution conv;
  conv.out_channels = of.channels;
  conv.kernel_h = conv.kernel_w = of.kernel;
  conv.stride_h = conv.stride_w = of.stride;
  conv.pad_h = conv.pad_w = of.pad;
  conv.groups = of.groups;
  if (of.bias) conv.bias = declared_tensor({of.channels});
  return append(name, std::move(conv), {x});
}

LayerId ModuleBuilder::batch_norm(const std::string& name, LayerId x, float epsilon) {
  BatchNorm norm;
  norm.epsilon = epsilon;
  return append(name, std::move(norm), {x});
}

LayerId ModuleBuilder::max_pool(const std::string& name, LayerId x, int64_t kernel, int64_t stride, int64_t pad,
                                bool ceil_mode) {
  if (failed()) return x;
  Pool pool;
  pool.kernel_h = pool.kernel_w = kernel;
  pool.stride_h = pool.stride_w = stride;
  pool.pad_top = pool.pad_left = pad;
  pool.pad_bottom = far_pad(shape(x).height, kernel, stride, pad, ceil_mode);
  pool.pad_right = far_pad(shape(x).width, kernel, stride, pad, ceil_mode);
  return append(name, pool, {x});
}

LayerId ModuleBuilder::average_to_vector(const std::string& name, LayerId x) {
  x = append(name, GlobalAveragePool{}, {x});
  return append("flatten", Flatten{}, {x});
}

LayerId ModuleBuilder::dropout(const std::string& name, LayerId x, float probability) {
  return append(name, Dropout{probability}, {x});
}

LayerId ModuleBuilder::linear(const std::string& name, LayerId x, int64_t features) {
  Linear linear;
  linear.out_features = features;
  linear.bias = declared_tensor({features});
  return append(name, std::move(linear), {x});
}

LayerId ModuleBuilder::append(const std::string& name, Operation operation, std::vector<LayerId> inputs) {
  if (failed()) return 0;
  auto id = builder_.append(name, std::move(operation), std::move(inputs));
  if (id) return *id;
  fail(std::move(id).error());
  return 0;
}

void ModuleBuilder::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

Result<Graph> ModuleBuilder::finish() && {
  if (error_) return std::move(*error_);
  return std::move(builder_).finish();
}

}  // namespace strobe::models
