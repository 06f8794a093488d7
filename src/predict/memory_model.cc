// Memory of a training step or an inference, MiB:
//   need   = base + copies * parameters + held * activations
//   memory = need, bent smoothly at a floor from below and at a capacity from above:
//            u = (floor^p + need^p)^(1/p),  memory = (u^-q + capacity^-q)^(-1/q)
// activations: held_bytes(), what the caching allocator asks of the device for activations, gradients of activations
// and workspace (training_memory.h), or what of them lives at once on the host. A network without linear layers never
// loads the library of matrix products: its base and floor are smaller by a share of the floor.
#include <algorithm>
#include <array>
#include <cmath>

#include "predict/physics.h"
#include "predict/training_memory.h"

namespace strobe::predict {
namespace {

constexpr double kMiB = 1 << 20;

enum Parameter : uint8_t { kBase, kCopies, kHeld, kFloor, kFloorBend, kCapacity, kCapacityBend, kLibrary, kCount };
constexpr std::array<std::string_view, kCount> kNames = {"base_mib",      "parameter_copies", "held",
                                                         "floor_mib",     "floor_bend",       "capacity_mib",
                                                         "capacity_bend", "library_share"};
// A capacity that no device has, for where no failure was seen.
constexpr double kNoCapacity = 1e12;

struct MemoryTerms : NetworkTerms {
  double parameters_mib = 0;
  bool linear = false;
};

double log_sum(double a, double b) {
  const double most = std::max(a, b);
  return most + std::log(std::exp(a - most) + std::exp(b - most));
}

// Logarithms on the way from what is needed to what is seen.
struct Bent {
  double floor, need, raised, seen;
};

Bent bend(std::span<const double> at, const PhysicsRow& row) {
  const auto& terms = static_cast<const MemoryTerms&>(*row.network);
  const double library = terms.linear ? 0 : at[kLibrary];
  const double floor = std::exp(at[kFloor]);
  // Parameters on their way may ask for a negative base; what is held never is.
  const double base = std::max(std::exp(at[kBase]) - library * floor, 0.0);
  const double need = base + std::exp(at[kCopies]) * terms.parameters_mib + std::exp(at[kHeld]) * row.held / kMiB;
  const double p = std::exp(at[kFloorBend]), q = std::exp(at[kCapacityBend]);
  Bent bent{};
  bent.floor = std::log(floor * std::max(1 - library, 1e-3));
  bent.need = std::log(need);
  bent.raised = log_sum(p * bent.floor, p * bent.need) / p;
  bent.seen = -log_sum(-q * bent.raised, -q * at[kCapacity]) / q;
  return bent;
}

class MemoryPhysics : public Physics {
 public:
  explicit MemoryPhysics(const Setting& setting) : setting_(setting) {}

  std::shared_ptr<const NetworkTerms> terms(const LayerList& layers) const override {
    auto terms = std::make_shared<MemoryTerms>();
    terms->parameters_mib = parameter_bytes(layers) / kMiB;
    terms->linear = std::any_of(layers.rows.begin(), layers.rows.end(),
                                [](const LayerRow& row) { return row.type == LayerKind::kLinear; });
    return terms;
  }

  std::span<const std::string_view> parameter_names() const override { return kNames; }

  std::vector<Prior> priors(std::span<const ObservedRow> rows, bool failed) const override {
    std::vector<double> values;
    for (const ObservedRow& row : rows) values.push_back(row.value);
    std::sort(values.begin(), values.end());
    const auto quantile = [&](double q) {
      return values[static_cast<size_t>(q * static_cast<double>(values.size() - 1))];
    };
    std::vector<Prior> priors(kCount);
    // The smallest and largest values show the floor and, where something failed, the capacity.
    priors[kFloor] = {std::log(quantile(0.02)), 0.3};
    priors[kCapacity] = failed ? Prior{std::log(quantile(0.995)), 0.05} : Prior{std::log(kNoCapacity), 1e-6};
    // Loading a framework takes more for a moment than it holds afterwards.
    priors[kBase] = {std::log(0.7 * quantile(0.02)), 0.3};
    // Parameters, gradients and momentum are three copies; the first steps have fewer.
    priors[kCopies] = {std::log(2.6), 0.2};
    if (setting_.stage == Stage::kInference) priors[kCopies] = {0, 0.2};
    priors[kHeld] = {0, 0.05};
    if (setting_.host) {
      // Nobody knows what a library of the host's packs and copies besides, or how often it keeps weights.
      priors[kCopies].deviation = 0.5;
      priors[kHeld] = {std::log(1.5), 0.5};
    }
    priors[kFloorBend] = {std::log(8.0), 0.5};
    priors[kCapacityBend] = {std::log(30.0), 0.5};
    priors[kLibrary] = {0.12, 0.02};  // a share, no logarithm; docs/prediction-models.md says where it is from
    return priors;
  }

  void predict(std::span<const double> parameters, std::span<const PhysicsRow> rows,
               std::span<double> log_values) const override {
    for (size_t i = 0; i < rows.size(); ++i) log_values[i] = bend(parameters, rows[i]).seen;
  }

  double sensitivity(std::span<const double> parameters, const PhysicsRow& row) const override {
    const Bent bent = bend(parameters, row);
    const double p = std::exp(parameters[kFloorBend]), q = std::exp(parameters[kCapacityBend]);
    // d seen / d need of the two bends, each the weight of its own term.
    return std::exp(p * (bent.need - bent.raised)) * std::exp(-q * (bent.raised - bent.seen));
  }

 private:
  Setting setting_;
};

}  // namespace

double held_bytes(const Setting& setting, const LayerList& layers, int64_t batch) {
  const StepMemory memory = setting.stage == Stage::kInference ? inference_memory(layers, batch)
                            : setting.host                     ? training_step_memory(layers, batch, 0)
                                                               : training_step_memory(layers, batch);
  return setting.host ? memory.peak_live : memory.reserved;
}

std::unique_ptr<Physics> make_memory_physics(const Setting& setting) {
  return std::make_unique<MemoryPhysics>(setting);
}

}  // namespace strobe::predict
