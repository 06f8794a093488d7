#include "pipeline/video_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <mutex>

#include "media/draw.h"
#include "media/filter.h"
#include "media/preprocess.h"
#include "models/exported_yolo.h"
#include "models/yolo.h"
#include "models/zoo.h"
#include "pipeline/layer_ranges.h"
#include "pipeline/network_input.h"
#include "pipeline/split_network.h"
#include "pipeline/stage_alone.h"
#include "strobe/record/annotate.h"

namespace strobe::pipeline {

namespace {

// What the passes after the run work on: the first frames of the source, consecutive as an encoder needs them.
constexpr size_t kFewestSamples = 8, kMostSamples = 96;
constexpr size_t kSamplePixels = 96UL << 20;

// One run: what is open, and the stages over it. Members are set up before any stage thread starts; each is then used
// by one stage only.
class VideoRun {
 public:
  VideoRun(engines::Engine& engine, const engines::ModelSource& model, const VideoRunOptions& options)
      : engine_(engine), model_(model), options_(options) {
    if (const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&model)) graph_ = graph->get();
  }

  Result<void> open() {
    media::SourceOptions source = options_.source;
    source.pictures_in_flight = pictures_in_flight();
    STROBE_ASSIGN(source_, media::open_source(options_.input, source));
    result_.source = source_->info();
    if (!options_.prep_filter.empty()) {
      STROBE_ASSIGN(filter_, media::open_filter(options_.prep_filter));
    }
    STROBE_ASSIGN(network_, load_network(options_.load));
    STROBE_TRY(check_network());
    if (options_.load.device != "cpu") {
      STROBE_ASSIGN(const auto kernels, network_->kernels());
      layer_ranges_ = std::make_unique<LayerRanges>(kernels);
    }
    if (options_.prep_on_device) {
      STROBE_ASSIGN(preprocessor_, network_->create_preprocessor(options_.prep));
    }
    if (options_.no_video) return {};
    STROBE_ASSIGN(writer_, open_writer(options_.video));
    return {};
  }

  void run() {
    RunnerOptions options;
    options.queue_capacity = options_.queue_capacity;
    options.batch_size = options_.load.batch;
    options.max_frames = options_.max_frames;
    options.drop = options_.drop.value_or(result_.source.live ? DropPolicy::kOldest : DropPolicy::kNever);
    options.stop = options_.stop;
    const int64_t total = expected_frames();
    if (options_.on_progress)
      options.on_progress = [this, total](int64_t finished) { options_.on_progress(finished, total); };
    const ReadFrame read = [this]() -> Result<std::optional<media::Frame>> {
      auto frame = source_->next();
      // Frames of a live source do not come back; those of a file are read again, as kept ones would cost the run
      // memory that it has to touch first.
      if (result_.source.live && frame && *frame && more_samples()) samples_.push_back(**frame);
      return frame;
    };
    const auto finish = [this]() -> Result<void> { return writer_ ? writer_->finish() : Result<void>(); };
    record_facts();
    result_.run = run_pipeline(
        "read", read, [this](Batch& batch) { prepare(batch); }, stages(), finish, options);
    result_.damaged = source_->damaged();
    result_.reconnected = source_->reconnected();
    writer_.reset();
  }

  // The passes after the clock stopped. They explain the run and must not spoil it: their failure is a note.
  void run_afterwards() {
    if (stop_requested() || result_.run.read == 0) return;
    STROBE_RANGE("afterwards");
    const auto note = [this](Result<void> done, std::string_view what) {
      if (!done) result_.notes.push_back(fmt::format("{}: {}", what, done.error().to_string()));
    };
    source_.reset();
    note(take_samples(), "the stages were not run alone");
    if (samples_.empty()) return;
    note(keep_outputs(), "raw outputs were not kept");
    if (options_.alone_seconds > 0) note(run_alone(), "limit_fps is not known");
    if (options_.profiled_runs > 0) note(profile_layers(), "layers were not profiled");
  }

  VideoRunResult take_result() { return std::move(result_); }

 private:
  bool stop_requested() const { return options_.stop && options_.stop->load(std::memory_order_relaxed); }

  // The queues before and behind the preprocessing fill up while the network is the slowest stage; behind it, a batch a
  // session waits at most, and one lies in each stage.
  int pictures_in_flight() const {
    const int64_t batches =
        2 * static_cast<int64_t>(options_.queue_capacity) + 2 * static_cast<int64_t>(options_.load.sessions) + 6;
    return static_cast<int>(std::min<int64_t>(batches * options_.load.batch, 4096));
  }

