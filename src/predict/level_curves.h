// What was measured of some levels of a network, interpolated between them. Where the layers of a level do not say all
// that sets it apart from the levels beside it (layer lists of another random draw than what was measured, algorithms
// that a library picked), the measurements of its neighbours are the better witness, and the two together are better
// than either (docs/prediction-models.md).
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace strobe::predict {

// A level of a network, and how large it is.
struct LevelPlace {
  std::string net;
  int64_t level = 0;
  std::vector<double> features;  // logarithms; the same number for all levels
};

class LevelCurves {
 public:
  struct Curve {
    std::vector<double> features;
    std::map<int64_t, double> log_values;  // by batch, never empty
  };
  using Levels = std::map<int64_t, Curve>;
  // Logarithm of what a physical model says of the level that is asked about, at a batch.
  using LogPhysics = std::function<double(int64_t batch)>;

  // Logarithms of measurements at a level: the median of repeated batches. A level that is there is replaced.
  void set(const LevelPlace& place, std::span<const std::pair<int64_t, double>> log_values);

  // log(value / physics) at `batch`, linear in the level and in the logarithm of the batch; beyond the batches of a
  // level, that of its last one. Nothing where the network is unknown, where it has no level on both sides, or where
  // `place` is not about as large as those. without: a level that is taken as not measured.
  std::optional<double> residual(const LevelPlace& place, int64_t batch, const LogPhysics& physics,
                                 std::optional<int64_t> without = std::nullopt) const;

  const std::map<std::string, Levels>& networks() const { return networks_; }

 private:
  std::map<std::string, Levels> networks_;
};

// How much interpolation should count beside a model of the layers, 0 .. 1: the mean of the share's posterior, uniform
// before, when both have told of levels that were withheld and errors of a level are normal with an unknown deviation.
// errors: of each row, by level, of the model and of the interpolation (logarithms). 0 where there are none.
struct LevelErrors {
  std::vector<double> model, interpolation;  // equally long
};
double interpolation_share(std::span<const LevelErrors> levels);

}  // namespace strobe::predict
