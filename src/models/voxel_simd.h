// Kernels of the point operators for two instruction sets: a body is written once, the compiler vectorises it for AVX2
// and for the baseline, and the CPU chooses at the first call. Bodies contain no product followed by a sum where the
// result selects a cell: fused or not, every machine puts a point into the same pillar.
#pragma once

#define STROBE_VOXEL_BODY static inline __attribute__((always_inline))

// STROBE_VOXEL_KERNEL(return type, name, (parameters), call of the body)
#if defined(__x86_64__)
#define STROBE_VOXEL_KERNEL(type, name, parameters, ...)            \
  __attribute__((target("avx2,fma"))) type name##_avx2 parameters { \
    return __VA_ARGS__;                                             \
  }                                                                 \
  type name##_baseline parameters {                                 \
    return __VA_ARGS__;                                             \
  }                                                                 \
  using name##_fn = type(*) parameters;                             \
  const name##_fn name =                                            \
      __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 ? &name##_avx2 : &name##_baseline;
#else
#define STROBE_VOXEL_KERNEL(type, name, parameters, ...) \
  type name parameters {                                 \
    return __VA_ARGS__;                                  \
  }
#endif
