// Camera and LiDAR together on the map seen from above (BEVFusion, Liu et al. 2022, arXiv:2205.13542): the cameras'
// features are lifted and splatted, the LiDAR's pillars scattered, both joined by convolutions. Engines run the
// networks; what joins them runs here:
//
//   Work work = detector.make_work();
//   ... pictures into work.pictures (camera after camera, as parts()[0]->input_rule says)
//   detector.lay_out(cameras, work);      // where cameras moved
//   ... parts()[0], a batch of all cameras, writes work.depth and work.context
//   detector.voxelize(points, 5, work);   // -> work.pillars.features(), the input of parts()[1]
//   ... parts()[1] writes work.pillar_features
//   detector.fuse(work);                  // -> work.map, the input of parts()[2]
//   ... parts()[2] writes work.outputs[i]
//   boxes = detector.decode(work);
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/bev_pool.h"
#include "models/box3d.h"
#include "models/centre_head.h"
#include "models/voxel.h"
#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

struct FusionOptions {
  std::filesystem::path weights;  // .safetensors with the tensors of all parts; empty: seeded, trained() is false
  uint64_t seed = 1;
  std::vector<Camera> cameras;  // 1 to 6, with the LiDAR's frame as the vehicle's; pictures are stretched
  int64_t max_pillars = 0;      // 0: the network's own
  float score_threshold = 0.1F;
  int threads = 1;  // of voxelize and fuse
};

// Thread-safe; a Work belongs to one thread.
class FusionDetector {
 public:
  struct Work {
    std::vector<float> pictures;        // cameras x 3 x height x width
    std::vector<float> depth, context;  // of all cameras, the two outputs of parts()[0]
    Pillars pillars;
    std::vector<float> pillar_features;  // channels x 1 x max_pillars
    std::vector<float> map;              // camera channels, then LiDAR channels x rows x columns
    std::vector<std::vector<float>> outputs;
    std::vector<int32_t> drawn;  // cells of the map that pillars are on
    std::vector<float> scratch;
    std::vector<Camera> cameras;  // that `pool` is laid out for; none: those of the detector
    std::optional<BevPool> pool;
  };
  // name: "bevfusion-small". Errors: kNotFound, kUsage (no camera, or one without a picture), those of weights.
  static Result<std::unique_ptr<FusionDetector>> open(const std::string& name, const FusionOptions& options);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& labels() const { return parts_.back()->labels; }
  bool trained() const { return parts_.front()->trained; }  // false: seeded weights, so that its boxes mean nothing
  // The cameras' network (a batch of cameras()), the pillar net and the fuser with its head (batches of one).
  const std::vector<std::shared_ptr<const Graph>>& parts() const { return parts_; }
  int64_t cameras() const { return cameras_; }

  Work make_work() const;
  // From here on the work's pictures are of these cameras, as many as the detector was opened with. Where they stand as
  // before nothing is done, else their rays are laid out anew (milliseconds). Errors: kUsage.
  Result<void> lay_out(std::span<const Camera> cameras, Work& work) const;
  void voxelize(std::span<const float> points, int columns, Work& work) const;
  void fuse(Work& work) const;
  std::vector<Box3d> decode(const Work& work) const;  // best first

 private:
  FusionDetector() = default;
  std::string name_;
  std::vector<std::shared_ptr<const Graph>> parts_;
  int64_t cameras_ = 0, camera_channels_ = 0, lidar_channels_ = 0;
  PillarRule rule_;
  std::vector<Camera> laid_out_;  // cameras of pool_
  LiftRule lift_;
  BevGrid grid_;
  std::optional<BevPool> pool_;
  CentreRule centres_;
  CentreDecoding decoding_;
  int threads_ = 1;
};

}  // namespace strobe::models
