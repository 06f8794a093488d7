#include "pipeline/train_run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <mutex>
#include <numbers>
#include <random>

#include "media/filter.h"
#include "media/preprocess.h"
#include "models/checkpoint.h"
#include "pipeline/network_input.h"
#include "strobe/record/annotate.h"

namespace strobe::pipeline {
namespace {

// Resident memory of this process, bytes; 0 where it cannot be read.
int64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  int64_t size = 0, resident = 0;
  file >> size >> resident;
  return resident * ::sysconf(_SC_PAGESIZE);
}

// The part of a box that lies in the picture; without any, its sides are 0.
void clip(engines::TargetBox& box, float width, float height) {
  const float left = std::max(box.x - box.width / 2, 0.0F), right = std::min(box.x + box.width / 2, width);
  const float top = std::max(box.y - box.height / 2, 0.0F), bottom = std::min(box.y + box.height / 2, height);
  box.x = (left + right) / 2;
  box.y = (top + bottom) / 2;
  box.width = std::max(right - left, 0.0F);
  box.height = std::max(bottom - top, 0.0F);
}

class TrainRun {
 public:
  TrainRun(engines::Engine& engine, std::shared_ptr<const models::Graph> graph, const TrainRunOptions& options)
      : engine_(engine), graph_(std::move(graph)), options_(options), random_(options.data.seed) {}

  Result<void> open() {
    STROBE_ASSIGN(data_, open_training_set(*graph_, options_.data));
    result_.source = data_->source();
    result_.notes = data_->notes();
    if (!options_.prep_filter.empty()) {
      STROBE_ASSIGN(filter_, media::open_filter(options_.prep_filter));
    }
    std::optional<models::Checkpoint> resumed;
    if (!options_.resume.empty()) {
      STROBE_ASSIGN(resumed, models::read_checkpoint(*graph_, options_.resume));
      graph_ = std::make_shared<const models::Graph>(resumed->graph);
    }
    STROBE_ASSIGN(trainer_, engine_.train(graph_, options_.train));
    if (resumed) {
      if (auto set = trainer_->set_optimizer_state(resumed->optimizer); !set)
        return std::move(set).error().at(options_.resume.string());
      result_.first_step = resumed->step;
    }
    format_ = input_format(graph_->input_rule, static_cast<int>(graph_->input_shape().width),
                           static_cast<int>(graph_->input_shape().height));
    const int64_t items = data_->items();
    if (items > 0 && options_.train.batch > items)
      return usage_error(
          fmt::format("a batch of {}: there are only {} pictures to train on", options_.train.batch, items));
    if (options_.max_steps > 0) {
      steps_ = options_.max_steps;
    } else if (items > 0) {
      const double wanted = options_.epochs * static_cast<double>(items) / static_cast<double>(options_.train.batch);
      steps_ = std::max<int64_t>(1, std::llround(std::ceil(wanted)));
    }
    if (steps_ > 0 && steps_ <= result_.first_step)
      return usage_error(fmt::format("{}: {} steps are done already, {} are asked for", options_.resume.string(),
                                     result_.first_step, steps_));
    epoch_ = items > 0 ? result_.first_step * options_.train.batch / items : 0;
    return data_->begin_epoch(epoch_);
  }

  void run() {
    RunnerOptions options;
    options.queue_capacity = options_.queue_capacity;
    options.batch_size = options_.train.batch;
    options.max_frames = (steps_ - result_.first_step) * options_.train.batch;
    if (steps_ == 0) options.max_frames = 0;
    options.stop = options_.stop;
    record_facts();
    const auto read = [this] { return read_frame(); };
    const auto prepare = [this](Batch& batch) {
      batch.input.assign(static_cast<size_t>(options_.train.batch * graph_->input_shape().elements()), 0.0F);
    };
    const std::vector<Stage> stages = {
        {.name = "prep", .work = [this](Batch& batch, size_t i, int) { return preprocess(batch, i); }},
        {.name = "train", .per_batch = true, .work = [this](Batch& batch, size_t, int) { return step(batch); }}};
    result_.run = run_pipeline("read", read, prepare, stages, {}, options);
    auto trained = trainer_->graph();
    if (trained) {
      result_.graph = std::move(*trained);
      if (!data_->class_names().empty()) result_.graph.labels = data_->class_names();
    } else if (result_.run.ended) {
      result_.run.ended = std::move(trained).error();
    }
    result_.held_out = data_->held_out();
    result_.damaged = data_->damaged();
    if (result_.diverged || result_.loss.empty()) return;
    auto kept = keep_checkpoint();
    result_.has_checkpoint = kept && !options_.checkpoint.empty();
    if (!kept && result_.run.ended) result_.run.ended = std::move(kept).error();
  }