  bool more_samples() const {
    const size_t pixels = static_cast<size_t>(result_.source.width) * static_cast<size_t>(result_.source.height);
    return samples_.size() < kMostSamples && (samples_.size() + 1) * pixels <= std::max(kSamplePixels, pixels);
  }

  Result<void> take_samples() {
    if (result_.source.live) return {};
    STROBE_ASSIGN(const auto source, media::open_source(options_.input, options_.source));
    // As many as the run got through in the time that a stage has: the slowest one must see each of them.
    const double rate = static_cast<double>(result_.run.finished) / std::max(result_.run.seconds, 1e-9);
    const auto most = std::min(static_cast<size_t>(result_.run.read),
                               std::max(kFewestSamples, static_cast<size_t>(rate * options_.alone_seconds)));
    while (samples_.size() < most && more_samples() && !stop_requested()) {
      STROBE_ASSIGN(std::optional<media::Frame> frame, source->next());
      if (!frame) break;
      samples_.push_back(std::move(*frame));
    }
    return {};
  }

  int64_t expected_frames() const {
    const int64_t of_source = result_.source.frames;
    if (options_.max_frames == 0) return of_source;
    return of_source == 0 ? options_.max_frames : std::min(of_source, options_.max_frames);
  }

  Result<std::unique_ptr<engines::Network>> load_network(const engines::LoadOptions& load) const {
    if (options_.split_layer.empty()) return engine_.load(model_, load);
    if (!graph_) return unsupported("only built-in networks and Darknet's can be split, not a file of an engine's own");
    STROBE_ASSIGN(const models::SplitGraph split, models::split_graph(*graph_, options_.split_layer));
    return load_split(options_.first_part ? *options_.first_part : engine_, engine_, split, load);
  }

  // What a network on pictures needs: one NCHW input of three channels.
  Result<void> check_network() {
    const auto& inputs = network_->inputs();
    if (inputs.size() != 1 || inputs[0].shape.size() != 4 || inputs[0].shape[1] != 3)
      return unsupported("the network's input is not one picture (batch x 3 x height x width)");
    models::InputRule rule;
    const auto& outputs = network_->outputs();
    classifies_ = outputs.size() == 1 && outputs[0].shape.size() == 4 && outputs[0].shape[2] * outputs[0].shape[3] == 1;
    if (graph_) {
      rule = graph_->input_rule;
      result_.labels = graph_->labels;
    }
    if (classifies_)
      softmax_ = !graph_ || !std::holds_alternative<models::Softmax>(graph_->layer(graph_->outputs[0]).operation);
    else if (auto made = graph_ ? decoder_of_graph() : decoder_of_file(rule); !made)
      result_.notes.push_back("no boxes are decoded: " + made.error().to_string());
    format_ = input_format(rule, static_cast<int>(inputs[0].shape[3]), static_cast<int>(inputs[0].shape[2]));
    if (graph_ && !graph_->trained)
      result_.notes.push_back(fmt::format(
          "{} runs on seeded weights, not trained ones: its {} are meaningless, so none are {} (give --weights)",
          graph_->name, classifies_ ? "classes" : "boxes", classifies_ ? "written" : "drawn or written"));
    return {};
  }

  Result<void> decoder_of_graph() {
    STROBE_ASSIGN(auto decoder, models::YoloDecoder::create(*graph_, options_.detect));
    decoder_ = std::make_unique<models::YoloDecoder>(std::move(decoder));
    return {};
  }

  // A file says nothing about its boxes; the shapes of its outputs do.
  Result<void> decoder_of_file(models::InputRule& rule) {
    result_.labels = options_.labels;
    std::vector<std::vector<int64_t>> shapes;
    for (const auto& output : network_->outputs()) shapes.push_back(output.shape);
    const auto& input = network_->inputs()[0].shape;
    STROBE_ASSIGN(auto decoder, models::ExportedYoloDecoder::create(shapes, input[2], input[3], options_.detect));
    rule.fit = models::InputRule::Fit::kLetterbox;
    if (result_.labels.empty() && decoder->classes() == 80) result_.labels = models::coco_names();
    result_.notes.push_back(decoder->description());
    decoder_ = std::move(decoder);
    return {};
  }

  Result<std::unique_ptr<media::VideoWriter>> open_writer(const std::filesystem::path& path) const {
    media::WriterOptions options = options_.writer;
    if (result_.source.fps > 0) options.fps = result_.source.fps;
    return media::open_video_writer(path, result_.source.width, result_.source.height, options);
  }

