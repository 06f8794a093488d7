#include "run_dry.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "base/table.h"
#include "collect/cpu_time.h"
#include "collect/machine.h"
#include "inference_device.h"
#include "measure/gpu_device.h"
#include "media/draw.h"
#include "media/preprocess.h"
#include "media/sink.h"
#include "media/source.h"
#include "models/model.h"
#include "pipeline/network_input.h"
#include "report/table_format.h"
#include "run_session.h"
#include "run_words.h"

namespace strobe::app {

namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kFrames = 48;       // at most, of the input
constexpr double kFramesTime_s = 1;  // at most, for each step

// CPU ms a frame of the steps around the network.
struct AroundCost {
  double read_ms = 0, prep_ms = 0, write_ms = 0;
  size_t frames = 0;
  double cpu_ms() const { return read_ms + prep_ms + write_ms; }
};

// Runs work on each frame until the time is over; CPU ms of this process a frame.
template <typename Work>
Result<double> cost_of(size_t frames, const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  const int64_t cpu = collect::process_cpu_ns();
  size_t done = 0;
  for (; done < frames; ++done) {
    STROBE_TRY(work(done));
    if (std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() > kFramesTime_s) {
      ++done;
      break;
    }
  }
  return done == 0 ? 0.0
                   : 1e3 * (static_cast<double>(collect::process_cpu_ns() - cpu) / 1e9) / static_cast<double>(done);
}

Result<AroundCost> around_cost(const RunFlags& flags, const Words& words, const models::Graph& graph,
                               const std::atomic<bool>& stop) {
  media::SourceOptions options = source_options(flags, words);
  options.stop = &stop;
  STROBE_ASSIGN(const auto source, media::open_source(flags.input, options));
  AroundCost cost;
  std::vector<media::Frame> frames;
  size_t most = kFrames;
  if (flags.frames > 0) most = std::min(most, static_cast<size_t>(flags.frames));
  STROBE_ASSIGN(cost.read_ms, cost_of(most, [&](size_t) -> Result<void> {
                  STROBE_ASSIGN(auto frame, source->next());
                  if (frame) frames.push_back(std::move(*frame));
                  return {};
                }));
  cost.frames = frames.size();
  if (frames.empty()) return bad_data("no frame can be read").at(flags.input);
  const models::Shape& shape = graph.input_shape();
  const media::InputFormat format =
      pipeline::input_format(graph.input_rule, static_cast<int>(shape.width), static_cast<int>(shape.height));
  std::vector<float> input(static_cast<size_t>(shape.elements()));
  STROBE_ASSIGN(cost.prep_ms,
                cost_of(frames.size(), [&](size_t i) { return media::preprocess(frames[i], format, input.data()); }));
  if (flags.no_video) return cost;
  media::WriterOptions writing;
  writing.codec = flags.codec;
  writing.threads = flags.encode_threads;
  STROBE_ASSIGN(const auto writer, media::open_video_writer({}, source->info().width, source->info().height, writing));
  STROBE_ASSIGN(cost.write_ms, cost_of(frames.size(), [&](size_t i) -> Result<void> {
                  STROBE_ASSIGN(const media::Frame drawn, media::draw(frames[i], {}));
                  return writer->write(drawn);
                }));
  return cost;
}

struct Expected {
  double infer_ms = 0, fps = 0, inference_fps = 0;
  std::string limit;
  int64_t memory_bytes = 0;
  int sessions = 1, threads = 1;
};

// Stages work at the same time: the slowest bounds the rate, and so do the cores, which all of them share.
Expected expected(const models::Graph& graph, const RunFlags& flags, const engines::LoadOptions& load,
                  const predict::InferenceDevice& device, const AroundCost& around) {
  Expected found;
  found.sessions = load.sessions;
  found.threads = load.threads_per_session;
  found.infer_ms = predict::inference_time_ms(graph, flags.batch, device);
  const auto batch = static_cast<double>(flags.batch);
  found.inference_fps = 1e3 * batch * load.sessions / found.infer_ms;
  const double cores = collect::allowed_cores();
  // On a GPU a session's thread launches, and waits for the device without giving up its core.
  const int busy = device.queued ? 1 : load.threads_per_session;
  const double infer_cpu = found.infer_ms * busy / batch;
  // Sessions take turns on it; what they launch and copy meanwhile goes on beside.
  if (device.queued)
    found.inference_fps =
        std::min(found.inference_fps, 1e3 * batch / predict::device_time_ms(graph, flags.batch, device));
  const std::pair<const char*, double> limits[] = {
      {"infer", found.inference_fps},
      {"read", 1e3 / std::max(1e-6, around.read_ms)},
      {"prep", 1e3 / std::max(1e-6, around.prep_ms)},
      {"draw and write", flags.no_video ? HUGE_VAL : 1e3 / std::max(1e-6, around.write_ms)},
      {"cores", 1e3 * cores / (around.cpu_ms() + infer_cpu)}};
  found.fps = HUGE_VAL;
  for (const auto& [name, fps] : limits)
    if (fps < found.fps) found.fps = fps, found.limit = name;
  found.memory_bytes = device.queued ? predict::reserved_inference_bytes(graph, flags.batch, load.sessions)
                                     : load.sessions * predict::inference_bytes(graph, flags.batch);
  return found;
}

// What stands behind the figures of a GPU, and what does not.
std::vector<std::string> gpu_notes(const RunFlags& flags, const measure::GpuLook& gpu,
                                   const std::vector<measure::DeviceCalibration>& calibrations, double available) {
  std::vector<std::string> notes;
  const auto name = gpu.facts.find(flags.device + ".name");
  notes.push_back(fmt::format("{}{}: {}", flags.device, name == gpu.facts.end() ? "" : " (" + name->second + ")",
                              std::isfinite(available) ? fmt::format("{:.0f} MB are free", available / 1e6)
                                                       : "NVML does not tell what is free, so it is taken to fit"));
  notes.emplace_back(
      "memory is the context, weights and what the allocator reserves for each session; not workspaces that a network "
      "takes beyond those of the calibration");
  for (const measure::DeviceCalibration& one : calibrations)
    if (one.context_mib <= 0)
      notes.push_back(
          fmt::format("{}: the calibration does not know its context, some hundreds of MB more", one.engine));
  notes.emplace_back(
      "layers that are too small to fill the device are taken to run at its full rate: with small networks and batches "
      "the time is a lower end; a model of measured networks knows better (strobe model profile --device, then model "
      "fit)");
  if (flags.prep_on_gpu)
    notes.emplace_back(
        "--prep-on-gpu: what preparing takes was measured on the CPU, whose cores the run will have for others");
  if (flags.precision != "f32") notes.push_back("the device was calibrated with float32, not with " + flags.precision);
  return notes;
}

}  // namespace

