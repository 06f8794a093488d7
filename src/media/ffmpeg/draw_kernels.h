// The inner loops of drawing, compiled for the baseline CPU and for AVX2 and chosen once at run time.
#pragma once

#include <cstddef>
#include <cstdint>

namespace strobe::media {

// Pixels are handled in groups of so many; what a kernel touches beyond the wanted ones is written back unchanged.
inline constexpr int kDrawGroup = 16;

// A rectangle with rounded corners, in pixels.
struct RoundedBox {
  float x = 0, y = 0, half_width = 0, half_height = 0;  // of its middle
  float radius = 0;                                     // at most half of each side
};

// How a line along a box's edge covers the pixels: fully up to half its width, with a rim of one colour beneath.
struct LineShape {
  float half_line = 0, half_rim = 0;
  float rim_opacity = 0;
};

// Weights are 0..255.
struct DrawKernels {
  // Of `count` pixels of the row whose middle is y; the first one's middle is x. count: a multiple of kDrawGroup.
  void (*outline)(const RoundedBox& box, const LineShape& shape, float x, float y, int count, uint8_t* line,
                  uint8_t* rim);
  void (*inside)(const RoundedBox& box, float x, float y, int count, uint8_t* weights);
  // samples = samples mixed with value. columns: a multiple of kDrawGroup; a weight stride of 0 repeats one row.
  void (*mix)(uint8_t* samples, ptrdiff_t stride, const uint8_t* weights, ptrdiff_t weight_stride, int columns,
              int rows, int value);
  // out[i] = mean of upper[2i], upper[2i+1], lower[2i], lower[2i+1], rounded down. count: a multiple of kDrawGroup.
  void (*halve)(const uint8_t* upper, const uint8_t* lower, int count, uint8_t* out);
};

const DrawKernels& draw_kernels();

// sample mixed with value by weight / 255, rounded to nearest; what `mix` does to each sample.
inline uint8_t mixed(int sample, int value, int weight) {
  const int sum = sample * (255 - weight) + value * weight + 128;  // fits 16 bits
  return static_cast<uint8_t>((sum + (sum >> 8)) >> 8);
}

}  // namespace strobe::media