  void prepare(Batch& batch) const {
    if (preprocessor_) {
      // Where there is no memory for it, the stage prep says so.
      if (auto made = preprocessor_->create_input()) batch.on_device = std::move(*made);
    } else {
      batch.input.assign(static_cast<size_t>(network_->inputs()[0].elements()), 0.0F);
    }
    batch.outputs.clear();
    for (const auto& output : network_->outputs())
      batch.outputs.emplace_back(static_cast<size_t>(output.elements()), 0.0F);
  }

  std::vector<Stage> stages() {
    std::vector<Stage> all;
    all.push_back({.name = "prep",
                   .start = [this](int) { return warm_up_preprocessor(); },
                   .work = [this](Batch& b, size_t i, int) { return preprocess(b, i); }});
    all.push_back({.name = "infer",
                   .workers = options_.load.sessions,
                   .per_batch = true,
                   .start = [this](int worker) { return start_session(worker); },
                   .work = [this](Batch& b, size_t, int worker) { return infer(b, worker); }});
    all.push_back({.name = "post", .ordered = true, .work = [this](Batch& b, size_t i, int) { return post(b, i); }});
    if (options_.no_video) return all;
    all.push_back({.name = "draw", .ordered = true, .work = [this](Batch& b, size_t i, int) { return draw(b, i); }});
    all.push_back({.name = "write", .ordered = true, .work = [this](Batch& b, size_t i, int) {
                     return write(b.frames[i].drawn);
                   }});
    return all;
  }

  Result<void> preprocess(Batch& batch, size_t index) const {
    if (preprocessor_) {
      if (!batch.on_device) {
        STROBE_ASSIGN(batch.on_device, preprocessor_->create_input());
      }
      STROBE_ASSIGN(const PictureBytes picture, media::picture_bytes(batch.frames[index].frame, format_));
      return preprocessor_->put(picture, static_cast<int64_t>(index), *batch.on_device);
    }
    const size_t item = batch.input.size() / static_cast<size_t>(options_.load.batch);
    float* const input = batch.input.data() + index * item;
    const media::Frame& frame = batch.frames[index].frame;
    if (!filter_) return media::preprocess(frame, format_, input);
    STROBE_ASSIGN(const media::Frame filtered, filter_->apply(frame));
    return media::preprocess(filtered, format_, input);
  }

  // The first one of a file or folder, looked at twice; of what comes but once, a grey one.
  PictureBytes warm_up_picture() const {
    std::error_code ignored;
    const std::filesystem::path path = options_.input;
    if (options_.input.starts_with("synthetic://") || std::filesystem::is_regular_file(path, ignored) ||
        std::filesystem::is_directory(path, ignored))
      if (auto source = media::open_source(options_.input, options_.source))
        if (const auto frame = (*source)->next(); frame && *frame)
          if (auto picture = media::picture_bytes(**frame, format_)) return std::move(*picture);
    return grey_picture(format_);
  }

  // What libraries make at a thread's first calls, and engines for a kind of picture, is no picture's work.
  Result<void> warm_up_preprocessor() const {
    if (!preprocessor_ || options_.warmup == 0) return {};
    STROBE_ASSIGN(const auto input, preprocessor_->create_input());
    const PictureBytes picture = warm_up_picture();
    for (int i = 0; i < options_.warmup && !stop_requested(); ++i) STROBE_TRY(preprocessor_->put(picture, 0, *input));
    return {};
  }

  Result<void> start_session(int worker) {
    STROBE_ASSIGN(auto session, network_->create_session());
    if (layer_ranges_) session->listen(layer_ranges_.get());
    Batch batch;
    prepare(batch);
    for (int i = 0; i < options_.warmup && !stop_requested(); ++i) STROBE_TRY(infer_with(*session, batch));
    const std::lock_guard lock(sessions_mutex_);
    sessions_.resize(std::max(sessions_.size(), static_cast<size_t>(options_.load.sessions)));
    sessions_[static_cast<size_t>(worker)] = std::move(session);
    return {};
  }

  Result<void> infer(Batch& batch, int worker) { return infer_with(*sessions_[static_cast<size_t>(worker)], batch); }

  static Result<void> infer_with(engines::Session& session, Batch& batch) {
    std::vector<float*> outputs;
    outputs.reserve(batch.outputs.size());
    for (auto& output : batch.outputs) outputs.push_back(output.data());
    if (batch.on_device) return session.run_prepared(*batch.on_device, outputs);
    const float* input = batch.input.data();
    return session.run(std::span(&input, 1), outputs);
  }

  // The values of one item of a batch, one pointer an output.
  std::vector<const float*> item_outputs(const Batch& batch, size_t index) const {
    std::vector<const float*> pointers;
    for (const auto& output : batch.outputs)
      pointers.push_back(output.data() + index * (output.size() / static_cast<size_t>(options_.load.batch)));
    return pointers;
  }

