#include "measure/network_step.h"

#include <random>
#include <vector>

#include "engines/request.h"
#include "models/model.h"
#include "models/prune.h"

namespace strobe::measure {

namespace {

// So small that the weights stay as they are: a step costs the same whatever it learns, and the loss stays finite.
constexpr double kLearningRate = 1e-9;

std::vector<float> random_values(int64_t count) {
  std::vector<float> values(static_cast<size_t>(count));
  std::minstd_rand random(1);
  constexpr float kScale = 2.0F / static_cast<float>(std::minstd_rand::max());
  for (float& value : values) value = static_cast<float>(random()) * kScale - 1;
  return values;
}

class TrainingStep : public NetworkStep {
 public:
  TrainingStep(std::unique_ptr<engines::Trainer> trainer, const models::Graph& graph, int64_t batch)
      : trainer_(std::move(trainer)), input_(random_values(batch * graph.input_shape().elements())) {
    const models::Shape& shape = graph.input_shape();
    engines::Target target;
    target.class_id = 0;
    // A detector learns one box, in the middle of the picture.
    const auto width = static_cast<float>(shape.width), height = static_cast<float>(shape.height);
    target.boxes = {{0, width / 2, height / 2, width / 4, height / 4}};
    targets_.assign(static_cast<size_t>(batch), target);
  }

  Result<void> run() override {
    STROBE_TRY(trainer_->forward(input_, targets_));
    STROBE_TRY(trainer_->backward());
    return trainer_->update(kLearningRate);
  }

 private:
  std::unique_ptr<engines::Trainer> trainer_;
  std::vector<float> input_;
  std::vector<engines::Target> targets_;
};

class InferenceStep : public NetworkStep {
 public:
  InferenceStep(std::unique_ptr<engines::Network> network, std::unique_ptr<engines::Session> session)
      : network_(std::move(network)), session_(std::move(session)) {
    for (const engines::TensorInfo& info : network_->inputs()) inputs_.push_back(random_values(info.elements()));
    for (const engines::TensorInfo& info : network_->outputs())
      outputs_.emplace_back(static_cast<size_t>(info.elements()));
    for (const auto& input : inputs_) input_pointers_.push_back(input.data());
    for (auto& output : outputs_) output_pointers_.push_back(output.data());
  }

  Result<void> run() override { return session_->run(input_pointers_, output_pointers_); }

 private:
  std::unique_ptr<engines::Network> network_;
  std::unique_ptr<engines::Session> session_;
  std::vector<std::vector<float>> inputs_, outputs_;
  std::vector<const float*> input_pointers_;
  std::vector<float*> output_pointers_;
};

}  // namespace

Result<models::Graph> open_at_level(const NetworkChoice& choice, int level, const ProfileConfig& config) {
  models::OpenOptions options;
  options.width = config.width;
  options.height = config.height;
  options.seed = config.seed;
  STROBE_ASSIGN(models::Graph graph, models::open_graph(choice.source, options));
  if (choice.level || level == 0) return graph;
  models::PruneOptions pruning;
  STROBE_ASSIGN(pruning.method, models::parse_prune_method(config.method));
  pruning.seed = config.seed;
  STROBE_ASSIGN(const models::Pruner pruner, models::Pruner::create(graph, pruning));
  return pruner.at(level);
}

int thread_count(const ProfileConfig& config) {
  return config.threads > 0 ? config.threads : engines::allowed_cores();
}

Result<std::unique_ptr<NetworkStep>> load_step(engines::Engine& engine, models::Graph graph, Stage stage, int64_t batch,
                                               int threads, const std::string& device) {
  const auto shared = std::make_shared<const models::Graph>(std::move(graph));
  if (stage == Stage::kTraining) {
    engines::TrainOptions options;
    options.batch = batch;
    options.threads = threads;
    options.device = device;
    options.optimizer = engines::Optimizer::kSgd;
    options.clip_norm = 0;
    STROBE_ASSIGN(std::unique_ptr<engines::Trainer> trainer, engine.train(shared, options));
    return std::unique_ptr<NetworkStep>(std::make_unique<TrainingStep>(std::move(trainer), *shared, batch));
  }
  engines::LoadOptions options;
  options.batch = batch;
  options.threads_per_session = threads;
  options.device = device;
  STROBE_ASSIGN(std::unique_ptr<engines::Network> network, engine.load(shared, options));
  STROBE_ASSIGN(std::unique_ptr<engines::Session> session, network->create_session());
  return std::unique_ptr<NetworkStep>(std::make_unique<InferenceStep>(std::move(network), std::move(session)));
}

}  // namespace strobe::measure
