#include "predict/physics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>

namespace strobe::predict {
namespace {

using Values = std::map<std::string, double>;

// Logarithms of the values by name, but of library_share.
std::vector<double> parameters(const Physics& physics, const Values& values) {
  std::vector<double> at;
  for (const std::string_view name : physics.parameter_names()) {
    const auto found = values.find(std::string(name));
    const double value = found == values.end() ? 1 : found->second;
    at.push_back(name == "library_share" ? value : std::log(value));
  }
  return at;
}

LayerList one_convolution(int64_t kernel) {
  LayerRow row;
  row.type = LayerKind::kConv;
  row.ic = 8;
  row.oc = 16;
  row.kh = row.kw = kernel;
  row.sh = row.sw = 1;
  row.ph = row.pw = kernel / 2;
  row.ih = row.iw = row.oh = row.ow = 10;
  row.inputs = {-1};
  LayerList list;
  list.rows = {row};
  return list;
}

double value_of(const Physics& physics, const Values& values, const PhysicsRow& row) {
  double log_value = 0;
  physics.predict(parameters(physics, values), std::span(&row, 1), std::span(&log_value, 1));
  return std::exp(log_value);
}

TEST(LatencyPhysics, AnInferenceIsForwardAlone) {
  const auto physics = make_latency_physics({.stage = Stage::kInference});
  const Values values = {{"start_ms", 1},      {"launch_ms", 0.5},          {"sharpness", 200},
                         {"fixed_ms", 2},      {"alpha_ms_per_gflop", 1.5}, {"beta_ms_per_gb", 40},
                         {"tile_channels", 0}, {"tile_depth", 0},           {"update_passes", 10}};
  // Half of what OneConvolutionByHand has, and no update.
  const PhysicsRow many = {physics->terms(one_convolution(1)), 10000, 0};
  EXPECT_NEAR(value_of(*physics, values, many), 2 + 4.224, 1e-9);
}

TEST(LatencyPhysics, OneConvolutionByHand) {
  const auto physics = make_latency_physics();
  // No tiles, and launches that overlap the device's work entirely.
  Values values = {{"start_ms", 1},      {"launch_ms", 0.5},          {"sharpness", 200},
                   {"fixed_ms", 2},      {"alpha_ms_per_gflop", 1.5}, {"beta_ms_per_gb", 40},
                   {"tile_channels", 0}, {"tile_depth", 0},           {"update_passes", 10}};
  const PhysicsRow many = {physics->terms(one_convolution(1)), 10000, 0}, one = {many.network, 1, 0};
  // Forward and gradient of the weights (of the input there is none): 2 x 2 x 100 x 8 x 16 = 51,200 operations,
  // 7.68e-5 ms; 2 x 4 x 100 x (8 + 16) = 19,200 bytes, 7.68e-4 ms. An item: 8.448e-4 ms.
  // Update: 10 x 4 x 128 bytes, 2.048e-4 ms.
  EXPECT_NEAR(value_of(*physics, values, many), 2 + 2.048e-4 + 8.448, 1e-9);
  EXPECT_NEAR(value_of(*physics, values, one), 2 + 2.048e-4 + 8.448e-4, 1e-9);
  values["launch_ms"] = 5;  // 1 + 5 x 1 operation
  EXPECT_NEAR(value_of(*physics, values, one), 6, 1e-9);
  // Tiles of 4 channels and a depth of 2: (16 + 4) (8 + 2) + (16 + 4) (8 + 4) = 440 products a position, not 256.
  values["tile_channels"] = 4;
  values["tile_depth"] = 2;
  EXPECT_NEAR(value_of(*physics, values, many), 2 + 2.048e-4 + 8.448 + 1.5 * 2e-9 * 100 * (440 - 256) * 10000, 1e-9);
}

TEST(LatencyPhysics, SharpnessOneIsTheSumOfTheSquares) {
  const auto physics = make_latency_physics();
  // host = 3, device = 4 and next to nothing for the item: (3^2 + 4^2)^(1/2).
  const Values values = {{"start_ms", 2}, {"launch_ms", 1},          {"sharpness", 1},
                         {"fixed_ms", 4}, {"alpha_ms_per_gflop", 0}, {"beta_ms_per_gb", 0}};
  EXPECT_NEAR(value_of(*physics, values, {physics->terms(one_convolution(3)), 1, 0}), 5, 1e-9);
}

TEST(LatencyPhysics, PriorsFollowTheDevice) {
  const auto physics = make_latency_physics();
  const auto terms = physics->terms(one_convolution(3));
  std::vector<ObservedRow> slow, fast;
  for (const double batch : {1.0, 8.0, 64.0}) {
    slow.push_back({{terms, batch, 0}, 100 * batch});
    fast.push_back({{terms, batch, 0}, batch});
  }
  const auto of_slow = physics->priors(slow, false), of_fast = physics->priors(fast, false);
  const auto names = physics->parameter_names();
  for (size_t i = 0; i < names.size(); ++i) {
    const bool time = names[i].find("_ms") != std::string_view::npos;
    EXPECT_NEAR(of_slow[i].centre - of_fast[i].centre, time ? std::log(100.0) : 0, 1e-9) << names[i];
    EXPECT_EQ(of_slow[i].deviation, of_fast[i].deviation);
  }
}

TEST(MemoryPhysics, FloorNeedAndCapacity) {
  const auto physics = make_memory_physics();
  const Values values = {{"base_mib", 1000},     {"parameter_copies", 3}, {"held", 1},
                         {"floor_mib", 1600},    {"floor_bend", 400},     {"capacity_mib", 6000},
                         {"capacity_bend", 400}, {"library_share", 0.125}};
  LayerList list = one_convolution(1);
  constexpr double kMiB = 1 << 20;
  const auto at = [&](double reserved_mib) { return PhysicsRow{physics->terms(list), 1, reserved_mib * kMiB}; };
  // No linear layer: base and floor are an eighth of the floor less; 128 parameters are 512 bytes.
  const double copies = 3 * 512 / kMiB;
  EXPECT_NEAR(value_of(*physics, values, at(100)), 1400, 0.01);
  EXPECT_NEAR(value_of(*physics, values, at(2000)), 2800 + copies, 0.01);
  EXPECT_NEAR(value_of(*physics, values, at(9000)), 6000, 0.01);
  const auto parameters_at = parameters(*physics, values);
  EXPECT_NEAR(physics->sensitivity(parameters_at, at(100)), 0, 1e-6);
  EXPECT_NEAR(physics->sensitivity(parameters_at, at(2000)), 1, 1e-6);
  EXPECT_NEAR(physics->sensitivity(parameters_at, at(9000)), 0, 1e-6);

  LayerRow linear;
  linear.type = LayerKind::kLinear;
  linear.ic = linear.oc = linear.kh = linear.kw = linear.ih = linear.iw = linear.oh = linear.ow = 1;
  linear.inputs = {0};
  list.rows.push_back(linear);
  EXPECT_NEAR(value_of(*physics, values, at(100)), 1600, 0.01);
  EXPECT_NEAR(value_of(*physics, values, at(2000)), 3000 + 3 * 516 / kMiB, 0.01);
}

TEST(MemoryPhysics, WithoutAFailureThereIsNoCapacity) {
  const auto physics = make_memory_physics();
  const auto terms = physics->terms(one_convolution(1));
  const std::vector<ObservedRow> rows = {{{terms, 1, 0}, 100}, {{terms, 2, 0}, 5000}};
  const auto names = physics->parameter_names();
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i] == "capacity_mib") {
      EXPECT_GT(physics->priors(rows, false)[i].centre, std::log(1e9));
      EXPECT_NEAR(physics->priors(rows, true)[i].centre, std::log(100.0), 1e-9);  // of two rows, the lower
    }
  }
}

}  // namespace
}  // namespace strobe::predict