  Result<void> post(Batch& batch, size_t index) {
    FrameWork& item = batch.frames[index];
    item.detections.clear();
    if (decoder_) {
      const media::Placement placed = media::place(item.frame.width, item.frame.height, format_);
      item.detections = decoder_->decode(item_outputs(batch, index), {placed.x, placed.y, placed.width, placed.height,
                                                                      item.frame.width, item.frame.height});
    }
    if (graph_ && !graph_->trained) item.detections.clear();
    if (collecting_) {
      result_.detections.push_back({item.frame.index, item.frame.time_s, item.detections});
      if (classifies_ && !(graph_ && !graph_->trained))
        result_.detections.back().classes = best_classes(item_outputs(batch, index)[0]);
    }
    return {};
  }

  std::vector<ClassScore> best_classes(const float* values) const {
    constexpr size_t kBest = 5;
    const auto count = static_cast<size_t>(network_->outputs()[0].shape[1]);
    std::vector<ClassScore> all(count);
    const float largest = *std::max_element(values, values + count);
    float sum = 0;
    for (size_t i = 0; i < count; ++i) {
      all[i] = {static_cast<int>(i), softmax_ ? std::exp(values[i] - largest) : values[i]};
      sum += all[i].score;
    }
    const size_t kept = std::min(kBest, count);
    std::partial_sort(all.begin(), all.begin() + static_cast<std::ptrdiff_t>(kept), all.end(),
                      [](const ClassScore& a, const ClassScore& b) { return a.score > b.score; });
    all.resize(kept);
    if (softmax_)
      for (ClassScore& one : all) one.score /= sum;
    return all;
  }

  Result<void> draw(Batch& batch, size_t index) {
    FrameWork& item = batch.frames[index];
    std::vector<media::Annotation> annotations;
    for (const models::Detection& box : item.detections)
      annotations.push_back({box.x, box.y, box.width, box.height,
                             fmt::format("{} {:.0f}%", label(box.class_id), 100 * box.score),
                             media::class_colour(box.class_id)});
    STROBE_ASSIGN(item.drawn, media::draw(item.frame, annotations));
    return {};
  }

  Result<void> write(const media::Frame& frame) {
    if (collecting_ && !options_.picture.empty() && result_.source.kind == "picture")
      STROBE_TRY(media::write_picture(options_.picture, frame));
    return writer_->write(frame);
  }

  std::string label(int class_id) const {
    if (static_cast<size_t>(class_id) < result_.labels.size()) return result_.labels[static_cast<size_t>(class_id)];
    return fmt::format("class {}", class_id);
  }

  void record_facts() const {
    std::string names = "read";
    for (const char* stage : {"prep", "infer", "post"}) names += std::string(",") + stage;
    if (!options_.no_video) names += ",draw,write";
    record::fact("pipeline.stages", names);
    record::fact("pipeline.sessions", std::to_string(options_.load.sessions));
    record::fact("pipeline.threads_per_session", std::to_string(options_.load.threads_per_session));
    record::fact("pipeline.batch", std::to_string(options_.load.batch));
    record::fact("pipeline.queue_capacity", std::to_string(options_.queue_capacity));
    record::fact("input.kind", result_.source.kind);
    record::fact("input.codec", result_.source.codec);
    if (!options_.source.hwaccel.empty()) record::fact("input.hwaccel", options_.source.hwaccel);
    record::fact("input.size", fmt::format("{}x{}", result_.source.width, result_.source.height));
    record::fact("input.fps", fmt::format("{:.6g}", result_.source.fps));
    if (!options_.prep_filter.empty()) record::fact("prep.filter", options_.prep_filter);
    if (preprocessor_) record::fact("prep.device", options_.load.device);
    if (preprocessor_ && options_.prep.smoothing_sigma > 0)
      record::fact("prep.filter", fmt::format("gblur=sigma={:g}", options_.prep.smoothing_sigma));
    if (!options_.split_layer.empty()) record::fact("model.split_behind", options_.split_layer);
    for (const auto& [key, value] : network_->facts()) record::fact("engine." + key, value);
    if (graph_) record::fact("model.trained", graph_->trained ? "true" : "false");
  }

