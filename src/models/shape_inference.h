// What shape an operation makes of its inputs, or why it cannot.
#pragma once

#include <span>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

// Limits that no vision network comes near. Within them no product of this room overflows an int64_t.
inline constexpr int64_t kMaxDimension = int64_t{1} << 16;
inline constexpr int64_t kMaxElements = int64_t{1} << 28;  // of one tensor: 1 GiB of float32
inline constexpr int64_t kMaxKernel = 1024;

// Errors: kBadData, saying which number is off and what was expected; the caller adds the layer's name.
Result<Shape> infer_shape(const Operation& operation, std::span<const Shape> inputs);

// Pixels that one step at the output of an operation spans at its input: its stride (an upsampling divides).
struct Step {
  int64_t multiply = 1;
  int64_t divide = 1;
};
Step spatial_step(const Operation& operation);

}  // namespace strobe::models
