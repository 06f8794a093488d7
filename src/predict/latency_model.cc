// Latency of a training step or an inference, ms:
//   latency = (host^p + device^p)^(1/p)
//   host    = start + launch * operations                       the rate at which work can be handed over
//   device  = fixed + update * parameter GB + batch * item      the time that the work takes
//   item    = sum over convolutions of alpha_kind * GFLOP + beta_kind * GB, in each of forward, gradient of the input
//             (but of the first layer) and gradient of the weights (an inference has forward only), + sum over all else
//             of beta_class * GB
// Convolutions are matrix products whose sides are cut into tiles: a side of n channels costs as n + tile. Depthwise
// ones are not. Their kinds: stem (up to 4 input channels), 1x1, 3x3 of stride 1 (which libraries run by Winograd's
// algorithm, with transformed copies of input and output to write and read), others, depthwise.
#include <algorithm>
#include <array>
#include <cmath>

#include "predict/physics.h"
#include "predict/training_memory.h"

namespace strobe::predict {
namespace {

enum ConvKind : uint8_t { kStem, k1x1, k3x3, kOther, kDepthwise, kConvKinds };
enum Traffic : uint8_t { kBatchNorm, kElementwise, kPool, kTrafficKinds };

enum Parameter : uint8_t {
  kStart,
  kLaunch,
  kSharpness,
  kFixed,
  kAlpha,
  kBeta,
  kTileChannels,
  kTileDepth,
  kAlphaOfKind,
  kBetaOfKind = kAlphaOfKind + kConvKinds,
  kBetaOfTraffic = kBetaOfKind + kConvKinds,
  kUpdate = kBetaOfTraffic + kTrafficKinds,
  kCount
};
constexpr std::array<std::string_view, kCount> kNames = {
    "start_ms",        "launch_ms",        "sharpness",  "fixed_ms",     "alpha_ms_per_gflop", "beta_ms_per_gb",
    "tile_channels",   "tile_depth",       "alpha_stem", "alpha_1x1",    "alpha_3x3",          "alpha_other",
    "alpha_depthwise", "beta_stem",        "beta_1x1",   "beta_3x3",     "beta_other",         "beta_depthwise",
    "beta_batchnorm",  "beta_elementwise", "beta_pool",  "update_passes"};

constexpr size_t alpha_of(size_t kind) {
  return kAlphaOfKind + kind;
}
constexpr size_t beta_of(size_t kind) {
  return kBetaOfKind + kind;
}

struct ConvTerm {
  ConvKind kind = kOther;
  double to_weights = 1;   // 0 for an inference, which has no gradients
  double to_input = 1;     // 0 for that, and for the first layer: nobody asks for the gradient of the network's input
  double positions = 0;    // of the output, of an item
  double in = 0, out = 0;  // channels of a group
  double kernel = 0;       // numbers of a window
  double groups = 1;
  double gb = 0;  // of input and output, of an item
};

struct LatencyTerms : NetworkTerms {
  std::vector<ConvTerm> convolutions;
  std::array<double, kTrafficKinds> gb{};  // moved by all else in a step, of an item
  double operations = 0;
  double update_gb = 0;  // of parameters
};

// How often a step reads or writes a convolution's input and output. Winograd's transformed copies double it; the
// gradient of depthwise weights reads its operands anew for every number of the window, of which caches save part:
// taken as one pass for a window of 3 x 3.
double passes_of(const ConvTerm& conv) {
  if (conv.kind == kDepthwise) return 1 + conv.to_input + conv.to_weights * conv.kernel / 9;
  return (conv.kind == k3x3 ? 2 : 1) * (1 + conv.to_weights + conv.to_input);
}

double gigabytes(double elements) {
  return 4e-9 * elements;
}

ConvKind kind_of(const LayerRow& row) {
  if (row.groups > 1 && row.groups == row.ic) return kDepthwise;
  if (row.ic <= 4) return kStem;
  if (row.kh * row.kw == 1) return k1x1;
  return row.kh == 3 && row.kw == 3 && row.sh == 1 && row.sw == 1 ? k3x3 : kOther;
}

ConvTerm convolution(const LayerRow& row, bool training) {
  ConvTerm term;
  term.kind = kind_of(row);
  term.to_weights = training ? 1 : 0;
  term.to_input = !training || row.inputs.empty() || row.inputs.front() < 0 ? 0 : 1;
  term.positions = row.type == LayerKind::kConvTranspose ? static_cast<double>(row.ih * row.iw)
                                                         : static_cast<double>(row.oh * row.ow);
  term.groups = static_cast<double>(row.groups);
  term.in = static_cast<double>(row.ic) / term.groups;
  term.out = static_cast<double>(row.oc) / term.groups;
  term.kernel = static_cast<double>(row.kh * row.kw);
  term.gb = gigabytes(row.in_elements() + row.out_elements());
  return term;
}

// How often a step reads or writes the tensors of what is no convolution.
void add_traffic(const LayerRow& row, LatencyTerms& terms) {
  const double in = gigabytes(row.in_elements()), out = gigabytes(row.out_elements());
  switch (row.type) {
    case LayerKind::kBatchNorm:
      terms.gb[kBatchNorm] += 5 * out;  // read, write; read twice, write
      break;
    case LayerKind::kRelu:
    case LayerKind::kRelu6:
    case LayerKind::kActivation:
    case LayerKind::kSoftmax:
      terms.gb[kElementwise] += 5 * out;  // read, write; read twice, write
      break;
    case LayerKind::kAdd:
      terms.gb[kElementwise] += 3 * out;  // read twice, write; its gradient is only passed on
      break;
    case LayerKind::kCat:
      terms.gb[kElementwise] += 4 * out;  // read, write; read, write
      break;
    case LayerKind::kSlice:
      terms.gb[kElementwise] += in + out;  // its gradient is written into zeros
      break;
    case LayerKind::kMaxPool:
      terms.gb[kPool] += 2 * in + 4 * out;  // with indices of 8 bytes, written and read
      break;
    case LayerKind::kAveragePool:
    case LayerKind::kUpsample:
      terms.gb[kPool] += 2 * (in + out);
      break;
    case LayerKind::kConv:
    case LayerKind::kConvTranspose:
      if (row.bias) terms.gb[kElementwise] += 2 * out;
      break;
    case LayerKind::kLinear:
      break;
  }
}

// The same where nothing comes back.
void add_forward_traffic(const LayerRow& row, LatencyTerms& terms) {
  const double in = gigabytes(row.in_elements()), out = gigabytes(row.out_elements());
  switch (row.type) {
    case LayerKind::kBatchNorm:
      terms.gb[kBatchNorm] += 2 * out;
      break;
    case LayerKind::kRelu:
    case LayerKind::kRelu6:
    case LayerKind::kActivation:
    case LayerKind::kSoftmax:
    case LayerKind::kCat:
      terms.gb[kElementwise] += 2 * out;
      break;
    case LayerKind::kAdd:
      terms.gb[kElementwise] += 3 * out;
      break;
    case LayerKind::kMaxPool:
    case LayerKind::kAveragePool:
    case LayerKind::kUpsample:
      terms.gb[kPool] += in + out;
      break;
    case LayerKind::kConv:
    case LayerKind::kConvTranspose:
    case LayerKind::kLinear:
    case LayerKind::kSlice:
      break;
  }
}

class LatencyPhysics : public Physics {
 public:
  explicit LatencyPhysics(const Setting& setting) : setting_(setting) {}