  // Batches of sample frames, ready for the first stage: enough for every worker of every stage.
  std::vector<BatchPtr> sample_batches() const {
    const auto size = static_cast<size_t>(options_.load.batch);
    const size_t count =
        std::max({(samples_.size() + size - 1) / size, static_cast<size_t>(options_.load.sessions), size_t{2}});
    std::vector<BatchPtr> batches;
    for (size_t b = 0; b < count; ++b) {
      auto batch = std::make_unique<Batch>();
      prepare(*batch);
      for (size_t i = 0; i < size; ++i)
        batch->frames.push_back({.frame = samples_[(b * size + i) % samples_.size()], .detections = {}, .drawn = {}});
      batches.push_back(std::move(batch));
    }
    return batches;
  }

  Result<void> run_alone() {
    collecting_ = false;
    if (!result_.source.live) {
      STROBE_ASSIGN(auto source, media::open_source(options_.input, options_.source));
      STROBE_TRY(run_read_alone(
          "read", [&] { return source->next(); }, options_.alone_seconds, options_.stop));
    }
    if (!options_.no_video) {
      STROBE_ASSIGN(writer_, open_writer({}));
    }
    // Each stage leaves the batches as the next one needs them.
    auto batches = sample_batches();
    for (const Stage& stage : stages())
      STROBE_TRY(run_stage_alone(stage, batches, options_.alone_seconds, options_.stop));
    writer_.reset();
    return {};
  }

  Result<void> keep_outputs() {
    if (options_.kept_outputs <= 0) return {};
    STROBE_ASSIGN(auto session, network_->create_session());
    result_.outputs.resize(network_->outputs().size());
    const auto count = std::min(samples_.size(), static_cast<size_t>(options_.kept_outputs));
    for (size_t i = 0; i < count; ++i) {
      Batch batch;
      prepare(batch);
      batch.frames.push_back({.frame = samples_[i], .detections = {}, .drawn = {}});
      STROBE_TRY(preprocess(batch, 0));
      STROBE_TRY(infer_with(*session, batch));
      for (size_t o = 0; o < batch.outputs.size(); ++o) {
        const size_t item = batch.outputs[o].size() / static_cast<size_t>(options_.load.batch);
        result_.outputs[o].emplace_back(batch.outputs[o].begin(),
                                        batch.outputs[o].begin() + static_cast<std::ptrdiff_t>(item));
      }
    }
    return {};
  }

  Result<void> profile_layers() {
    engines::LoadOptions load = options_.load;
    load.sessions = 1;
    load.profile_layers = true;
    STROBE_ASSIGN(const auto network, load_network(load));
    STROBE_ASSIGN(const auto session, network->create_session());
    auto batches = sample_batches();
    Batch& batch = *batches.front();
    STROBE_TRY(preprocess(batch, 0));
    for (int i = 0; i < std::max(1, options_.warmup); ++i) STROBE_TRY(infer_with(*session, batch));
    STROBE_ASSIGN(result_.layers.kernels, network->kernels());
    result_.layers.duration_ns.resize(result_.layers.kernels.size());
    for (int i = 0; i < options_.profiled_runs && !stop_requested(); ++i) {
      {
        STROBE_RANGE("profiled inference");
        STROBE_TRY(infer_with(*session, batch));
      }
      STROBE_ASSIGN(const auto times, session->kernel_times());
      for (const engines::KernelTime& time : times) result_.layers.duration_ns[time.kernel].push_back(time.duration_ns);
    }
    return {};
  }

  engines::Engine& engine_;
  const engines::ModelSource& model_;
  const VideoRunOptions& options_;
  const models::Graph* graph_ = nullptr;
  std::unique_ptr<media::Source> source_;
  std::unique_ptr<engines::Network> network_;
  std::unique_ptr<engines::Preprocessor> preprocessor_;  // used by the stage prep; null: on the CPU
  std::unique_ptr<models::BoxDecoder> decoder_;
  std::unique_ptr<media::VideoWriter> writer_;
  media::InputFormat format_;
  std::unique_ptr<media::PictureFilter> filter_;  // used by the stage prep; null: none
  bool classifies_ = false, softmax_ = false;     // softmax_: the network leaves it to us
  std::unique_ptr<LayerRanges> layer_ranges_;     // of a network on a GPU; null on the CPU
  std::mutex sessions_mutex_;
  std::vector<std::unique_ptr<engines::Session>> sessions_;
  std::vector<media::Frame> samples_;
  bool collecting_ = true;  // detections go into the result: in the run itself, not in the passes after it
  VideoRunResult result_;
};

}  // namespace

Result<VideoRunResult> run_video(engines::Engine& engine, const engines::ModelSource& model,
                                 const VideoRunOptions& options) {
  VideoRun run(engine, model, options);
  STROBE_TRY(run.open());
  if (options.on_start) options.on_start();
  run.run();
  run.run_afterwards();
  return run.take_result();
}

}  // namespace strobe::pipeline
