#include "predict/layer_speed.h"

#include <gtest/gtest.h>

#include "models/graph_builder.h"
#include "models/model.h"

namespace strobe::predict {
namespace {

InferenceDevice device(bool fuses) {
  InferenceDevice device;
  device.limits.peak_gflops.fill(1);
  device.limits.peak_gflops[static_cast<size_t>(WorkKind::kPointwise)] = 2;
  device.limits.bandwidth_gb_s = 1;
  device.limits.launch_us = 10;
  device.fuses = fuses;
  return device;
}

// 16x8x8 -> 1x1 convolution to 32 channels -> batch norm -> ReLU -> global pool.
models::Graph small() {
  models::GraphBuilder build("small");
  const auto input = *build.input({16, 8, 8});
  models::Convolution conv;
  conv.out_channels = 32;
  const auto a = *build.append("conv", conv, {input});
  const auto b = *build.append("bn", models::BatchNorm{}, {a});
  const auto c = *build.append("relu", models::Activation{models::ActivationKind::kRelu}, {b});
  (void)*build.append("pool", models::GlobalAveragePool{}, {c});
  return *std::move(build).finish();
}

TEST(LayerSpeed, IsTheLongerOfOperationsAndBytes) {
  const models::Graph graph = small();
  const std::vector<double> times = layer_times_ms(graph, 1, device(false));
  ASSERT_EQ(times.size(), 5u);
  EXPECT_EQ(times[0], 0);
  // 2 * 16 * 32 * 64 = 65536 operations at 2e9 a second: 32.8 us; (1024 + 2048 + 512) * 4 = 14336 bytes at 1e9: 14.3
  // us.
  EXPECT_NEAR(times[1], 65536 / 2e6 + 0.01, 1e-9);
  // In and out, 2048 numbers each, and 4 parameters a channel of which two are learned.
  EXPECT_NEAR(times[2], (2 * 2048 * 4 + 4 * 64) / 1e6 + 0.01, 1e-3);
  EXPECT_NEAR(times[3], 2 * 2048 * 4 / 1e6 + 0.01, 1e-9);
  EXPECT_NEAR(inference_time_ms(graph, 1, device(false)), times[1] + times[2] + times[3] + times[4], 1e-12);
  // A batch moves its weights once: 2 * 65536 operations against 2 * 3072 * 4 + 512 * 4 bytes.
  EXPECT_NEAR(layer_times_ms(graph, 2, device(false))[1], 2 * 65536 / 2e6 + 0.01, 1e-9);
}

TEST(LayerSpeed, AQueuedDeviceWaitsForLaunchesOnly) {
  const models::Graph graph = small();
  InferenceDevice gpu = device(false);
  gpu.queued = true;
  // Of each layer: the longer of operations and bytes; launches of 10 us before them.
  const double conv = 65536 / 2e6, bn = (2 * 2048 * 4 + 4 * 64) / 1e6, relu = 2 * 2048 * 4 / 1e6,
               pool = (2048 + 32) * 4 / 1e6;
  std::vector<double> times = layer_times_ms(graph, 1, gpu);
  EXPECT_NEAR(times[1], 0.01 + conv, 1e-9);  // 32.8 us: the next three are launched by then
  EXPECT_NEAR(times[2], bn, 1e-3);
  EXPECT_NEAR(times[3], relu, 1e-9);
  EXPECT_NEAR(times[4], pool, 1e-9);
  EXPECT_NEAR(device_time_ms(graph, 1, gpu), conv + bn + relu + pool, 1e-3);
  // Launches of 100 us are what counts: each is waited for, and then the last kernel.
  gpu.limits.launch_us = 100;
  times = layer_times_ms(graph, 1, gpu);
  EXPECT_NEAR(times[1], 0.1 + conv, 1e-9);
  EXPECT_NEAR(times[2], 0.1 - conv + bn, 1e-3);
  EXPECT_NEAR(inference_time_ms(graph, 1, gpu), 0.4 + pool, 1e-9);
  // 16 x 8 x 8 numbers go there, 32 come back, for each of the batch, at 1 GB/s.
  gpu.copy_gb_s = 1;
  EXPECT_NEAR(inference_time_ms(graph, 1, gpu), 0.4 + pool + 4 * (1024 + 32) / 1e6, 1e-9);
}

TEST(LayerSpeed, EachSessionOfAGpuReservesItsOwn) {
  const models::Graph graph = small();
  const int64_t one = reserved_inference_bytes(graph, 1, 1), two = reserved_inference_bytes(graph, 1, 2);
  // Tensors of some KiB come out of one segment of 2 MiB.
  EXPECT_EQ(two - one, 2 << 20);
  EXPECT_EQ(one - (2 << 20), 4 * (16 * 32 + 2 * 32));
}

TEST(LayerSpeed, WhatEndsInAnothersKernelTakesNothing) {
  const models::Graph graph = small();
  const std::vector<double> times = layer_times_ms(graph, 1, device(true));
  EXPECT_GT(times[1], 0);
  EXPECT_EQ(times[2], 0);
  EXPECT_EQ(times[3], 0);
  EXPECT_GT(times[4], 0);
  EXPECT_GT(inference_bytes(graph, 2), 4 * (16 * 32 + 2 * (16 + 32) * 64));
}

TEST(LayerSpeed, EveryNetworkOfTheZooHasATime) {
  for (const std::string& name : models::builtin_names()) {
    const auto graph = models::open_graph(name, {});
    ASSERT_TRUE(graph) << graph.error().to_string();
    const double one = inference_time_ms(*graph, 1, device(true)), four = inference_time_ms(*graph, 4, device(true));
    EXPECT_GT(one, 0) << name;
    EXPECT_GT(four, one) << name;
    EXPECT_LT(four, 4 * one + 1e-9) << name;
    EXPECT_GT(inference_time_ms(*graph, 1, device(false)), one) << name;
  }
}

}  // namespace
}  // namespace strobe::predict
