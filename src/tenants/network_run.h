// NetworkRun: one network of an engine with its buffers, run in pieces where the engine can be stopped between layers.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/engines/engine.h"
#include "tenants/task.h"

namespace strobe::tenants {

class NetworkRun : private engines::LayerListener {
 public:
  // Layer by layer where the tenant asks for it and the engine can; else in one piece. Errors: those of Engine::load.
  static Result<std::unique_ptr<NetworkRun>> open(engines::Engine& engine, const engines::ModelSource& model,
                                                  const TenantSpec& tenant, int64_t batch = 1);
  ~NetworkRun() override;
  NetworkRun(const NetworkRun&) = delete;
  NetworkRun& operator=(const NetworkRun&) = delete;

  const std::vector<WorkPiece>& pieces() const { return pieces_; }
  const std::vector<int64_t>& input_shape() const { return network_->inputs()[0].shape; }
  std::vector<std::vector<int64_t>> output_shapes() const;
  std::vector<std::vector<float>>& inputs() { return inputs_; }
  std::vector<float>& input() { return inputs_[0]; }
  std::vector<std::vector<float>>& outputs() { return outputs_; }

  // Memory of others for an input or output, instead of its own; it must outlive the network and have as many floats.
  void read_from(size_t input, const float* data) { input_at_[input] = data; }
  void write_to(size_t output, float* data) { output_at_[output] = data; }

  // Each piece between turns.begin and turns.end, as numbers from first_piece on.
  Result<void> run(DeviceTurns& turns, size_t first_piece);
  // Without anybody's leave, before the clock starts.
  Result<void> run_alone();

 private:
  NetworkRun() = default;
  void before(size_t kernel, const std::function<void()>& finish) override;
  void after(size_t kernel, const std::function<void()>& finish) override;
  Result<void> run_session();

  std::unique_ptr<engines::Network> network_;
  std::unique_ptr<engines::Session> session_;
  std::vector<WorkPiece> pieces_;
  std::vector<std::vector<float>> inputs_, outputs_;
  std::vector<const float*> input_at_;
  std::vector<float*> output_at_;
  bool by_layer_ = false;
  DeviceTurns* turns_ = nullptr;
  size_t first_piece_ = 0;
};

}  // namespace strobe::tenants
