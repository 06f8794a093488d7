#include "predict/layer_speed.h"

#include <algorithm>
#include <numeric>

#include "models/cost.h"
#include "predict/training_memory.h"

namespace strobe::predict {

using models::LayerId;

namespace {

constexpr int64_t kVector = 8;

double rounded(int64_t channels) {
  return static_cast<double>((channels + kVector - 1) / kVector * kVector) / static_cast<double>(channels);
}

// Operations that are done for each that counts.
double waste(const models::Graph& graph, LayerId id) {
  const models::Layer& layer = graph.layer(id);
  const auto* conv = std::get_if<models::Convolution>(&layer.operation);
  if (conv == nullptr) return 1;
  const int64_t in = graph.layer(layer.inputs.front()).output.channels / conv->groups;
  if (in == 1 && conv->groups > 1) return rounded(conv->out_channels);
  // A network's first convolution has kernels of its own, which mix the columns of few channels.
  constexpr int64_t kPicture = 4;
  return (in <= kPicture ? 1 : rounded(in)) * rounded(conv->out_channels / conv->groups);
}

WorkKind kind_of(const models::Graph& graph, LayerId id) {
  const models::Layer& layer = graph.layer(id);
  LayerRow row;
  row.type = LayerKind::kActivation;
  if (std::holds_alternative<models::Linear>(layer.operation)) row.type = LayerKind::kLinear;
  if (std::holds_alternative<models::TransposedConvolution>(layer.operation)) row.type = LayerKind::kConvTranspose;
  if (const auto* conv = std::get_if<models::Convolution>(&layer.operation)) {
    row.type = LayerKind::kConv;
    row.ic = graph.layer(layer.inputs.front()).output.channels;
    row.oc = conv->out_channels;
    row.groups = conv->groups;
    row.kh = conv->kernel_h, row.kw = conv->kernel_w;
    row.sh = conv->stride_h, row.sw = conv->stride_w;
  }
  return work_kind(row);
}

bool does_nothing(const models::Operation& operation) {
  return std::holds_alternative<models::Input>(operation) || std::holds_alternative<models::Flatten>(operation) ||
         std::holds_alternative<models::Dropout>(operation) || std::holds_alternative<models::YoloHead>(operation);
}

// Whether the layer ends in the kernel of the one it reads, which nobody else reads.
bool is_fused(const models::Graph& graph, LayerId id, const std::vector<int>& readers) {
  const models::Layer& layer = graph.layer(id);
  const bool follows = std::holds_alternative<models::BatchNorm>(layer.operation) ||
                       std::holds_alternative<models::Activation>(layer.operation);
  if (!follows && !std::holds_alternative<models::Add>(layer.operation)) return false;
  const auto computes = [&](LayerId input) {
    const models::Operation& operation = graph.layer(input).operation;
    return readers[static_cast<size_t>(input)] == 1 && !std::holds_alternative<models::Input>(operation) &&
           !std::holds_alternative<models::Pool>(operation) && !std::holds_alternative<models::Concat>(operation);
  };
  if (follows) return computes(layer.inputs.front());
  return std::any_of(layer.inputs.begin(), layer.inputs.end(), computes);
}

// The longer of operations and bytes; below 0 for what has no kernel.
std::vector<double> work_times_ms(const models::Graph& graph, int64_t batch, const InferenceDevice& device) {
  std::vector<int> readers(graph.layers.size(), 0);
  for (const models::Layer& layer : graph.layers)
    for (const LayerId input : layer.inputs) ++readers[static_cast<size_t>(input)];
  for (const LayerId output : graph.outputs) ++readers[static_cast<size_t>(output)];
  std::vector<double> times(graph.layers.size(), -1);
  for (LayerId id = 0; id < static_cast<LayerId>(graph.layers.size()); ++id) {
    if (does_nothing(graph.layer(id).operation) || (device.fuses && is_fused(graph, id, readers))) continue;
    const models::Cost cost = models::layer_cost(graph, id);
    const auto items = static_cast<double>(batch);
    const double parameters = 4.0 * static_cast<double>(cost.parameters);
    const double bytes = (static_cast<double>(cost.bytes) - parameters) * items + parameters;
    const double moving = bytes / (device.limits.bandwidth_gb_s * 1e6);
    const WorkKind kind = kind_of(graph, id);
    const double peak = device.limits.peak_gflops[static_cast<size_t>(kind)];
    const double computing =
        kind == WorkKind::kMemory ? 0 : static_cast<double>(cost.flop) * items * waste(graph, id) / (peak * 1e6);
    times[static_cast<size_t>(id)] = std::max(moving, computing);
  }
  return times;
}

}  // namespace

std::vector<double> layer_times_ms(const models::Graph& graph, int64_t batch, const InferenceDevice& device) {
  std::vector<double> times = work_times_ms(graph, batch, device);
  const double launch_ms = device.limits.launch_us / 1e3;
  double launched = 0, done = 0;
  for (double& time : times) {
    if (time < 0) {
      time = 0;
    } else if (!device.queued) {
      time += launch_ms;
    } else {
      launched += launch_ms;
      const double before = done;
      done = std::max(done, launched) + time;
      time = done - before;
    }
  }
  return times;
}

double inference_time_ms(const models::Graph& graph, int64_t batch, const InferenceDevice& device) {
  const std::vector<double> times = layer_times_ms(graph, batch, device);
  double copying = 0;
  if (device.copy_gb_s > 0) {
    int64_t values = graph.input_shape().elements();
    for (const LayerId output : graph.outputs) values += graph.layer(output).output.elements();
    copying = 4.0 * static_cast<double>(batch * values) / (device.copy_gb_s * 1e6);
  }
  return std::accumulate(times.begin(), times.end(), copying);
}

double device_time_ms(const models::Graph& graph, int64_t batch, const InferenceDevice& device) {
  double sum = 0;
  for (const double time : work_times_ms(graph, batch, device)) sum += std::max(0.0, time);
  return sum;
}

int64_t inference_bytes(const models::Graph& graph, int64_t batch) {
  return 4 * models::graph_cost(graph).parameters + batch * models::activation_peak(graph).bytes;
}

int64_t reserved_inference_bytes(const models::Graph& graph, int64_t batch, int sessions) {
  const double reserved = inference_memory(from_graph(graph, 0), batch).reserved;
  return 4 * models::graph_cost(graph).parameters + sessions * static_cast<int64_t>(reserved);
}

}  // namespace strobe::predict
