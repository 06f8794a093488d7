#include "tenants/lidar_task.h"

#include <algorithm>
#include <numbers>

#include "engines/loader.h"
#include "models/lidar_detector.h"
#include "tenants/network_run.h"

namespace strobe::tenants {
namespace {

constexpr size_t kKittiClasses = 3;

class LidarTask : public Task {
 public:
  explicit LidarTask(const TenantSpec& tenant) : tenant_(tenant) {}

  Result<void> open() {
    models::LidarOptions options;
    options.weights = tenant_.weights;
    options.threads = tenant_.threads;
    STROBE_ASSIGN(detector_, models::LidarDetector::open(tenant_.model, options));
    STROBE_ASSIGN(engine_, engines::open_engine(tenant_.engine));
    work_.emplace(detector_->make_work());
    const auto& parts = detector_->parts();
    STROBE_ASSIGN(pillar_net_, NetworkRun::open(*engine_, parts[0], tenant_));
    STROBE_ASSIGN(head_, NetworkRun::open(*engine_, parts[1], tenant_));
    pillar_net_->read_from(0, work_->pillars.features().data());
    pillar_net_->write_to(0, work_->pillar_features.data());
    head_->read_from(0, work_->canvas.data());
    for (size_t i = 0; i < work_->outputs.size(); ++i) head_->write_to(i, work_->outputs[i].data());
    pieces_ = pillar_net_->pieces();
    pieces_.insert(pieces_.end(), head_->pieces().begin(), head_->pieces().end());
    for (int i = 0; i < 2; ++i) {
      STROBE_TRY(pillar_net_->run_alone());
      STROBE_TRY(head_->run_alone());
    }
    return {};
  }

  std::string model_type() const override { return "lidar"; }
  std::string model_name() const override { return detector_->name(); }
  const std::vector<WorkPiece>& pieces() const override { return pieces_; }
  std::vector<std::string> notes() const override {
    if (detector_->trained()) return {};
    return {detector_->name() + " runs on seeded weights: its boxes mean nothing, and none are written"};
  }

  // Into the detector's frame and scale of intensity: x forward, y left where it knows KITTI's classes, else as
  // nuScenes has it.
  Result<void> decode(std::span<const SensorFrame> batch) override {
    const SensorFrame& frame = batch.front();
    if (!frame.points) return internal_error("a frame without a sweep");
    const PointCloud& cloud = *frame.points;
    const auto columns = static_cast<size_t>(cloud.columns);
    points_.resize(4 * cloud.count());
    turns_ = cloud.x_is_right && detector_->labels().size() == kKittiClasses;
    // What the network takes for full reflectivity is 1 / intensity_scale.
    const float scale = 1 / (cloud.full_intensity * detector_->pillars().intensity_scale);
    for (size_t i = 0; i < cloud.count(); ++i) {
      const float* from = cloud.values.data() + i * columns;
      float* to = points_.data() + 4 * i;
      to[0] = turns_ ? from[1] : from[0];
      to[1] = turns_ ? -from[0] : from[1];
      to[2] = from[2];
      to[3] = from[3] * scale;
    }
    return {};
  }

  Result<void> prepare() override {
    detector_->voxelize(points_, 4, *work_);
    return {};
  }

  Result<void> infer(DeviceTurns& turns) override {
    STROBE_TRY(pillar_net_->run(turns, 0));
    detector_->scatter(*work_);
    return head_->run(turns, pillar_net_->pieces().size());
  }

  Result<std::vector<Prediction>> finish() override {
    std::vector<Prediction> predictions(1);
    const std::vector<models::Box3d> boxes = detector_->decode(*work_);  // costs the same with seeded weights
    if (!detector_->trained()) return predictions;
    for (const models::Box3d& box : boxes) {
      if (box.score < tenant_.score_threshold) continue;
      SpaceBox one;
      one.label = detector_->labels()[static_cast<size_t>(box.class_id)];
      one.score = box.score;
      one.pose.translation = turns_ ? sensors::Vector3{-box.y, box.x, box.z} : sensors::Vector3{box.x, box.y, box.z};
      one.pose.rotation = sensors::Quaternion::about_z(box.yaw + (turns_ ? std::numbers::pi / 2 : 0));
      one.length = box.length, one.width = box.width, one.height = box.height;
      one.velocity[0] = turns_ ? -box.vy : box.vx;
      one.velocity[1] = turns_ ? box.vx : box.vy;
      predictions[0].space_boxes.push_back(std::move(one));
    }
    return predictions;
  }

 private:
  TenantSpec tenant_;
  std::shared_ptr<engines::Engine> engine_;
  std::unique_ptr<models::LidarDetector> detector_;
  std::optional<models::LidarDetector::Work> work_;
  std::unique_ptr<NetworkRun> pillar_net_, head_;
  std::vector<WorkPiece> pieces_;
  std::vector<float> points_;
  bool turns_ = false;
};

}  // namespace

bool is_lidar_model(const std::string& model) {
  const auto names = models::lidar_detector_names();
  return std::find(names.begin(), names.end(), model) != names.end();
}

Result<std::unique_ptr<Task>> open_lidar_task(const TenantSpec& tenant) {
  auto task = std::make_unique<LidarTask>(tenant);
  STROBE_TRY(task->open());
  return std::unique_ptr<Task>(std::move(task));
}

}  // namespace strobe::tenants
