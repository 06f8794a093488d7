// Boxes in space from one picture: a ResNet-18 with a centre head (as SMOKE, Liu et al. 2020, arXiv:2002.10111, and
// CenterNet, Zhou et al. 2019). An engine runs part() on a picture; decode() makes boxes of its output.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "models/bev_camera.h"
#include "models/box3d.h"
#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

// Channels of the output, a heat map of logits a class behind them: offset x, y of the projected centre in its cell;
// depth, (z - 28.01 m) / 16.32 m; logarithms of length, width, height; sine, cosine of the heading as the camera sees
// it (KITTI's alpha).
inline constexpr int64_t kMonocularRegression = 8;
inline constexpr float kMeanDepth = 28.01F, kDepthDeviation = 16.32F;

struct MonocularOptions {
  std::filesystem::path weights;  // .safetensors; empty: seeded, trained() is false
  int64_t width = 0, height = 0;  // of the network's input, multiples of 32; 0: 704 x 256
  float score_threshold = 0.25F;
  uint64_t seed = 1;
};

class Monocular3d {
 public:
  struct Work {
    std::vector<float> picture;  // 3 x height x width, as part()->input_rule says
    std::vector<float> output;   // channels x height / 4 x width / 4
  };
  // name: "monocular3d-resnet18". Errors: kNotFound, kUsage (sizes), those of weights.
  static Result<std::unique_ptr<Monocular3d>> open(const std::string& name, const MonocularOptions& options);

  const std::string& name() const { return part_->name; }
  const std::vector<std::string>& labels() const { return part_->labels; }
  bool trained() const { return part_->trained; }  // false: seeded weights, so that its boxes mean nothing
  const std::shared_ptr<const Graph>& part() const { return part_; }
  Work make_work() const;
  // camera: of the picture before it was stretched to the network's input. Boxes in the vehicle's frame, best first.
  std::vector<Box3d> decode(const Work& work, const Camera& camera) const;

 private:
  Monocular3d() = default;
  std::shared_ptr<const Graph> part_;
  float score_threshold_ = 0;
};

}  // namespace strobe::models
