#include "tenants/network_run.h"

#include <algorithm>
#include <map>
#include <string>

#include "models/cost.h"

namespace strobe::tenants {
namespace {

// FLOP a byte above which a layer is taken to wait for arithmetic, below for memory; and work so small that starting it
// is what takes time.
constexpr double kComputeIntensity = 8;
constexpr double kSmallFlop = 2e5, kSmallBytes = 1e5;

const char* class_of(const models::Cost& cost) {
  const auto flop = static_cast<double>(cost.flop), bytes = static_cast<double>(cost.bytes);
  if (flop < kSmallFlop && bytes < kSmallBytes) return "small";
  return flop / std::max(bytes, 1.0) >= kComputeIntensity ? "compute" : "bandwidth";
}

// What each kernel does, by the layers in it.
std::vector<WorkPiece> pieces_of(const std::vector<engines::Kernel>& kernels, const models::Graph& graph) {
  std::map<std::string, models::Cost> costs;
  for (size_t i = 0; i < graph.layers.size(); ++i)
    costs[graph.layers[i].name] = models::layer_cost(graph, static_cast<models::LayerId>(i));
  std::vector<WorkPiece> pieces;
  for (const engines::Kernel& kernel : kernels) {
    models::Cost sum;
    for (const std::string& layer : kernel.layers)
      if (const auto found = costs.find(layer); found != costs.end()) sum += found->second;
    pieces.push_back({kernel.name, class_of(sum)});
  }
  return pieces;
}

}  // namespace

Result<std::unique_ptr<NetworkRun>> NetworkRun::open(engines::Engine& engine, const engines::ModelSource& model,
                                                     const TenantSpec& tenant, int64_t batch) {
  std::unique_ptr<NetworkRun> run(new NetworkRun);
  engines::LoadOptions load;
  load.threads_per_session = tenant.threads;
  load.batch = batch;
  load.device = tenant.device;
  load.priority = tenant.priority;
  STROBE_ASSIGN(run->network_, engine.load(model, load));
  STROBE_ASSIGN(run->session_, run->network_->create_session());
  for (const auto& input : run->network_->inputs())
    run->inputs_.emplace_back(static_cast<size_t>(input.elements()), 0.0F);
  for (const auto& output : run->network_->outputs())
    run->outputs_.emplace_back(static_cast<size_t>(output.elements()), 0.0F);
  for (const auto& input : run->inputs_) run->input_at_.push_back(input.data());
  for (auto& output : run->outputs_) run->output_at_.push_back(output.data());
  const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&model);
  run->by_layer_ = tenant.layers && run->session_->listen(run.get());
  if (run->by_layer_ && graph != nullptr) {
    STROBE_ASSIGN(const auto kernels, run->network_->kernels());
    run->pieces_ = pieces_of(kernels, **graph);
  }
  if (run->pieces_.empty()) {
    if (run->by_layer_) run->session_->listen(nullptr);
    run->by_layer_ = false;
    run->pieces_.push_back({graph != nullptr ? (*graph)->name : "inference", "compute"});
  }
  return run;
}

NetworkRun::~NetworkRun() {
  if (session_ && by_layer_) session_->listen(nullptr);
}

std::vector<std::vector<int64_t>> NetworkRun::output_shapes() const {
  std::vector<std::vector<int64_t>> shapes;
  for (const auto& output : network_->outputs()) shapes.push_back(output.shape);
  return shapes;
}

Result<void> NetworkRun::run(DeviceTurns& turns, size_t first_piece) {
  first_piece_ = first_piece;
  if (by_layer_) {
    turns_ = &turns;
    auto done = run_session();
    turns_ = nullptr;
    return done;
  }
  turns.begin(first_piece);
  auto done = run_session();
  turns.end(first_piece);
  return done;
}

Result<void> NetworkRun::run_alone() {
  turns_ = nullptr;
  return run_session();
}

void NetworkRun::before(size_t kernel, const std::function<void()>& finish) {
  if (turns_ != nullptr) turns_->begin(first_piece_ + kernel, finish);
}

void NetworkRun::after(size_t kernel, const std::function<void()>& finish) {
  if (turns_ == nullptr) return;
  if (kernel + 1 == pieces_.size()) finish();  // the frame's work on the device ends with its last piece
  turns_->end(first_piece_ + kernel);
}

Result<void> NetworkRun::run_session() {
  return session_->run(input_at_, output_at_);
}

}  // namespace strobe::tenants
