// The inner loops of preprocessing, compiled for the baseline CPU and for AVX2 and chosen once at run time.
#pragma once

#include <cstdint>

namespace strobe::media {

inline constexpr int kBlendShift = 7;
inline constexpr int kBlendOne = 1 << kBlendShift;  // 255 * 128 still fits 16 signed bits

// value = y * from_y + u * from_u + v * from_v + offset, clamped to 0..255, then * gain + bias; one for each channel.
struct ChannelMap {
  float from_y = 0, from_u = 0, from_v = 0, offset = 0;
  float gain = 1, bias = 0;
};

struct RowKernels {
  // out[i] = a[i] * (kBlendOne - weight) + b[i] * weight
  void (*blend)(const uint8_t* a, const uint8_t* b, int weight, int count, int16_t* out);
  // out[i] = row[at[i]] * (1 - weight[i]) + row[at[i] + step] * weight[i]
  void (*sample)(const int16_t* row, int step, const int32_t* at, const float* weight, int count, int32_t* scratch,
                 float* out);
  void (*map)(const float* y, const float* u, const float* v, const ChannelMap& channel, int count, float* out);
  const char* name;
};

const RowKernels& row_kernels();

}  // namespace strobe::media
