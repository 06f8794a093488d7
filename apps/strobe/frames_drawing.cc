#include "frames_drawing.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collect/machine.h"
#include "media/common/picture_files.h"
#include "media/draw.h"
#include "media/sink.h"
#include "pipeline/runner.h"

namespace strobe::app {

namespace fs = std::filesystem;

namespace {

// The frames of the input with the names of their pictures. A folder is read picture by picture, as its source does it:
// by name, what cannot be decoded left out.
class NamedSource {
 public:
  static Result<NamedSource> open(const DrawingOptions& options) {
    NamedSource named;
    if (options.source.kind == "folder") {
      STROBE_ASSIGN(named.pictures_, media::list_pictures(options.input));
      return named;
    }
    if (options.source.kind == "picture") {
      named.pictures_ = {options.input};
      return named;
    }
    STROBE_ASSIGN(named.video_, media::open_source(options.input, {}));
    return named;
  }

  Result<std::optional<media::Frame>> next(std::string& name) {
    if (video_) {
      STROBE_ASSIGN(auto frame, video_->next());
      if (frame) name = fmt::format("f_{:06}", frame->index + 1);
      return frame;
    }
    while (position_ < pictures_.size()) {
      const std::string& path = pictures_[position_++];
      auto source = media::open_source(path, {});
      if (!source) continue;
      auto frame = (*source)->next();
      if (!frame || !*frame) continue;
      name = fs::path(path).filename().string();
      return frame;
    }
    return std::optional<media::Frame>();
  }

 private:
  std::vector<std::string> pictures_;
  size_t position_ = 0;
  std::unique_ptr<media::Source> video_;
};

class Drawing {
 public:
  Drawing(const DrawingOptions& options, const std::vector<pipeline::FrameDetections>& detections,
          const std::vector<std::string>& labels)
      : options_(options),
        detections_(detections),
        labels_(labels),
        as_video_(options.source.kind == "file" && !options.pictures_of_video) {
    drawn_.reserve(detections.size());  // so that stages may look while the reader adds
    paths_.reserve(detections.size());
  }

  Result<std::vector<DrawnFrame>> run() {
    STROBE_ASSIGN(NamedSource source, NamedSource::open(options_));
    if (as_video_) {
      media::WriterOptions writing;
      if (options_.source.fps > 0) writing.fps = options_.source.fps;
      STROBE_ASSIGN(writer_, media::open_video_writer(options_.folder / "annotated.mp4", options_.source.width,
                                                      options_.source.height, writing));
    }
    const int cores = std::max(1, static_cast<int>(collect::allowed_cores()));
    pipeline::RunnerOptions running;
    running.on_progress = options_.on_progress;
    const std::vector<pipeline::Stage> stages = {
        {.name = "draw",
         .workers = cores,
         .work = [this](auto& batch, size_t i, int) { return draw(batch.frames[i]); }},
        {.name = "write",
         .workers = as_video_ ? 1 : cores,
         .ordered = as_video_,
         .work = [this](auto& batch, size_t i, int) { return write(batch.frames[i]); }}};
    const auto result = pipeline::run_pipeline(
        "read", [&] { return read(source); }, [](pipeline::Batch&) {}, stages,
        [this] { return writer_ ? writer_->finish() : Result<void>(); }, running);
    if (!result.ended) return Error(result.ended.error());
    return drawn_;
  }

 private:
  Result<std::optional<media::Frame>> read(NamedSource& source) {
    if (drawn_.size() == detections_.size()) return std::optional<media::Frame>();
    std::string name;
    auto frame = source.next(name);
    // The first pass has told of it.
    if (!frame || !*frame) return std::optional<media::Frame>();
    const bool is_video = options_.source.kind == "file";
    paths_.push_back(options_.folder / picture_name(is_video ? name + "." + options_.format : name));
    drawn_.push_back({is_video ? name + "." + options_.format : name, (*frame)->width, (*frame)->height});
    return frame;
  }

  // The same name with the format's extension; a second picture that would get it keeps its own before it.
  std::string picture_name(const std::string& source_name) {
    std::string name = fs::path(source_name).stem().string() + "." + options_.format;
    if (!names_.insert(name).second) names_.insert(name = source_name + "." + options_.format);
    return name;
  }

  Result<void> draw(pipeline::FrameWork& item) const {
    std::vector<media::Annotation> annotations;
    for (const models::Detection& box : detections_[static_cast<size_t>(item.frame.index)].boxes)
      annotations.push_back({box.x, box.y, box.width, box.height,
                             fmt::format("{} {:.0f}%", label(box.class_id), 100 * box.score),
                             media::class_colour(box.class_id)});
    STROBE_ASSIGN(item.drawn, media::draw(item.frame, annotations));
    return {};
  }

  Result<void> write(const pipeline::FrameWork& item) {
    if (writer_) return writer_->write(item.drawn);
    return media::write_picture(paths_[static_cast<size_t>(item.frame.index)], item.drawn);
  }

  std::string label(int class_id) const {
    const auto id = static_cast<size_t>(class_id);
    return id < labels_.size() ? labels_[id] : fmt::format("class {}", class_id);
  }

  const DrawingOptions& options_;
  const std::vector<pipeline::FrameDetections>& detections_;
  const std::vector<std::string>& labels_;
  const bool as_video_;
  std::unique_ptr<media::VideoWriter> writer_;
  std::vector<DrawnFrame> drawn_;
  std::vector<fs::path> paths_;
  std::set<std::string> names_;
};

}  // namespace

Result<std::vector<DrawnFrame>> draw_frames(const DrawingOptions& options,
                                            const std::vector<pipeline::FrameDetections>& detections,
                                            const std::vector<std::string>& labels) {
  return Drawing(options, detections, labels).run();
}

}  // namespace strobe::app