  TrainRunResult take_result() { return std::move(result_); }

 private:
  // What travels beside a frame.
  struct Lesson {
    engines::Target target;
    bool mirrored = false;
    float gain = 1, offset = 0;  // of the network's input
  };

  void record_facts() const {
    record::fact("pipeline.stages", "read,prep,train");
    record::fact("pipeline.sessions", "1");
    record::fact("pipeline.batch", std::to_string(options_.train.batch));
    record::fact("pipeline.queue_capacity", std::to_string(options_.queue_capacity));
    record::fact("input.kind", result_.source.kind);
    record::fact("input.size", fmt::format("{}x{}", result_.source.width, result_.source.height));
    record::fact("train.items", std::to_string(data_->items()));
    record::fact("train.optimizer", options_.train.optimizer == engines::Optimizer::kAdamW ? "adamw" : "sgd");
    record::fact("train.learning_rate", fmt::format("{:g}", options_.learning_rate));
    if (options_.train.device != "cpu") record::fact("engine.device", options_.train.device);
    record::fact("train.precision", options_.train.mixed_precision ? "bf16 mixed" : "f32");
    if (!options_.prep_filter.empty()) record::fact("prep.filter", options_.prep_filter);
  }

  Result<std::optional<media::Frame>> read_frame() {
    STROBE_ASSIGN(std::optional<TrainingItem> item, data_->next());
    if (!item && !result_.source.live && steps_ > 0) {
      STROBE_TRY(data_->begin_epoch(++epoch_));
      STROBE_ASSIGN(item, data_->next());
    }
    if (!item) return std::optional<media::Frame>();
    Lesson lesson{.target = std::move(item->target)};
    if (options_.augment) {
      lesson.mirrored = (random_() & 1) != 0;
      lesson.gain = std::uniform_real_distribution<float>(0.8F, 1.25F)(random_);
      lesson.offset = std::uniform_real_distribution<float>(-0.1F, 0.1F)(random_);
    }
    const std::lock_guard lock(lessons_mutex_);
    lessons_.emplace(frames_read_++, std::move(lesson));
    return std::optional<media::Frame>(std::move(item->frame));
  }

  Lesson& lesson_of(const Batch& batch, size_t index) {
    const std::lock_guard lock(lessons_mutex_);
    return lessons_.at(batch.frames[index].frame.index);  // a map's elements stay where they are
  }

  Result<void> preprocess(Batch& batch, size_t index) {
    const media::Frame& frame = batch.frames[index].frame;
    const models::Shape& shape = graph_->input_shape();
    float* const input = batch.input.data() + static_cast<int64_t>(index) * shape.elements();
    if (filter_) {
      STROBE_ASSIGN(const media::Frame filtered, filter_->apply(frame));
      STROBE_TRY(media::preprocess(filtered, format_, input));
    } else {
      STROBE_TRY(media::preprocess(frame, format_, input));
    }
    Lesson& lesson = lesson_of(batch, index);
    const media::Placement placed = media::place(frame.width, frame.height, format_);
    const float across = placed.width / static_cast<float>(frame.width);
    const float down = placed.height / static_cast<float>(frame.height);
    for (engines::TargetBox& box : lesson.target.boxes) {
      box.x = placed.x + box.x * across;
      box.y = placed.y + box.y * down;
      box.width *= across;
      box.height *= down;
      clip(box, static_cast<float>(shape.width), static_cast<float>(shape.height));
      if (lesson.mirrored) box.x = static_cast<float>(shape.width) - box.x;
    }
    std::erase_if(lesson.target.boxes,
                  [](const engines::TargetBox& box) { return !(box.width > 0 && box.height > 0); });
    if (lesson.mirrored) {
      for (int64_t row = 0; row < shape.channels * shape.height; ++row)
        std::reverse(input + row * shape.width, input + (row + 1) * shape.width);
    }
    for (int64_t i = 0; i < shape.elements(); ++i) input[i] = input[i] * lesson.gain + lesson.offset;
    return {};
  }

