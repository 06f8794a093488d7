#include "tenants/fusion_task.h"

#include <fmt/format.h>

#include <optional>

#include "engines/loader.h"
#include "media/preprocess.h"
#include "media/source.h"
#include "models/fusion_detector.h"
#include "models/monocular3d.h"
#include "pipeline/network_input.h"
#include "tenants/network_run.h"

namespace strobe::tenants {
namespace {

constexpr const char* kFusion = "bevfusion-small";
constexpr const char* kMonocular = "monocular3d-resnet18";

// Boxes of seeded weights mean nothing, and none are given on.
std::vector<Prediction> prediction_of(const std::vector<models::Box3d>& boxes, const std::vector<std::string>& labels,
                                      bool trained, float least_score) {
  std::vector<Prediction> predictions(1);
  if (!trained) return predictions;
  for (const models::Box3d& box : boxes) {
    if (box.score < least_score) continue;
    SpaceBox& one = predictions[0].space_boxes.emplace_back();
    one.label = labels[static_cast<size_t>(box.class_id)];
    one.score = box.score;
    one.pose.translation = {box.x, box.y, box.z};
    one.pose.rotation = sensors::Quaternion::about_z(box.yaw);
    one.length = box.length, one.width = box.width, one.height = box.height;
    one.velocity[0] = box.vx, one.velocity[1] = box.vy;
  }
  return predictions;
}

std::string seeded_note(const std::string& name) {
  return name + " runs on seeded weights: its boxes mean nothing, and none are written";
}

// Where the cameras of a frame's pictures stand, which may differ from frame to frame: a vehicle moves between a sweep
// and its pictures, and calibrations change.
Result<std::vector<models::Camera>> cameras_of(const SensorFrame& frame) {
  std::vector<models::Camera> cameras;
  for (const auto& picture : frame.pictures) {
    if (!picture->camera)
      return unsupported(fmt::format("{}: the camera is not known", picture->channel)).at(frame.token);
    cameras.push_back(*picture->camera);
  }
  return cameras;
}

// Pictures of a frame, decoded and as a network's input.
class Pictures {
 public:
  Result<void> open(const models::Graph& network) {
    const models::Shape& shape = network.input_shape();
    format_ = pipeline::input_format(network.input_rule, static_cast<int>(shape.width), static_cast<int>(shape.height));
    STROBE_ASSIGN(decoder_, media::make_picture_decoder());
    return {};
  }
  Result<void> decode(const SensorFrame& frame, size_t count) {
    if (frame.pictures.size() != count)
      return bad_data(
          fmt::format("{}: {} pictures, the model was laid out for {}", frame.token, frame.pictures.size(), count));
    frames_.resize(count);
    for (size_t i = 0; i < count; ++i) {
      STROBE_ASSIGN(frames_[i], decoder_->decode(frame.pictures[i]->bytes, 0, 0));
    }
    return {};
  }
  Result<void> prepare(float* input) const {
    const size_t floats = size_t{3} * static_cast<size_t>(format_.width) * static_cast<size_t>(format_.height);
    for (size_t i = 0; i < frames_.size(); ++i) STROBE_TRY(media::preprocess(frames_[i], format_, input + i * floats));
    return {};
  }

 private:
  std::unique_ptr<media::PictureDecoder> decoder_;
  media::InputFormat format_;
  std::vector<media::Frame> frames_;
};

class FusionTask : public Task {
 public:
  explicit FusionTask(const TenantSpec& tenant) : tenant_(tenant) {}

  Result<void> open(const SensorFrame& sample) {
    models::FusionOptions options;
    options.weights = tenant_.weights;
    options.threads = tenant_.threads;
    STROBE_ASSIGN(options.cameras, cameras_of(sample));
    STROBE_ASSIGN(detector_, models::FusionDetector::open(tenant_.model, options));
    STROBE_ASSIGN(engine_, engines::open_engine(tenant_.engine));
    work_.emplace(detector_->make_work());
    const auto& parts = detector_->parts();
    STROBE_ASSIGN(parts_.emplace_back(), NetworkRun::open(*engine_, parts[0], tenant_, detector_->cameras()));
    for (size_t i = 1; i < parts.size(); ++i) {
      STROBE_ASSIGN(parts_.emplace_back(), NetworkRun::open(*engine_, parts[i], tenant_));
    }
    parts_[0]->read_from(0, work_->pictures.data());
    parts_[0]->write_to(0, work_->depth.data());
    parts_[0]->write_to(1, work_->context.data());
    parts_[1]->read_from(0, work_->pillars.features().data());
    parts_[1]->write_to(0, work_->pillar_features.data());
    parts_[2]->read_from(0, work_->map.data());
    for (size_t i = 0; i < work_->outputs.size(); ++i) parts_[2]->write_to(i, work_->outputs[i].data());
    STROBE_TRY(pictures_.open(*parts[0]));
    for (const auto& part : parts_) {
      pieces_.insert(pieces_.end(), part->pieces().begin(), part->pieces().end());
      STROBE_TRY(part->run_alone());
    }
    return {};
  }

