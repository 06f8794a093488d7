#include "tenants/image_task.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "engines/loader.h"
#include "media/preprocess.h"
#include "media/source.h"
#include "models/exported_yolo.h"
#include "models/model.h"
#include "models/yolo.h"
#include "models/zoo.h"
#include "pipeline/network_input.h"
#include "tenants/network_run.h"

namespace strobe::tenants {
namespace {

class ImageTask : public Task {
 public:
  explicit ImageTask(const TenantSpec& tenant) : tenant_(tenant) {}

  Result<void> open() {
    STROBE_ASSIGN(engine_, engines::open_engine(tenant_.engine));
    const std::string extension = std::filesystem::path(tenant_.model).extension().string();
    const auto formats = engine_->file_formats();
    engines::ModelSource model = std::filesystem::path(tenant_.model);
    if (std::find(formats.begin(), formats.end(), extension) == formats.end()) {
      models::OpenOptions options;
      options.weights = tenant_.weights;
      STROBE_ASSIGN(models::Graph graph, models::open_graph(tenant_.model, options));
      graph_ = std::make_shared<const models::Graph>(std::move(graph));
      model = graph_;
    }
    STROBE_ASSIGN(network_, NetworkRun::open(*engine_, model, tenant_, tenant_.batch));
    images_.resize(static_cast<size_t>(tenant_.batch));
    STROBE_TRY(choose_decoder());
    // Frames of videos and synthetic sources come decoded, where there is no FFmpeg, too.
    if (tenant_.source.kind != SourceSpec::Kind::kMedia) {
      STROBE_ASSIGN(pictures_, media::make_picture_decoder());
    }
    for (int i = 0; i < 2; ++i) STROBE_TRY(network_->run_alone());
    return {};
  }

  std::string model_type() const override { return "image"; }
  std::string model_name() const override {
    return graph_ ? graph_->name : std::filesystem::path(tenant_.model).stem().string();
  }
  const std::vector<WorkPiece>& pieces() const override { return network_->pieces(); }
  std::vector<std::string> notes() const override { return notes_; }

  Result<void> decode(std::span<const SensorFrame> batch) override {
    // The last batch may have less: the rest of the input stays as it is, and its outputs are nobody's.
    given_ = std::min(batch.size(), images_.size());
    for (size_t i = 0; i < given_; ++i) {
      const SensorFrame& frame = batch[i];
      if (frame.video) {
        STROBE_ASSIGN(images_[i], frame.video->next());
        continue;
      }
      if (frame.pictures.empty()) return internal_error("a frame without a picture");
      if (!pictures_) {
        STROBE_ASSIGN(pictures_, media::make_picture_decoder());
      }
      STROBE_ASSIGN(images_[i], pictures_->decode(frame.pictures.front()->bytes, 0, 0));
    }
    return {};
  }

  Result<void> prepare() override {
    const size_t stride = network_->input().size() / images_.size();
    for (size_t i = 0; i < given_; ++i)
      STROBE_TRY(media::preprocess(images_[i], format_, network_->input().data() + i * stride));
    return {};
  }

  Result<void> infer(DeviceTurns& turns) override { return network_->run(turns, 0); }

  Result<std::vector<Prediction>> finish() override {
    std::vector<Prediction> predictions(given_);
    if (!decoder_ || (graph_ && !graph_->trained)) return predictions;
    for (size_t i = 0; i < given_; ++i) {
      std::vector<const float*> outputs;
      for (const auto& output : network_->outputs())
        outputs.push_back(output.data() + i * (output.size() / images_.size()));
      const media::Frame& image = images_[i];
      const media::Placement placed = media::place(image.width, image.height, format_);
      for (const models::Detection& box :
           decoder_->decode(outputs, {placed.x, placed.y, placed.width, placed.height, image.width, image.height}))
        predictions[i].picture_boxes.push_back({label(box.class_id), box.score, box.x, box.y, box.width, box.height});
    }
    return predictions;
  }

 private:
  Result<void> choose_decoder() {
    const auto& shape = network_->input_shape();
    if (shape.size() != 4 || shape[0] != tenant_.batch || shape[1] != 3)
      return unsupported(fmt::format("{}: its input is not {} x 3 x height x width", tenant_.model, tenant_.batch));
    const models::DetectOptions detect{.score_threshold = tenant_.score_threshold};
    models::InputRule rule;
    if (graph_) {
      rule = graph_->input_rule;
      labels_ = graph_->labels;
      if (auto decoder = models::YoloDecoder::create(*graph_, detect))
        decoder_ = std::make_unique<models::YoloDecoder>(std::move(*decoder));
      if (!graph_->trained)
        notes_.push_back(graph_->name + " runs on seeded weights: its boxes mean nothing, and none are written");
    } else if (auto decoder = models::ExportedYoloDecoder::create(shapes_of_one(), shape[2], shape[3], detect)) {
      rule.fit = models::InputRule::Fit::kLetterbox;
      if ((*decoder)->classes() == 80) labels_ = models::coco_names();
      decoder_ = std::move(*decoder);
    }
    format_ = pipeline::input_format(rule, static_cast<int>(shape[3]), static_cast<int>(shape[2]));
    for (const auto& output : network_->output_shapes())
      if (decoder_ && (output.empty() || output[0] != tenant_.batch))
        return unsupported(
            fmt::format("{}: an output has no extent of its own for a batch of {}", tenant_.model, tenant_.batch));
    return {};
  }

  // Of a picture of the batch; a file's network may have its outputs without one.
  std::vector<std::vector<int64_t>> shapes_of_one() const {
    auto shapes = network_->output_shapes();
    for (auto& shape : shapes)
      if (!shape.empty() && shape[0] == tenant_.batch) shape[0] = 1;
    return shapes;
  }

  std::string label(int class_id) const {
    const auto index = static_cast<size_t>(class_id);
    return index < labels_.size() ? labels_[index] : "class " + std::to_string(class_id);
  }

  TenantSpec tenant_;
  std::shared_ptr<engines::Engine> engine_;
  std::shared_ptr<const models::Graph> graph_;
  std::unique_ptr<NetworkRun> network_;
  std::unique_ptr<models::BoxDecoder> decoder_;
  std::unique_ptr<media::PictureDecoder> pictures_;
  media::InputFormat format_;
  std::vector<media::Frame> images_;  // of the batch
  size_t given_ = 0;                  // of them are pictures of the frame that is worked on
  std::vector<std::string> labels_, notes_;
};

}  // namespace

Result<std::unique_ptr<Task>> open_image_task(const TenantSpec& tenant) {
  auto task = std::make_unique<ImageTask>(tenant);
  STROBE_TRY(task->open());
  return std::unique_ptr<Task>(std::move(task));
}

}  // namespace strobe::tenants