  Result<void> step(Batch& batch) {
    static const record::Name kForward("forward"), kBackward("backward"), kUpdate("update"), kLoss("loss"),
        kRate("learning_rate"), kRss("rss_bytes");
    std::vector<engines::Target> targets;
    {
      const std::lock_guard lock(lessons_mutex_);
      for (const FrameWork& item : batch.frames)
        targets.push_back(std::move(lessons_.extract(item.frame.index).mapped().target));
    }
    const size_t values = targets.size() * static_cast<size_t>(graph_->input_shape().elements());
    const int64_t number = result_.first_step + static_cast<int64_t>(result_.loss.size());
    double loss = 0;
    {
      const record::Range range(kForward);
      auto forward = trainer_->forward(std::span<const float>(batch.input.data(), values), targets);
      if (!forward) {
        result_.diverged = forward.error().kind() == ErrorKind::kEngine;
        return std::move(forward).error();
      }
      loss = *forward;
    }
    {
      const record::Range range(kBackward);
      STROBE_TRY(trainer_->backward());
    }
    const double rate = learning_rate(number);
    {
      const record::Range range(kUpdate);
      STROBE_TRY(trainer_->update(rate));
    }
    result_.loss.push_back(loss);
    record::counter(kLoss, loss);
    record::counter(kRate, rate);
    record::counter(kRss, resident_bytes());
    if (options_.on_progress) options_.on_progress(number + 1, steps_, loss);
    if (options_.checkpoint_every > 0 && (number + 1) % options_.checkpoint_every == 0) return keep_checkpoint();
    return {};
  }

  double learning_rate(int64_t number) const {
    constexpr double kLeast = 0.02;  // of the largest, at the end
    if (steps_ == 0) return options_.learning_rate;
    const double rise = std::max(1.0, std::ceil(static_cast<double>(steps_) / 20));
    const double done = static_cast<double>(number);
    if (done < rise) return options_.learning_rate * (done + 1) / rise;
    const double part = (done - rise) / std::max(1.0, static_cast<double>(steps_) - rise);
    return options_.learning_rate * (kLeast + (1 - kLeast) * 0.5 * (1 + std::cos(std::numbers::pi * part)));
  }

  Result<void> keep_checkpoint() {
    if (options_.checkpoint.empty()) return {};
    STROBE_RANGE("checkpoint");
    models::Checkpoint checkpoint;
    STROBE_ASSIGN(checkpoint.graph, trainer_->graph());
    STROBE_ASSIGN(checkpoint.optimizer, trainer_->optimizer_state());
    checkpoint.step = result_.first_step + static_cast<int64_t>(result_.loss.size());
    return models::write_checkpoint(checkpoint, options_.checkpoint);
  }

  engines::Engine& engine_;
  std::shared_ptr<const models::Graph> graph_;
  const TrainRunOptions& options_;
  std::unique_ptr<TrainingSet> data_;             // used by the stage read
  std::unique_ptr<media::PictureFilter> filter_;  // by prep
  std::unique_ptr<engines::Trainer> trainer_;     // by train
  media::InputFormat format_;
  int64_t steps_ = 0;  // in all, those before a checkpoint included; 0: until the source ends
  int64_t epoch_ = 0, frames_read_ = 0;
  std::mt19937_64 random_;
  std::mutex lessons_mutex_;
  std::map<int64_t, Lesson> lessons_;  // by frame, of those under way
  TrainRunResult result_;
};

}  // namespace

Result<TrainRunResult> run_training(engines::Engine& engine, std::shared_ptr<const models::Graph> graph,
                                    const TrainRunOptions& options) {
  TrainRun run(engine, std::move(graph), options);
  STROBE_TRY(run.open());
  if (options.on_start) options.on_start();
  run.run();
  return run.take_result();
}

}  // namespace strobe::pipeline