  std::string model_type() const override { return "multi-modal"; }
  std::string model_name() const override { return detector_->name(); }
  const std::vector<WorkPiece>& pieces() const override { return pieces_; }
  std::vector<std::string> notes() const override {
    return detector_->trained() ? std::vector<std::string>{} : std::vector{seeded_note(detector_->name())};
  }
  Result<void> decode(std::span<const SensorFrame> batch) override {
    const SensorFrame& frame = batch.front();
    if (!frame.points) return internal_error("a frame without a sweep");
    points_ = frame.points;
    STROBE_TRY(pictures_.decode(frame, static_cast<size_t>(detector_->cameras())));
    STROBE_ASSIGN(cameras_, cameras_of(frame));
    return {};
  }
  Result<void> prepare() override {
    STROBE_TRY(pictures_.prepare(work_->pictures.data()));
    STROBE_TRY(detector_->lay_out(cameras_, *work_));
    detector_->voxelize(points_->values, points_->columns, *work_);
    return {};
  }
  Result<void> infer(DeviceTurns& turns) override {
    size_t first = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (i == 2) detector_->fuse(*work_);
      STROBE_TRY(parts_[i]->run(turns, first));
      first += parts_[i]->pieces().size();
    }
    return {};
  }
  Result<std::vector<Prediction>> finish() override {
    return prediction_of(detector_->decode(*work_), detector_->labels(), detector_->trained(), tenant_.score_threshold);
  }

 private:
  TenantSpec tenant_;
  std::shared_ptr<engines::Engine> engine_;
  std::unique_ptr<models::FusionDetector> detector_;
  std::optional<models::FusionDetector::Work> work_;
  std::vector<std::unique_ptr<NetworkRun>> parts_;
  std::vector<WorkPiece> pieces_;
  std::shared_ptr<const PointCloud> points_;
  std::vector<models::Camera> cameras_;  // of the frame
  Pictures pictures_;
};

class MonocularTask : public Task {
 public:
  explicit MonocularTask(const TenantSpec& tenant) : tenant_(tenant) {}

  Result<void> open(const SensorFrame& sample) {
    if (sample.pictures.empty() || !sample.pictures.front()->camera)
      return unsupported("the camera is not known, which boxes in space need; nuScenes tells it");
    models::MonocularOptions options;
    options.weights = tenant_.weights;
    STROBE_ASSIGN(detector_, models::Monocular3d::open(tenant_.model, options));
    STROBE_ASSIGN(engine_, engines::open_engine(tenant_.engine));
    work_.emplace(detector_->make_work());
    STROBE_ASSIGN(network_, NetworkRun::open(*engine_, detector_->part(), tenant_));
    network_->read_from(0, work_->picture.data());
    network_->write_to(0, work_->output.data());
    STROBE_TRY(pictures_.open(*detector_->part()));
    return network_->run_alone();
  }
  std::string model_type() const override { return "image"; }
  std::string model_name() const override { return detector_->name(); }
  const std::vector<WorkPiece>& pieces() const override { return network_->pieces(); }
  std::vector<std::string> notes() const override {
    return detector_->trained() ? std::vector<std::string>{} : std::vector{seeded_note(detector_->name())};
  }
  Result<void> decode(std::span<const SensorFrame> batch) override {
    STROBE_TRY(pictures_.decode(batch.front(), 1));
    STROBE_ASSIGN(const std::vector<models::Camera> cameras, cameras_of(batch.front()));
    camera_ = cameras.front();
    return {};
  }
  Result<void> prepare() override { return pictures_.prepare(work_->picture.data()); }
  Result<void> infer(DeviceTurns& turns) override { return network_->run(turns, 0); }
  Result<std::vector<Prediction>> finish() override {
    return prediction_of(detector_->decode(*work_, camera_), detector_->labels(), detector_->trained(),
                         tenant_.score_threshold);
  }

 private:
  TenantSpec tenant_;
  std::shared_ptr<engines::Engine> engine_;
  std::unique_ptr<models::Monocular3d> detector_;
  std::optional<models::Monocular3d::Work> work_;
  std::unique_ptr<NetworkRun> network_;
  models::Camera camera_;  // of the frame
  Pictures pictures_;
};

}  // namespace

bool is_monocular_model(const std::string& model) {
  return model == kMonocular;
}

std::vector<std::string> fusion_model_names() {
  return {kFusion, kMonocular};
}

bool is_fusion_model(const std::string& model) {
  return model == kFusion || is_monocular_model(model);
}

Result<std::unique_ptr<Task>> open_fusion_task(const TenantSpec& tenant, const SensorFrame& sample) {
  if (is_monocular_model(tenant.model)) {
    auto task = std::make_unique<MonocularTask>(tenant);
    STROBE_TRY(task->open(sample));
    return std::unique_ptr<Task>(std::move(task));
  }
  auto task = std::make_unique<FusionTask>(tenant);
  STROBE_TRY(task->open(sample));
  return std::unique_ptr<Task>(std::move(task));
}

}  // namespace strobe::tenants
