// The sampler that draws only what can matter against the plain loop over every drop.
#include "sensors/weather_drops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace strobe::sensors {
namespace {

struct Echoes {
  std::vector<double> ranges, powers;
  int trials = 0;
  double share() const { return static_cast<double>(ranges.size()) / trials; }
};

using Sampler = decltype(&pick_among_drops);

Echoes repeat(Sampler sampler, const DropModel& model, double range, double threshold, DropPick pick, int trials,
              uint64_t seed) {
  Echoes echoes;
  echoes.trials = trials;
  for (int i = 0; i < trials; ++i) {
    DropRandom random(seed, 0, static_cast<uint32_t>(i));
    if (const auto echo = sampler(model, range, threshold, pick, random)) {
      echoes.ranges.push_back(echo->range_m);
      echoes.powers.push_back(echo->power);
    }
  }
  return echoes;
}

// Kolmogorov and Smirnov's distance of two samples, in units where 1.95 is passed by chance once in a thousand times.
double distance(std::vector<double> a, std::vector<double> b) {
  std::sort(a.begin(), a.end());
  std::sort(b.begin(), b.end());
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size());
  double worst = 0;
  for (size_t i = 0, j = 0; i < a.size() && j < b.size();) {
    (a[i] <= b[j] ? i : j)++;
    worst = std::max(worst, std::abs(static_cast<double>(i) / n - static_cast<double>(j) / m));
  }
  return worst * std::sqrt(n * m / (n + m));
}

DropModel rain(double rate) {
  DropModel model;
  model.sizes = rain_drops(rate);
  model.alpha = 0.0016;
  model.reflectance = 0.0198;
  model.beam_mm_per_m = 3.0;
  return model;
}

void expect_same(const DropModel& model, double range, double threshold, DropPick pick, int trials) {
  const Echoes plain = repeat(pick_among_all_drops, model, range, threshold, pick, trials, 1);
  const Echoes fast = repeat(pick_among_drops, model, range, threshold, pick, 4 * trials, 2);
  const double both = (plain.share() + 4 * fast.share()) / 5;
  const double error = std::sqrt(both * (1 - both) * (1.0 / plain.trials + 1.0 / fast.trials));
  ASSERT_GT(plain.ranges.size(), 200U) << "the case says little";
  EXPECT_NEAR(plain.share(), fast.share(), 4 * error) << "range " << range << " threshold " << threshold;
  EXPECT_LT(distance(plain.ranges, fast.ranges), 1.95) << "range " << range << " threshold " << threshold;
  EXPECT_LT(distance(plain.powers, fast.powers), 1.95) << "range " << range << " threshold " << threshold;
}

TEST(WeatherDrops, FewDropsHaveTheDistributionOfAllStrongest) {
  const double least = 0.9 / (200.0 * 200.0);
  expect_same(rain(10), 8, least, DropPick::kStrongest, 40000);
  expect_same(rain(50), 20, 2 * least, DropPick::kStrongest, 8000);
  expect_same(rain(100), 3, least, DropPick::kStrongest, 60000);
  expect_same(rain(1), 30, least, DropPick::kStrongest, 20000);
}

TEST(WeatherDrops, FewDropsHaveTheDistributionOfAllFarthest) {
  const double least = 0.9 / (200.0 * 200.0);
  expect_same(rain(25), 15, least, DropPick::kFarthest, 10000);
}

TEST(WeatherDrops, ManyCandidatesInABeam) {
  // A threshold that most drops pass: several a beam, both sides of the knee of the candidates' density.
  expect_same(rain(10), 12, 1e-8, DropPick::kFarthest, 3000);
  expect_same(rain(10), 12, 1e-8, DropPick::kStrongest, 3000);
}

TEST(WeatherDrops, HeavySnowflakesThatFillTheBeam) {
  // Flakes of centimetres: the power is capped where a flake is as wide as the beam.
  DropModel model = rain(10);
  model.sizes = {100, 0.15};
  expect_same(model, 10, 0.9 / 40000, DropPick::kStrongest, 8000);
  expect_same(model, 10, 2e-3, DropPick::kStrongest, 20000);
}

TEST(WeatherDrops, RandomModelsAgreeInTheShareOfEchoes) {
  DropRandom choose(99, 0, 0);
  for (int i = 0; i < 30; ++i) {
    DropModel model = rain(0.5 * std::pow(200, choose.next()));
    model.min_range_m = 0.2 + 2 * choose.next();
    model.smallest_mm = 0.02 + 0.2 * choose.next();
    model.alpha = 0.02 * choose.next();
    const double range = model.min_range_m + 8 * choose.next();
    const double threshold = std::pow(10, -7 + 4 * choose.next());
    const Echoes plain = repeat(pick_among_all_drops, model, range, threshold, DropPick::kStrongest, 4000, 100 + i);
    const Echoes fast = repeat(pick_among_drops, model, range, threshold, DropPick::kStrongest, 4000, 200 + i);
    const double both = (plain.share() + fast.share()) / 2;
    EXPECT_NEAR(plain.share(), fast.share(), 4.5 * std::sqrt(both * (1 - both) * 2 / 4000) + 3.0 / 4000)
        << "case " << i;
  }
}

TEST(WeatherDrops, MeanCountIsTheConesVolumeTimesTheDensity) {
  // A cone of 10 m with 15 mm radius at its end: 2.356e-3 m^3; 8000 / 2.53 drops of more than 0.05 mm, about.
  const DropModel model = rain(10);
  const double density = 8000 * std::exp(-model.sizes.lambda * 0.05) / model.sizes.lambda;
  EXPECT_NEAR(mean_drop_count(model, 10), 2.35619e-3 * density, 1e-4);
}

TEST(WeatherDrops, NothingInFrontOfANearTarget) {
  DropRandom random(1, 2, 3);
  EXPECT_FALSE(pick_among_drops(rain(100), 1.5, 1e-9, DropPick::kStrongest, random));
  EXPECT_FALSE(pick_among_all_drops(rain(100), 1.5, 1e-9, DropPick::kStrongest, random));
}

}  // namespace
}  // namespace strobe::sensors
