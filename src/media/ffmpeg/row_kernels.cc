#include "media/ffmpeg/row_kernels.h"

#include <cstring>

#if defined(__x86_64__)
#define STROBE_ROW_KERNELS_AVX2 1
#endif
#define STROBE_ALWAYS_INLINE static inline __attribute__((always_inline))

namespace strobe::media {
namespace {

STROBE_ALWAYS_INLINE void blend_body(const uint8_t* __restrict a, const uint8_t* __restrict b, int weight, int count,
                                     int16_t* __restrict out) {
  const auto second = static_cast<int16_t>(weight);
  const auto first = static_cast<int16_t>(kBlendOne - weight);
  for (int i = 0; i < count; ++i) out[i] = static_cast<int16_t>(a[i] * first + b[i] * second);
}

// The scattered loads go first and alone, two neighbours in one load, so that the arithmetic after them is vectorised.
STROBE_ALWAYS_INLINE void sample_body(const int16_t* __restrict row, int step, const int32_t* __restrict at,
                                      const float* __restrict weight, int count, int32_t* __restrict scratch,
                                      float* __restrict out) {
  if (step == 1) {
    for (int i = 0; i < count; ++i) std::memcpy(&scratch[i], row + at[i], sizeof(int32_t));
  } else {
    for (int i = 0; i < count; ++i) {
      const auto low = static_cast<uint32_t>(static_cast<uint16_t>(row[at[i]]));
      const auto high = static_cast<uint32_t>(static_cast<uint16_t>(row[at[i] + step]));
      scratch[i] = static_cast<int32_t>(low | high << 16);
    }
  }
  for (int i = 0; i < count; ++i) {
    const auto left = static_cast<float>(scratch[i] & 0xffff);  // never negative
    const auto right = static_cast<float>(scratch[i] >> 16);
    out[i] = left + (right - left) * weight[i];
  }
}

STROBE_ALWAYS_INLINE void map_body(const float* __restrict y, const float* __restrict u, const float* __restrict v,
                                   const ChannelMap& channel, int count, float* __restrict out) {
  const ChannelMap c = channel;
  for (int i = 0; i < count; ++i) {
    float value = y[i] * c.from_y + u[i] * c.from_u + v[i] * c.from_v + c.offset;
    value = value > 0.0F ? value : 0.0F;
    value = value < 255.0F ? value : 255.0F;
    out[i] = value * c.gain + c.bias;
  }
}

#define STROBE_ROW_KERNELS(suffix, attribute)                                                                       \
  attribute void blend_##suffix(const uint8_t* a, const uint8_t* b, int weight, int count, int16_t* out) {          \
    blend_body(a, b, weight, count, out);                                                                           \
  }                                                                                                                 \
  attribute void sample_##suffix(const int16_t* row, int step, const int32_t* at, const float* weight, int count,   \
                                 int32_t* scratch, float* out) {                                                    \
    sample_body(row, step, at, weight, count, scratch, out);                                                        \
  }                                                                                                                 \
  attribute void map_##suffix(const float* y, const float* u, const float* v, const ChannelMap& channel, int count, \
                              float* out) {                                                                         \
    map_body(y, u, v, channel, count, out);                                                                         \
  }                                                                                                                 \
  constexpr RowKernels k_##suffix = {blend_##suffix, sample_##suffix, map_##suffix, #suffix};

STROBE_ROW_KERNELS(baseline, )
#ifdef STROBE_ROW_KERNELS_AVX2
STROBE_ROW_KERNELS(avx2, __attribute__((target("avx2,fma"))))
#endif

}  // namespace

const RowKernels& row_kernels() {
#ifdef STROBE_ROW_KERNELS_AVX2
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0;
  if (has_avx2) return k_avx2;
#endif
  return k_baseline;
}

}  // namespace strobe::media