  std::shared_ptr<const NetworkTerms> terms(const LayerList& layers) const override {
    auto terms = std::make_shared<LatencyTerms>();
    const bool training = setting_.stage == Stage::kTraining;
    std::vector<int> readers(layers.rows.size(), 0);
    for (const LayerRow& row : layers.rows) {
      if (row.type == LayerKind::kConv || row.type == LayerKind::kConvTranspose) {
        terms->convolutions.push_back(convolution(row, training));
      } else if (row.type == LayerKind::kLinear) {
        terms->convolutions.push_back({.kind = k1x1,
                                       .to_weights = training ? 1.0 : 0.0,
                                       .to_input = training ? 1.0 : 0.0,
                                       .positions = 1,
                                       .in = static_cast<double>(row.ic),
                                       .out = static_cast<double>(row.oc),
                                       .kernel = 1,
                                       .gb = gigabytes(row.in_elements() + row.out_elements())});
      }
      if (training)
        add_traffic(row, *terms);
      else
        add_forward_traffic(row, *terms);
      for (const int32_t from : row.inputs) {
        if (from >= 0) ++readers[from];
      }
    }
    for (size_t i = 0; i < layers.rows.size(); ++i) {
      // Gradients of a tensor that several rows read are added up: read twice, write.
      if (training && readers[i] > 1)
        terms->gb[kElementwise] += 3 * (readers[i] - 1) * gigabytes(layers.rows[i].out_elements());
    }
    terms->operations = static_cast<double>(layers.rows.size());
    terms->update_gb = training ? parameter_bytes(layers) * 1e-9 : 0;
    return terms;
  }

  std::span<const std::string_view> parameter_names() const override { return kNames; }

