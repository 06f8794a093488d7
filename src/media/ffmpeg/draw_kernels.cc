#include "media/ffmpeg/draw_kernels.h"

#include <cmath>

#if defined(__x86_64__)
#define STROBE_DRAW_KERNELS_AVX2 1
#endif
#define STROBE_ALWAYS_INLINE static inline __attribute__((always_inline))

namespace strobe::media {
namespace {

STROBE_ALWAYS_INLINE float larger(float a, float b) {
  return a > b ? a : b;
}
STROBE_ALWAYS_INLINE float smaller(float a, float b) {
  return a < b ? a : b;
}

// Signed distance of a point from the box's edge; negative inside.
STROBE_ALWAYS_INLINE float distance(const RoundedBox& box, float x, float y) {
  const float dx = std::abs(x - box.x) - box.half_width + box.radius;
  const float dy = std::abs(y - box.y) - box.half_height + box.radius;
  const float out_x = larger(dx, 0.0F);
  const float out_y = larger(dy, 0.0F);
  return __builtin_sqrtf(out_x * out_x + out_y * out_y) + smaller(larger(dx, dy), 0.0F) - box.radius;
}

// 0..scale + 0.5, to be cut to whole numbers.
STROBE_ALWAYS_INLINE float covered(float distance, float scale) {
  return scale * smaller(larger(0.5F - distance, 0.0F), 1.0F) + 0.5F;
}

// Whole numbers first and bytes in a loop of their own: a loop over both is vectorised at half the width.
STROBE_ALWAYS_INLINE void to_bytes(const int32_t* __restrict values, uint8_t* __restrict bytes) {
  for (int i = 0; i < kDrawGroup; ++i) bytes[i] = static_cast<uint8_t>(values[i]);
}

STROBE_ALWAYS_INLINE void outline_body(const RoundedBox& whole, const LineShape& shape, float x, float y, int count,
                                       uint8_t* line, uint8_t* rim) {
  const RoundedBox box = whole;
  const float half_line = shape.half_line;
  const float half_rim = shape.half_rim;
  const float rim_scale = 255 * shape.rim_opacity;
  for (int group = 0; group < count; group += kDrawGroup, x += kDrawGroup) {
    int32_t of_line[kDrawGroup];
    int32_t of_rim[kDrawGroup];
    for (int i = 0; i < kDrawGroup; ++i) {
      const float away = std::abs(distance(box, x + static_cast<float>(i), y));
      of_line[i] = static_cast<int32_t>(covered(away - half_line, 255));
      of_rim[i] = static_cast<int32_t>(covered(away - half_rim, rim_scale));
    }
    to_bytes(of_line, line + group);
    to_bytes(of_rim, rim + group);
  }
}

STROBE_ALWAYS_INLINE void inside_body(const RoundedBox& whole, float x, float y, int count, uint8_t* weights) {
  const RoundedBox box = whole;
  for (int group = 0; group < count; group += kDrawGroup, x += kDrawGroup) {
    int32_t of_box[kDrawGroup];
    for (int i = 0; i < kDrawGroup; ++i) {
      of_box[i] = static_cast<int32_t>(covered(distance(box, x + static_cast<float>(i), y), 255));
    }
    to_bytes(of_box, weights + group);
  }
}

STROBE_ALWAYS_INLINE void mix_body(uint8_t* samples, ptrdiff_t stride, const uint8_t* weights, ptrdiff_t weight_stride,
                                   int columns, int rows, int value) {
  const auto wanted = static_cast<uint16_t>(value);
  for (int row = 0; row < rows; ++row, samples += stride, weights += weight_stride) {
    for (int group = 0; group < columns; group += kDrawGroup) {
      uint8_t* __restrict const to = samples + group;
      const uint8_t* __restrict const by = weights + group;
      for (int i = 0; i < kDrawGroup; ++i) {
        const uint16_t weight = by[i];
        const auto sum = static_cast<uint16_t>(to[i] * static_cast<uint16_t>(255 - weight) + wanted * weight + 128);
        to[i] = static_cast<uint8_t>(static_cast<uint16_t>(sum + static_cast<uint16_t>(sum >> 8)) >> 8);
      }
    }
  }
}

STROBE_ALWAYS_INLINE void halve_body(const uint8_t* __restrict upper, const uint8_t* __restrict lower, int count,
                                     uint8_t* __restrict out) {
  for (int group = 0; group < count; group += kDrawGroup) {
    for (int i = group; i < group + kDrawGroup; ++i) {
      const auto sum = static_cast<uint16_t>(upper[2 * i] + upper[2 * i + 1] + lower[2 * i] + lower[2 * i + 1]);
      out[i] = static_cast<uint8_t>(sum >> 2);
    }
  }
}

#define STROBE_DRAW_KERNELS(suffix, attribute)                                                                     \
  attribute void outline_##suffix(const RoundedBox& box, const LineShape& shape, float x, float y, int count,      \
                                  uint8_t* line, uint8_t* rim) {                                                   \
    outline_body(box, shape, x, y, count, line, rim);                                                              \
  }                                                                                                                \
  attribute void inside_##suffix(const RoundedBox& box, float x, float y, int count, uint8_t* weights) {           \
    inside_body(box, x, y, count, weights);                                                                        \
  }                                                                                                                \
  attribute void mix_##suffix(uint8_t* samples, ptrdiff_t stride, const uint8_t* weights, ptrdiff_t weight_stride, \
                              int columns, int rows, int value) {                                                  \
    mix_body(samples, stride, weights, weight_stride, columns, rows, value);                                       \
  }                                                                                                                \
  attribute void halve_##suffix(const uint8_t* upper, const uint8_t* lower, int count, uint8_t* out) {             \
    halve_body(upper, lower, count, out);                                                                          \
  }                                                                                                                \
  constexpr DrawKernels k_##suffix = {outline_##suffix, inside_##suffix, mix_##suffix, halve_##suffix};

STROBE_DRAW_KERNELS(baseline, )
#ifdef STROBE_DRAW_KERNELS_AVX2
STROBE_DRAW_KERNELS(avx2, __attribute__((target("avx2,fma"))))
#endif

}  // namespace

const DrawKernels& draw_kernels() {
#ifdef STROBE_DRAW_KERNELS_AVX2
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (has_avx2) return k_avx2;
#endif
  return k_baseline;
}

}  // namespace strobe::media
