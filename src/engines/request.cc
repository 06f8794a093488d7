#include "engines/request.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

namespace strobe::engines {
namespace {

// Cores by the quota of cgroup v2, rounded up; 0 when there is none.
int quota_cores() {
  std::ifstream file("/sys/fs/cgroup/cpu.max");
  double quota = 0;
  double period = 0;
  if (!(file >> quota >> period) || period <= 0) return 0;  // "max 100000" does not read as a number
  return static_cast<int>(std::ceil(quota / period));
}

template <typename List>
std::string joined(const List& list) {
  std::string text;
  for (const auto& one : list) text += (text.empty() ? "" : ", ") + std::string(one);
  return text;
}

Result<void> check_file(const Engine& engine, const std::filesystem::path& path) {
  const auto formats = engine.file_formats();
  if (std::find(formats.begin(), formats.end(), path.extension().string()) == formats.end()) {
    return unsupported(path.string() + ": engine " + engine.name() + " does not read this format; it reads " +
                       (formats.empty() ? "no files" : joined(formats)));
  }
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return not_found(path.string() + ": no such file");
  if (!std::filesystem::is_regular_file(path, ignored)) return bad_data(path.string() + ": not a file");
  return {};
}

}  // namespace

int allowed_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  int cores = 1;
  if (::sched_getaffinity(0, sizeof(set), &set) == 0) cores = std::max(1, CPU_COUNT(&set));
  if (const int quota = quota_cores(); quota > 0) cores = std::min(cores, quota);
  return cores;
}

int session_threads(const LoadOptions& options) {
  if (options.threads_per_session > 0) return options.threads_per_session;
  return std::max(1, allowed_cores() / std::max(1, options.sessions));
}

Result<void> check_device_word(const std::string& device) {
  constexpr std::string_view kGpu = "cuda:";
  const std::string_view number = std::string_view(device).substr(std::min(device.size(), kGpu.size()));
  const bool numbered = device.starts_with(kGpu) && !number.empty() && number.size() <= 2 &&
                        number.find_first_not_of("0123456789") == std::string_view::npos &&
                        (number.size() == 1 || number[0] != '0');
  if (device == "cpu" || numbered) return {};
  return usage_error("device '" + device + "': expected cpu, or cuda:N with the number of a GPU, e.g. cuda:0");
}

Result<void> check_runs_on(const Engine& engine, const std::string& device) {
  if (device != "cpu") {
    STROBE_TRY(engine.precisions_on(device));
  } else if (engine.precisions().empty()) {
    return usage_error("engine " + engine.name() +
                       " runs on GPUs only, and this was to run on the CPU: --infer-on-gpu, or device: cuda:N of a "
                       "tenant, names a GPU");
  }
  return {};
}

Result<void> check_request(const Engine& engine, const ModelSource& source, const LoadOptions& options) {
  if (options.batch < 1) return usage_error("batch " + std::to_string(options.batch) + ": must be at least 1");
  if (options.sessions < 1) return usage_error("sessions " + std::to_string(options.sessions) + ": must be at least 1");
  if (options.threads_per_session < 0) {
    return usage_error("threads " + std::to_string(options.threads_per_session) + ": must not be negative");
  }
  const auto variants = engine.variants();
  if (!options.variant.empty() && std::find(variants.begin(), variants.end(), options.variant) == variants.end()) {
    return usage_error("engine " + engine.name() + " has no variant '" + options.variant + "'" +
                       (variants.empty() ? "" : "; it has " + joined(variants)));
  }
  STROBE_TRY(check_device_word(options.device));
  const bool on_gpu = options.device != "cpu";
  std::vector<Precision> precisions;
  if (on_gpu) {
    STROBE_ASSIGN(precisions, engine.precisions_on(options.device));
  } else {
    STROBE_TRY(check_runs_on(engine, options.device));
    precisions = engine.precisions();
  }
  if (std::find(precisions.begin(), precisions.end(), options.precision) == precisions.end()) {
    std::vector<std::string_view> names;
    names.reserve(precisions.size());
    for (const Precision precision : precisions) names.push_back(to_string(precision));
    return unsupported("engine " + engine.name() + " does not run " + std::string(to_string(options.precision)) +
                       (on_gpu ? " on " + options.device : " on this CPU") + "; it runs " + joined(names));
  }
  for (const int64_t extent : options.input_shape) {
    if (extent < 1) return usage_error("input shape: an extent of " + std::to_string(extent) + " must be at least 1");
  }
  if (const auto* path = std::get_if<std::filesystem::path>(&source)) return check_file(engine, *path);
  const auto& graph = std::get<0>(source);
  if (graph == nullptr || graph->layers.empty() || graph->outputs.empty()) {
    return internal_error("the graph is empty or has no outputs");
  }
  if (!options.input_shape.empty()) {
    return usage_error(graph->name + ": an input shape was given, but this network has its own, " +
                       graph->input_shape().to_string());
  }
  return {};
}

Ends ends_of(const models::Graph& graph, int64_t batch) {
  const auto info = [batch](const models::Layer& layer) {
    return TensorInfo{layer.name, {batch, layer.output.channels, layer.output.height, layer.output.width}};
  };
  Ends ends;
  ends.inputs.push_back(info(graph.layers.front()));
  for (const models::LayerId id : graph.outputs) ends.outputs.push_back(info(graph.layer(id)));
  return ends;
}

Result<void> check_buffers(const Ends& ends, std::span<const float* const> inputs, std::span<float* const> outputs) {
  if (inputs.size() == ends.inputs.size() && outputs.size() == ends.outputs.size()) return {};
  return internal_error("a session got " + std::to_string(inputs.size()) + " inputs and " +
                        std::to_string(outputs.size()) + " outputs; the network has " +
                        std::to_string(ends.inputs.size()) + " and " + std::to_string(ends.outputs.size()));
}

std::string one_line(std::string_view message, size_t limit) {
  std::string line;
  for (const char c : message) {
    const bool blank = c == '\n' || c == '\r' || c == '\t' || c == ' ';
    if (!blank) {
      line += c;
    } else if (!line.empty() && line.back() != ' ') {
      line += ' ';
    }
  }
  while (!line.empty() && line.back() == ' ') line.pop_back();
  if (line.size() > limit) line = line.substr(0, limit) + "...";
  return line;
}

}  // namespace strobe::engines
