// A fake engine with a known answer: it finds the one bright square of a picture, so that tests of the pipeline know
// what every box must be. Its network's weights are never used.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <memory>
#include <thread>

#include "strobe/engines/engine.h"

namespace strobe::pipeline {

// Shared by the engine's networks and sessions; tests read and set it.
struct SquareFinderState {
  std::atomic<int> loads{0}, sessions{0}, inferences{0};
  int fail_at = -1;                          // the inference, counted over all sessions, that fails
  std::chrono::microseconds takes{0};        // every inference
  std::vector<int64_t> input = {3, 32, 64};  // of one item
  bool uneven = false;                       // sessions take turns at being slow, so that batches overtake each other
};

class SquareFinder : public engines::Engine {
 public:
  explicit SquareFinder(std::shared_ptr<SquareFinderState> state) : state_(std::move(state)) {}
  std::string name() const override { return "square-finder"; }
  std::string version() const override { return "1"; }
  std::vector<std::string> variants() const override { return {"plain"}; }
  std::vector<engines::Precision> precisions() const override { return {engines::Precision::kF32}; }
  std::vector<std::string> file_formats() const override { return {".square"}; }
  Result<std::unique_ptr<engines::Network>> load(const engines::ModelSource& source,
                                                 const engines::LoadOptions& options) override {
    ++state_->loads;
    return std::unique_ptr<engines::Network>(
        std::make_unique<Network>(state_, options, std::holds_alternative<std::filesystem::path>(source)));
  }

 private:
  class Session : public engines::Session {
   public:
    Session(std::shared_ptr<SquareFinderState> state, int64_t batch, bool profile, int number)
        : state_(std::move(state)), batch_(batch), profile_(profile), number_(number) {}

    Result<void> run(std::span<const float* const> inputs, std::span<float* const> outputs) override {
      const int count = state_->inferences++;
      if (count == state_->fail_at) return engine_error("inference " + std::to_string(count) + " failed as asked");
      if (state_->uneven && (count + number_) % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      std::this_thread::sleep_for(state_->takes);
      const int64_t height = state_->input[1], width = state_->input[2];
      for (int64_t item = 0; item < batch_; ++item)
        find(inputs[0] + item * 3 * height * width, height, width, outputs[0] + item * 6 * (height / 8) * (width / 8));
      return {};
    }
    Result<std::vector<engines::KernelTime>> kernel_times() override {
      if (!profile_) return std::vector<engines::KernelTime>{};
      return std::vector<engines::KernelTime>{{0, 1000}, {1, 500}};
    }

   private:
    // The head's map of one anchor: x, y, w, h, objectness, class; the square's centre of mass is the box's centre.
    static void find(const float* picture, int64_t height, int64_t width, float* map) {
      const int64_t rows = height / 8, columns = width / 8, cells = rows * columns;
      std::fill(map, map + 6 * cells, -20.0F);
      double sum = 0, sum_x = 0, sum_y = 0;
      for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < width; ++x) {
          const double value = picture[y * width + x] > 0.5F ? 1 : 0;
          sum += value;
          sum_x += value * (static_cast<double>(x) + 0.5);
          sum_y += value * (static_cast<double>(y) + 0.5);
        }
      }
      if (sum == 0) return;
      const double x = sum_x / sum / 8, y = sum_y / sum / 8;
      const auto cell = static_cast<int64_t>(y) * columns + static_cast<int64_t>(x);
      const auto logit = [](double p) { return static_cast<float>(std::log(p / (1 - p))); };
      const auto inside = [](double value) { return std::clamp(value - std::floor(value), 1e-4, 1 - 1e-4); };
      map[cell] = logit(inside(x));
      map[cells + cell] = logit(inside(y));
      map[2 * cells + cell] = map[3 * cells + cell] = 0;  // the anchor itself: 8 x 8
      map[4 * cells + cell] = map[5 * cells + cell] = 20;
    }

    std::shared_ptr<SquareFinderState> state_;
    int64_t batch_;
    bool profile_;
    int number_;
  };

  class Network : public engines::Network {
   public:
    Network(std::shared_ptr<SquareFinderState> state, const engines::LoadOptions& options, bool file)
        : state_(std::move(state)), options_(options), file_(file) {
      std::vector<int64_t> shape = state_->input;
      shape.insert(shape.begin(), options.batch);
      inputs_ = {{"input", shape}};
      outputs_ = {{"map", {options.batch, 6, shape[2] / 8, shape.back() / 8}}};
    }
    const std::vector<engines::TensorInfo>& inputs() const override { return inputs_; }
    const std::vector<engines::TensorInfo>& outputs() const override { return outputs_; }
    Result<std::unique_ptr<engines::Session>> create_session() override {
      return std::unique_ptr<engines::Session>(
          std::make_unique<Session>(state_, options_.batch, options_.profile_layers, state_->sessions++));
    }
    Result<std::vector<engines::Kernel>> kernels() override {
      const std::string prefix = file_ ? "file." : "";
      return std::vector<engines::Kernel>{{prefix + "sum", "Reduce", "", {}}, {prefix + "map", "Eltwise", "", {}}};
    }

   private:
    std::shared_ptr<SquareFinderState> state_;
    engines::LoadOptions options_;
    bool file_;
    std::vector<engines::TensorInfo> inputs_, outputs_;
  };

  std::shared_ptr<SquareFinderState> state_;
};

}  // namespace strobe::pipeline
