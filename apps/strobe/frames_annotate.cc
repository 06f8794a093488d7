#include "frames_annotate.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/file.h"
#include "base/suggest.h"
#include "collect/machine.h"
#include "engines/loader.h"
#include "frames_drawing.h"
#include "media/source.h"
#include "models/box_decoder.h"
#include "models/coco.h"
#include "models/model.h"
#include "models/yolo.h"
#include "pipeline/video_run.h"
#include "progress_line.h"
#include "run_words.h"

namespace strobe::app {

namespace fs = std::filesystem;

namespace {

Result<void> check(const AnnotateFlags& flags) {
  if (flags.format != "png" && flags.format != "jpg")
    return usage_error(fmt::format("--format {}: expected jpg or png", flags.format));
  if (!(flags.threshold >= 0 && flags.threshold <= 1))
    return usage_error(fmt::format("--threshold {:g}: expected 0..1", flags.threshold));
  if (!(flags.nms >= 0 && flags.nms <= 1)) return usage_error(fmt::format("--nms {:g}: expected 0..1", flags.nms));
  STROBE_TRY(engines::check_engine(flags.engine));
  std::error_code absent;
  const fs::path input(flags.input);
  if (!fs::exists(input, absent)) return not_found(flags.input + ": no such file or folder");
  const fs::path folder = fs::is_directory(input, absent) ? input
                          : input.parent_path().empty()   ? "."
                                                          : input.parent_path();
  if (fs::equivalent(folder, flags.output, absent))
    return usage_error(fmt::format("-o {}: holds the input; its pictures would be overwritten", flags.output));
  return {};
}

struct Detector {
  std::shared_ptr<engines::Engine> engine;
  engines::ModelSource model;
  pipeline::VideoRunOptions options;
};

Result<Detector> open_detector(const AnnotateFlags& flags, const std::atomic<bool>& stop) {
  RunFlags run;
  run.input = flags.input;
  run.model = flags.model;
  run.weights = flags.weights;
  run.labels = flags.labels;
  run.size = flags.size;
  STROBE_ASSIGN(const Words words, parse_words(run));
  Detector detector;
  STROBE_ASSIGN(detector.engine, engines::open_engine(flags.engine));
  STROBE_ASSIGN(detector.model, open_model(run, words, *detector.engine));
  pipeline::VideoRunOptions& options = detector.options;
  options.input = flags.input;
  options.no_video = true;
  options.detect.score_threshold = flags.threshold;
  options.detect.nms_threshold = flags.nms;
  if (const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&detector.model)) {
    if (auto decoder = models::YoloDecoder::create(**graph, options.detect); !decoder)
      return unsupported(fmt::format("{} is no detector: {}", flags.model, decoder.error().to_string()));
    if (!(*graph)->trained)
      return usage_error(fmt::format(
          "{} has no trained weights, its boxes would be meaningless: give --weights FILE, or another --model",
          flags.model));
  } else {
    if (words.width > 0) options.load.input_shape = {3, words.height, words.width};
    if (!flags.labels.empty()) {
      STROBE_ASSIGN(options.labels, models::read_labels(flags.labels));
    }
  }
  options.load.hint = engines::Hint::kThroughput;
  options.load.sessions = std::max(1, static_cast<int>(collect::allowed_cores()));
  options.load.threads_per_session = 1;
  options.alone_seconds = 0;
  options.profiled_runs = 0;
  options.stop = &stop;
  options.source.stop = &stop;
  return detector;
}

// The classes asked for, by id; empty: all.
Result<std::set<int>> wanted_classes(const std::vector<std::string>& classes, const std::vector<std::string>& labels) {
  std::set<int> wanted;
  for (const std::string& name : classes) {
    const auto found = std::find(labels.begin(), labels.end(), name);
    if (found == labels.end())
      return usage_error(fmt::format("--classes: the network has no class '{}'; {}", name, suggest(name, labels)));
    wanted.insert(static_cast<int>(found - labels.begin()));
  }
  return wanted;
}

models::CocoDataset to_coco(const AnnotateFlags& flags, const pipeline::VideoRunResult& found,
                            const std::vector<DrawnFrame>& drawn) {
  models::CocoDataset dataset;
  dataset.description =
      fmt::format("Boxes of {} on {}, score at least {:g}", flags.model, flags.engine, flags.threshold);
  dataset.input = flags.input;
  std::vector<std::string> labels = found.labels;
  for (const auto& frame : found.detections)
    for (const models::Detection& box : frame.boxes)
      while (labels.size() <= static_cast<size_t>(box.class_id))
        labels.push_back(fmt::format("class {}", labels.size()));
  dataset.categories = models::coco_categories(labels);
  const bool is_video = found.source.kind == "file";
  for (size_t i = 0; i < drawn.size(); ++i) {
    models::CocoImage image{.id = static_cast<int64_t>(i) + 1,
                            .file_name = drawn[i].source_name,
                            .width = drawn[i].width,
                            .height = drawn[i].height,
                            .frame = {},
                            .time_s = {}};
    if (is_video) {
      image.frame = found.detections[i].frame;
      image.time_s = found.detections[i].time_s;
    }
    for (const models::Detection& box : found.detections[i].boxes)
      dataset.annotations.push_back({.id = static_cast<int64_t>(dataset.annotations.size()) + 1,
                                     .image_id = image.id,
                                     .category_id = dataset.categories[static_cast<size_t>(box.class_id)].id,
                                     .x = box.x,
                                     .y = box.y,
                                     .width = box.width,
                                     .height = box.height,
                                     .area = static_cast<double>(box.width) * box.height,
                                     .is_crowd = false,
                                     .score = box.score});
    dataset.images.push_back(std::move(image));
  }
  return dataset;
}

std::string counts_by_class(const models::CocoDataset& dataset) {
  std::map<int64_t, int64_t> counts;
  for (const models::CocoAnnotation& box : dataset.annotations) ++counts[box.category_id];
  std::string text;
  for (const models::CocoCategory& category : dataset.categories)
    if (counts.contains(category.id))
      text += fmt::format("{}{} {}", text.empty() ? ": " : ", ", counts[category.id], category.name);
  return text;
}

}  // namespace

