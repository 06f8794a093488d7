// Whether two graphs are the same in every field, said by gtest.
#pragma once

#include <gtest/gtest.h>

#include <tuple>

#include "models/graph_builder.h"

namespace strobe::test {

// The numbers of an operation, without its weights.
struct Fields {
  template <typename Plain>
  auto operator()(const Plain&) const {
    return std::tuple<>();
  }
  auto operator()(const models::Convolution& op) const {
    return std::tuple(op.out_channels, op.kernel_h, op.kernel_w, op.stride_h, op.stride_w, op.pad_h, op.pad_w,
                      op.dilation, op.groups);
  }
  auto operator()(const models::TransposedConvolution& op) const {
    return std::tuple(op.out_channels, op.kernel_h, op.kernel_w, op.stride_h, op.stride_w, op.pad_h, op.pad_w);
  }
  auto operator()(const models::BatchNorm& op) const { return std::tuple(op.epsilon); }
  auto operator()(const models::Activation& op) const { return std::tuple(op.kind, op.slope); }
  auto operator()(const models::Pool& op) const {
    return std::tuple(op.kind, op.kernel_h, op.kernel_w, op.stride_h, op.stride_w, op.pad_top, op.pad_left,
                      op.pad_bottom, op.pad_right, op.count_padding);
  }
  auto operator()(const models::Slice& op) const { return std::tuple(op.begin, op.end); }
  auto operator()(const models::Upsample& op) const { return std::tuple(op.scale); }
  auto operator()(const models::Linear& op) const { return std::tuple(op.out_features); }
  auto operator()(const models::Dropout& op) const { return std::tuple(op.probability); }
  auto operator()(const models::YoloHead& op) const {
    return std::tuple(op.anchors, op.classes, op.scale_x_y, op.new_coords);
  }
};

inline bool same_operation(const models::Operation& a, const models::Operation& b) {
  if (a.index() != b.index()) return false;
  const bool same_fields = std::visit(
      [&](const auto& one) { return Fields{}(one) == Fields{}(std::get<std::decay_t<decltype(one)>>(b)); }, a);
  models::Operation copy_a = a, copy_b = b;
  const auto slots_a = models::weight_slots(copy_a), slots_b = models::weight_slots(copy_b);
  if (!same_fields || slots_a.size() != slots_b.size()) return false;
  for (size_t i = 0; i < slots_a.size(); ++i) {
    const models::Tensor &one = **slots_a[i].tensor, &other = **slots_b[i].tensor;
    if (slots_a[i].role != slots_b[i].role || one.shape != other.shape || one.values != other.values) return false;
  }
  return true;
}

inline void expect_same_graph(const models::Graph& a, const models::Graph& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.outputs, b.outputs);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(a.trained, b.trained);
  const auto rule = [](const models::InputRule& r) {
    return std::tuple(r.fit, r.scale, r.bgr, r.mean[0], r.mean[1], r.mean[2], r.deviation[0], r.deviation[1],
                      r.deviation[2]);
  };
  EXPECT_EQ(rule(a.input_rule), rule(b.input_rule));
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (size_t i = 0; i < a.layers.size(); ++i) {
    EXPECT_EQ(a.layers[i].name, b.layers[i].name);
    EXPECT_EQ(a.layers[i].inputs, b.layers[i].inputs) << a.layers[i].name;
    EXPECT_EQ(a.layers[i].output, b.layers[i].output) << a.layers[i].name;
    EXPECT_TRUE(same_operation(a.layers[i].operation, b.layers[i].operation)) << a.layers[i].name;
  }
}

}  // namespace strobe::test