  std::vector<Prior> priors(std::span<const ObservedRow> rows, bool /*failed*/) const override {
    std::vector<Prior> priors(kCount);
    const auto set = [&](size_t at, double centre, double deviation) { priors[at] = {std::log(centre), deviation}; };
    // Times in proportion to each other, as on a device that computes 0.67 TFLOP and moves 25 GB a second.
    set(kStart, 5, 0.5);
    set(kLaunch, 0.65, 0.5);
    set(kFixed, 2, 0.7);
    set(kAlpha, 1.5, 1);
    set(kBeta, 40, 1);
    set(kSharpness, 8, 0.3);  // launches go on while the device works: nearly the greater of the two
    set(kTileChannels, 64, 0.5);
    set(kTileDepth, 8, 0.7);
    // Kinds are alike unless the measurements say otherwise.
    for (size_t kind = 0; kind < kConvKinds; ++kind) {
      set(alpha_of(kind), 1, 0.15);
      set(beta_of(kind), 1, 0.15);
    }
    set(alpha_of(k3x3), 0.7, 0.15);     // Winograd's saving
    set(alpha_of(kDepthwise), 3, 0.7);  // plain loops, no library
    set(beta_of(kDepthwise), 1, 0.5);
    for (size_t kind = 0; kind < kTrafficKinds; ++kind) set(kBetaOfTraffic + kind, 1, 0.15);
    set(kUpdate, 10, 0.15);  // gradients cleared and added, decay, momentum, step
    scale_to(rows, priors);
    return priors;
  }

  void predict(std::span<const double> parameters, std::span<const PhysicsRow> rows,
               std::span<double> log_values) const override {
    std::vector<double> at(kCount);
    for (size_t i = 0; i < kCount; ++i) at[i] = std::exp(parameters[i]);
    const NetworkTerms* last = nullptr;
    double item = 0;
    for (size_t i = 0; i < rows.size(); ++i) {
      const auto& terms = static_cast<const LatencyTerms&>(*rows[i].network);
      if (last != &terms) item = time_of_item(at, terms);
      last = &terms;
      const double host = at[kStart] + at[kLaunch] * terms.operations;
      const double device = at[kFixed] + at[kBeta] * at[kUpdate] * terms.update_gb + rows[i].batch * item;
      const double p = 1 + at[kSharpness], most = std::max(host, device);
      log_values[i] = std::log(most) + std::log1p(std::pow(std::min(host, device) / most, p)) / p;
    }
  }

  double sensitivity(std::span<const double> /*parameters*/, const PhysicsRow& /*row*/) const override { return 1; }

 private:
  static double time_of_item(std::span<const double> at, const LatencyTerms& terms) {
    const double wide = at[kTileChannels], deep = at[kTileDepth];
    double compute = 0, traffic = 0;
    for (const ConvTerm& conv : terms.convolutions) {
      double products = 0;  // in the three directions
      if (conv.kind == kDepthwise) {
        products = (1 + conv.to_weights + conv.to_input) * conv.out * conv.kernel;
      } else {
        products = (conv.out + wide) * (conv.in * conv.kernel + deep) +
                   conv.to_input * (conv.in + wide) * (conv.out * conv.kernel + deep) +
                   conv.to_weights * (conv.out + wide) * (conv.in * conv.kernel + wide);
      }
      compute += at[alpha_of(conv.kind)] * 2e-9 * conv.positions * conv.groups * products;
      traffic += at[beta_of(conv.kind)] * passes_of(conv) * conv.gb;
    }
    for (size_t kind = 0; kind < kTrafficKinds; ++kind) traffic += at[kBetaOfTraffic + kind] * terms.gb[kind];
    return at[kAlpha] * compute + at[kBeta] * traffic;
  }

  // A device that is faster or slower as a whole changes nothing else.
  void scale_to(std::span<const ObservedRow> rows, std::vector<Prior>& priors) const {
    std::vector<double> centres, ratios(rows.size());
    for (const Prior& prior : priors) centres.push_back(prior.centre);
    std::vector<PhysicsRow> at;
    for (const ObservedRow& row : rows) at.push_back(row.row);
    predict(centres, at, ratios);
    for (size_t i = 0; i < rows.size(); ++i) ratios[i] = std::log(rows[i].value) - ratios[i];
    std::nth_element(ratios.begin(), ratios.begin() + static_cast<int64_t>(ratios.size() / 2), ratios.end());
    const double scale = ratios[ratios.size() / 2];
    for (const size_t time : {kStart, kLaunch, kFixed, kAlpha, kBeta}) priors[time].centre += scale;
  }

  Setting setting_;
};

}  // namespace

std::unique_ptr<Physics> make_latency_physics(const Setting& setting) {
  return std::make_unique<LatencyPhysics>(setting);
}

}  // namespace strobe::predict