Result<int> annotate_frames(const AnnotateFlags& flags, const std::atomic<bool>& stop) {
  STROBE_TRY(check(flags));
  STROBE_ASSIGN(Detector detector, open_detector(flags, stop));
  const auto* graph = std::get_if<std::shared_ptr<const models::Graph>>(&detector.model);
  if (graph != nullptr) STROBE_TRY(wanted_classes(flags.classes, (*graph)->labels));
  STROBE_ASSIGN(const OutputFolder output_folder, OutputFolder::make(flags.output));
  ProgressLine progress(!flags.quiet);
  const auto show = [&](const char* what, int64_t done, int64_t of) {
    progress.show([&] { return fmt::format("{}  {}{}", what, done, of > 0 ? fmt::format("/{}", of) : ""); });
  };
  detector.options.on_progress = [&](int64_t done, int64_t of) { show("detecting", done, of); };
  STROBE_ASSIGN(pipeline::VideoRunResult found,
                pipeline::run_video(*detector.engine, detector.model, detector.options));
  // Of a file that only the engine reads this is known now.
  for (const std::string& note : found.notes)
    if (note.starts_with("no boxes are decoded: ")) return unsupported(fmt::format("{}: {}", flags.model, note));
  STROBE_ASSIGN(const std::set<int> wanted, wanted_classes(flags.classes, found.labels));
  for (auto& frame : found.detections)
    if (!wanted.empty()) std::erase_if(frame.boxes, [&](const auto& box) { return !wanted.contains(box.class_id); });

  DrawingOptions drawing;
  drawing.input = flags.input;
  drawing.source = found.source;
  drawing.folder = flags.output;
  drawing.format = flags.format;
  drawing.pictures_of_video = flags.pictures;
  drawing.on_progress = [&](int64_t done) { show("drawing", done, static_cast<int64_t>(found.detections.size())); };
  STROBE_ASSIGN(const std::vector<DrawnFrame> drawn, draw_frames(drawing, found.detections, found.labels));
  const models::CocoDataset dataset = to_coco(flags, found, drawn);
  const fs::path annotations = fs::path(flags.output) / "annotations.json";
  STROBE_TRY(write_file(annotations, models::format_coco(dataset)));
  fmt::print("{} boxes in {} pictures{}\n", dataset.annotations.size(), dataset.images.size(),
             counts_by_class(dataset));
  if (found.source.kind == "file" && !flags.pictures)
    fmt::print("video: {}\n", (fs::path(flags.output) / "annotated.mp4").string());
  fmt::print("annotations: {}\n", annotations.string());
  if (!flags.quiet && found.damaged > 0)
    fmt::print(stderr, "strobe: {} damaged pictures, packets or frames of the input were skipped\n", found.damaged);
  if (!found.run.ended) return Error(found.run.ended.error());
  if (found.run.stopped) return Error(ErrorKind::kInterrupted, "interrupted");
  return 0;
}

}  // namespace strobe::app