Result<int> dry_run(const RunFlags& flags, const RunDryOptions& dry, const std::atomic<bool>& stop) {
  STROBE_ASSIGN(const report::Format format, report::parse_format(flags.format));
  STROBE_ASSIGN(const Words words, parse_words(flags));
  STROBE_ASSIGN(const RunMode mode, run_mode(flags));
  if (mode == RunMode::kRetrain)
    return unsupported("--dry-run of --mode retrain: `strobe model predict` tells of training");
  models::OpenOptions open;
  open.width = words.width;
  open.height = words.height;
  open.seed = flags.seed;
  STROBE_ASSIGN(const models::Graph graph, models::open_graph(flags.model, open));
  const bool on_gpu = flags.device != "cpu";
  if (on_gpu && !flags.split_point.empty())
    return unsupported("--dry-run of a split network on a GPU: what its two parts take together is not modelled");
  if (!flags.split_engine.empty())
    return unsupported("--dry-run with --split-engine: what two engines take together is not modelled");
  measure::GpuLook gpu;  // before anything here has threads
  if (on_gpu) {
    STROBE_ASSIGN(gpu, measure::look_at_gpu(flags.engines, flags.device, {}, &stop));
  }
  std::vector<measure::DeviceCalibration> calibrations;
  if (on_gpu) {
    const auto name = gpu.facts.find(flags.device + ".name");
    for (const std::string& engine : flags.engines) {
      STROBE_ASSIGN(calibrations.emplace_back(),
                    device_calibration(engine, flags.device, name == gpu.facts.end() ? "" : name->second, 0, dry.device,
                                       dry.seconds, stop));
    }
  }
  STROBE_ASSIGN(const AroundCost around, around_cost(flags, words, graph, stop));
  Json runs = Json::array();
  Table table(fmt::format("Expected of {} on {}", graph.name, flags.input),
              {{"engine", "", 0},
               {"batch", "", 0},
               {"sessions", "", 0},
               {"threads", "of each", 0},
               {"infer_ms", "of a batch, predicted from its layers", 2},
               {"inference_fps", "of the network alone", 1},
               {"end_to_end_fps", "", 1},
               {"limit", "what bounds it", 0},
               {"memory_mb", "of weights and activations, besides the engine itself", 1}});
  const auto facts = collect::machine_facts();
  const auto fact = facts.find("memory.available_mib");
  double available = fact == facts.end() ? HUGE_VAL : std::strtod(fact->second.c_str(), nullptr) * 0x1p20;
  if (on_gpu) available = gpu.free_bytes < 0 ? HUGE_VAL : static_cast<double>(gpu.free_bytes);
  bool all_fit = true;
  for (const std::string& engine : flags.engines) {
    engines::LoadOptions load;
    load.hint = words.hint;
    set_threads(flags, load);
    if (!on_gpu) {
      STROBE_ASSIGN(calibrations.emplace_back(), device_calibration(engine, flags.device, "", load.threads_per_session,
                                                                    dry.device, dry.seconds, stop));
    }
    const measure::DeviceCalibration& calibration = calibrations[runs.size()];
    Expected its = expected(graph, flags, load, inference_device(calibration), around);
    its.memory_bytes += static_cast<int64_t>(calibration.context_mib * 0x1p20);
    const bool fits = static_cast<double>(its.memory_bytes) <= available;
    all_fit = all_fit && fits;
    table.add_row({engine, flags.batch, static_cast<int64_t>(its.sessions), static_cast<int64_t>(its.threads),
                   its.infer_ms, its.inference_fps, its.fps, its.limit, static_cast<double>(its.memory_bytes) / 1e6});
    runs.push_back({{"engine", engine},
                    {"device", flags.device},
                    {"batch", flags.batch},
                    {"sessions", its.sessions},
                    {"threads_per_session", its.threads},
                    {"infer_ms", its.infer_ms},
                    {"inference_fps", its.inference_fps},
                    {"end_to_end_fps", its.fps},
                    {"limit", its.limit},
                    {"memory_bytes", its.memory_bytes},
                    {"fits", fits}});
  }
  std::vector<std::string> notes;
  if (on_gpu) notes = gpu_notes(flags, gpu, calibrations, available);
  if (format == report::Format::kJson) {
    const Json result{
        {"dry_run", true},
        {"model", flags.model},
        {"input", flags.input},
        {"notes", notes},
        {"available_memory_bytes", std::isfinite(available) ? Json(available) : Json()},
        {"around_cpu_ms", {{"read", around.read_ms}, {"prep", around.prep_ms}, {"draw_and_write", around.write_ms}}},
        {"fits", all_fit},
        {"runs", runs}};
    fmt::print("{}\n", result.dump(2, ' ', false, Json::error_handler_t::replace));
    return all_fit ? 0 : 1;
  }
  table.notes.push_back(fmt::format("measured on {} frames, CPU ms each: read {:.2f}, prep {:.2f}{}", around.frames,
                                    around.read_ms, around.prep_ms,
                                    flags.no_video ? "" : fmt::format(", draw and write {:.2f}", around.write_ms)));
  table.notes.insert(table.notes.end(), notes.begin(), notes.end());
  table.notes.emplace_back("predicted, not measured: the network was not run");
  fmt::print("{}", report::format_table(table, format));
  return all_fit ? 0 : 1;
}

}  // namespace strobe::app
