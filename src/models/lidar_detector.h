// LiDAR detectors: PointPillars (Lang et al. 2019) and CenterPoint on pillars (Yin et al. 2021). Engines run the
// networks; what joins them runs here:
//
//   Work work = detector.make_work();
//   detector.voxelize(points, 4, work);    // -> work.pillars.features(), the input of parts()[0]
//   ... parts()[0] writes work.pillar_features
//   detector.scatter(work);                // -> work.canvas, the input of parts()[1]
//   ... parts()[1] writes work.outputs[i]
//   boxes = detector.decode(work);
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/box3d.h"
#include "models/centre_head.h"
#include "models/pillar_anchors.h"
#include "models/voxel.h"
#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

struct LidarOptions {
  std::filesystem::path weights;  // .safetensors with the tensors of both parts; empty: seeded, trained() is false
  uint64_t seed = 1;
  int64_t max_pillars = 0;    // 0: the network's own
  float score_threshold = 0;  // 0: the network's own
  float nms_iou = 0;          // of detectors with anchors; 0: the network's own
  int threads = 1;            // of voxelize and scatter
};

// Thread-safe; a Work belongs to one thread.
class LidarDetector {
 public:
  // Buffers of one frame at a time, reused from frame to frame.
  struct Work {
    Pillars pillars;
    std::vector<float> pillar_features;       // channels x 1 x max_pillars
    std::vector<float> canvas;                // channels x rows x columns
    std::vector<std::vector<float>> outputs;  // one of each output of parts()[1]
    std::vector<int32_t> drawn;               // cells of the canvas that are not zero
    std::vector<Box3d> candidates;
  };

  // name: one of lidar_detector_names(). Errors: kNotFound (lists the names), kUsage (an option that cannot be), those
  // of weights.
  static Result<std::unique_ptr<LidarDetector>> open(const std::string& name, const LidarOptions& options);

  const std::string& name() const { return name_; }
  const std::vector<std::string>& labels() const { return labels_; }
  // false: seeded weights, so that its boxes mean nothing.
  bool trained() const { return parts_.front()->trained; }
  // The pillar net, then the network behind the scatter; each takes a batch of one.
  const std::vector<std::shared_ptr<const Graph>>& parts() const { return parts_; }
  const PillarRule& pillars() const { return rule_; }
  // What the head's boxes refer to; null: a head of the other kind.
  const AnchorRule* anchors() const { return anchors_ ? &*anchors_ : nullptr; }
  const CentreRule* centres() const { return centres_ ? &*centres_ : nullptr; }

  Work make_work() const;
  // points: `columns` (at least 4) numbers each: x, y, z, intensity, ...
  void voxelize(std::span<const float> points, int columns, Work& work) const;
  void scatter(Work& work) const;
  std::vector<Box3d> decode(Work& work) const;  // best first

 private:
  LidarDetector() = default;
  std::string name_;
  std::vector<std::string> labels_;
  std::vector<std::shared_ptr<const Graph>> parts_;
  PillarRule rule_;
  std::optional<AnchorRule> anchors_;
  std::optional<CentreRule> centres_;
  AnchorDecoding anchor_decoding_;
  CentreDecoding centre_decoding_;
  int threads_ = 1;
};

std::vector<std::string> lidar_detector_names();
// The ten classes of nuScenes's detection task, in CenterPoint's order; their six heads and the radii of its circles.
std::vector<std::string> nuscenes_labels();
std::vector<CentreTask> nuscenes_tasks();
std::vector<float> nuscenes_radius();

}  // namespace strobe::models
