#include "pipeline/training_set.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <random>
#include <set>

#include "media/common/natural_order.h"
#include "media/common/picture_files.h"

namespace strobe::pipeline {
namespace {

namespace fs = std::filesystem;

bool is_detector(const models::Graph& graph) {
  return std::holds_alternative<models::YoloHead>(graph.layer(graph.outputs.front()).operation);
}

int64_t class_count(const models::Graph& graph) {
  const models::Layer& output = graph.layer(graph.outputs.front());
  const auto* head = std::get_if<models::YoloHead>(&output.operation);
  return head ? head->classes : output.output.channels;
}

// What is known of the pictures before any is read: their labels by place in the source, and which are held out.
struct Labels {
  std::map<int64_t, engines::Target> of;  // by frame or place in the folder; held-out ones left out
  models::CocoDataset held_out;
};

// Class ids of a dataset's categories: by name where the network has labels, else in the order of the categories.
Result<std::map<int64_t, int>> class_ids(const models::CocoDataset& truth, const models::Graph& graph) {
  std::map<int64_t, int> ids;
  int next = 0;
  for (const models::CocoCategory& category : truth.categories) {
    if (graph.labels.empty()) {
      ids[category.id] = next++;
      continue;
    }
    const auto found = std::find(graph.labels.begin(), graph.labels.end(), category.name);
    if (found != graph.labels.end()) ids[category.id] = static_cast<int>(found - graph.labels.begin());
  }
  if (ids.empty())
    return bad_data(fmt::format(
        "none of its categories is a class of {}, which has {}{}", graph.name,
        fmt::join(graph.labels.begin(),
                  graph.labels.begin() + std::min<std::ptrdiff_t>(8, static_cast<std::ptrdiff_t>(graph.labels.size())),
                  ", "),
        graph.labels.size() > 8 ? ", ..." : ""));
  const auto classes = class_count(graph);
  if (next > classes) return bad_data(fmt::format("{} categories, {} has {} classes", next, graph.name, classes));
  return ids;
}

void keep_held_out(const models::CocoDataset& truth, const std::set<int64_t>& images, models::CocoDataset& kept) {
  kept.description = truth.description;
  kept.input = truth.input;
  kept.categories = truth.categories;
  for (const models::CocoImage& image : truth.images)
    if (images.contains(image.id)) kept.images.push_back(image);
  for (const models::CocoAnnotation& annotation : truth.annotations)
    if (images.contains(annotation.image_id)) kept.annotations.push_back(annotation);
}

// files: names of a folder's pictures in the order of the source; empty for a video.
Result<Labels> labels_of(const models::CocoDataset& truth, const models::Graph& graph,
                         const std::vector<std::string>& files, double hold_out) {
  if (truth.is_result_list) return bad_data("only results; expected a dataset with images and categories");
  STROBE_ASSIGN(const auto classes, class_ids(truth, graph));
  std::map<std::string, int64_t> place_of_file;
  for (size_t i = 0; i < files.size(); ++i)
    place_of_file[fs::path(files[i]).filename().string()] = static_cast<int64_t>(i);
  std::map<int64_t, const models::CocoImage*> image_at;  // by place in the source
  for (const models::CocoImage& image : truth.images) {
    if (!files.empty()) {
      const auto found = place_of_file.find(fs::path(image.file_name).filename().string());
      if (found != place_of_file.end()) image_at[found->second] = &image;
    } else if (image.frame) {
      image_at[*image.frame] = &image;
    }
  }
  if (image_at.empty())
    return bad_data(files.empty() ? "no image has a \"frame\", by which a video's pictures are found"
                                  : "no image has the name of a picture in the input folder");

  std::map<int64_t, engines::Target> target_of_image;
  std::map<int64_t, double> largest;  // by image: a classifier learns the class of the largest box
  const bool detector = is_detector(graph);
  for (const models::CocoAnnotation& one : truth.annotations) {
    const auto found = classes.find(one.category_id);
    if (found == classes.end() || one.is_crowd) continue;
    engines::Target& target = target_of_image[one.image_id];
    if (detector && one.width > 0 && one.height > 0)
      target.boxes.push_back({found->second, static_cast<float>(one.x + one.width / 2),
                              static_cast<float>(one.y + one.height / 2), static_cast<float>(one.width),
                              static_cast<float>(one.height)});
    double& largest_here = largest[one.image_id];
    if (target.class_id < 0 || one.area > largest_here) {
      target.class_id = found->second;
      largest_here = one.area;
    }
  }
  Labels labels;
  const auto kept = static_cast<size_t>(static_cast<double>(image_at.size()) * (1 - hold_out) + 0.5);
  std::set<int64_t> held_out;
  size_t place = 0;
  for (const auto& [at, image] : image_at) {
    if (place++ >= kept) {
      held_out.insert(image->id);
      continue;
    }
    engines::Target target = target_of_image[image->id];
    if (detector || target.class_id >= 0) labels.of[at] = std::move(target);
  }
  keep_held_out(truth, held_out, labels.held_out);
  if (labels.of.empty()) return bad_data("no labelled picture is left to train on");
  return labels;
}

// Draws at random from a few of the pictures to come: neighbours in a video are nearly the same picture.
class Shuffled : public TrainingSet {
 public:
  explicit Shuffled(const TrainingSetOptions& options) : options_(options) {}

  Result<std::optional<TrainingItem>> next() override {
    while (!ended_ && waiting_.size() < std::max<size_t>(options_.shuffle, 1)) {
      STROBE_ASSIGN(std::optional<TrainingItem> item, read());
      if (item) {
        waiting_.push_back(std::move(*item));
      } else {
        ended_ = true;
      }
    }
    if (waiting_.empty()) return std::optional<TrainingItem>();
    const size_t drawn = static_cast<size_t>(random_() % waiting_.size());
    TrainingItem item = std::move(waiting_[drawn]);
    waiting_[drawn] = std::move(waiting_.back());
    waiting_.pop_back();
    return std::optional<TrainingItem>(std::move(item));
  }

  Result<void> begin_epoch(int64_t number) override {
    waiting_.clear();
    ended_ = false;
    random_.seed(options_.seed * 1'000'003 + static_cast<uint64_t>(number));
    return rewind(random_);
  }

  const std::vector<std::string>& class_names() const override { return class_names_; }
  const models::CocoDataset& held_out() const override { return held_out_; }
  int64_t damaged() const override { return damaged_; }
  const std::vector<std::string>& notes() const override { return notes_; }

 protected:
  virtual Result<std::optional<TrainingItem>> read() = 0;  // the next one in the order of the source
  virtual Result<void> rewind(std::mt19937_64& random) = 0;

  TrainingSetOptions options_;
  models::CocoDataset held_out_;
  std::vector<std::string> class_names_, notes_;
  int64_t damaged_ = 0;

 private:
  std::mt19937_64 random_;
  std::vector<TrainingItem> waiting_;
  bool ended_ = false;
};

// Pictures that are files, each with its target: their whole order is drawn, and nothing need wait.
class FileSet : public Shuffled {
 public:
  struct File {
    std::string path;
    int64_t place = 0;
    engines::Target target;
  };
  FileSet(std::vector<File> files, media::SourceInfo info, models::CocoDataset held_out,
          std::vector<std::string> class_names, const TrainingSetOptions& options)
      : Shuffled(options), files_(std::move(files)), info_(std::move(info)) {
    held_out_ = std::move(held_out);
    class_names_ = std::move(class_names);
    whole_order_ = options_.shuffle > 1;
    options_.shuffle = 1;
  }

  int64_t items() const override { return static_cast<int64_t>(files_.size()); }
  const media::SourceInfo& source() const override { return info_; }

 private:
  Result<std::optional<TrainingItem>> read() override {
    while (next_ < files_.size()) {
      const File& file = files_[next_++];
      auto frame = read_file(file);
      if (frame) {
        ++read_in_epoch_;
        return std::optional<TrainingItem>(TrainingItem{std::move(*frame), file.target});
      }
      // One bad picture among many costs no training; none but bad ones do.
      ++damaged_;
      if (next_ == files_.size() && read_in_epoch_ == 0) return std::move(frame).error();
    }
    return std::optional<TrainingItem>();
  }

  Result<media::Frame> read_file(const File& file) const {
    STROBE_ASSIGN(const auto source, media::open_source(file.path, options_.source));
    STROBE_ASSIGN(std::optional<media::Frame> frame, source->next());
    if (!frame) return bad_data("no picture in it").at(file.path);
    frame->index = file.place;
    return std::move(*frame);
  }

  Result<void> rewind(std::mt19937_64& random) override {
    next_ = 0;
    read_in_epoch_ = 0;
    if (whole_order_) std::shuffle(files_.begin(), files_.end(), random);
    return {};
  }

  std::vector<File> files_;
  media::SourceInfo info_;
  bool whole_order_ = false;
  size_t next_ = 0, read_in_epoch_ = 0;
};

// The frames of a stream, with labels by frame, or made up.
class StreamSet : public Shuffled {
 public:
  StreamSet(std::unique_ptr<media::Source> source, Labels labels, int64_t made_up_classes,
            const TrainingSetOptions& options)
      : Shuffled(options),
        source_(std::move(source)),
        info_(source_->info()),
        labels_(std::move(labels)),
        made_up_classes_(made_up_classes) {
    held_out_ = std::move(labels_.held_out);
    if (made_up_classes_ > 0)
      notes_.emplace_back(
          "the classes are made up, one a frame (give --targets, or a folder with one folder a class): the loss shows "
          "that the network learns them by heart, the weights are good for nothing else");
  }

  int64_t items() const override {
    return made_up_classes_ > 0 ? info_.frames : static_cast<int64_t>(labels_.of.size());
  }
  const media::SourceInfo& source() const override { return info_; }

 private:
  Result<std::optional<TrainingItem>> read() override {
    for (;;) {
      STROBE_ASSIGN(std::optional<media::Frame> frame, source_->next());
      if (!frame) return std::optional<TrainingItem>();
      if (made_up_classes_ > 0) {
        const uint64_t mixed = (static_cast<uint64_t>(frame->index) + options_.seed) * 0x9e3779b97f4a7c15U;
        engines::Target target;
        target.class_id = static_cast<int>((mixed >> 33) % static_cast<uint64_t>(made_up_classes_));
        return std::optional<TrainingItem>(TrainingItem{std::move(*frame), std::move(target)});
      }
      const auto found = labels_.of.find(frame->index);
      if (found != labels_.of.end()) return std::optional<TrainingItem>(TrainingItem{std::move(*frame), found->second});
      if (frame->index > labels_.of.rbegin()->first) return std::optional<TrainingItem>();
    }
  }

  Result<void> rewind(std::mt19937_64&) override {
    if (fresh_ || info_.live) {
      fresh_ = false;
      return {};
    }
    STROBE_ASSIGN(source_, media::open_source(options_.input, options_.source));
    return {};
  }

  std::unique_ptr<media::Source> source_;
  media::SourceInfo info_;
  Labels labels_;
  int64_t made_up_classes_;
  bool fresh_ = true;
};

std::vector<std::string> subfolders(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored))
    if (entry.is_directory(ignored) && !entry.path().filename().string().starts_with("."))
      names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end(), media::natural_less);
  return names;
}

Result<media::SourceInfo> info_of(const std::string& picture, const TrainingSetOptions& options, size_t count) {
  STROBE_ASSIGN(const auto source, media::open_source(picture, options.source));
  media::SourceInfo info = source->info();
  info.kind = "folder";
  info.frames = static_cast<int64_t>(count);
  return info;
}

// One folder a class, in natural order; by name where the network has labels.
Result<std::unique_ptr<TrainingSet>> open_class_folders(const models::Graph& graph,
                                                        const std::vector<std::string>& names,
                                                        const TrainingSetOptions& options) {
  const auto classes = class_count(graph);
  std::vector<FileSet::File> files;
  int64_t place = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    auto class_id = static_cast<int64_t>(i);
    if (!graph.labels.empty()) {
      const auto found = std::find(graph.labels.begin(), graph.labels.end(), names[i]);
      if (found == graph.labels.end())
        return bad_data(
                   fmt::format("folder '{}' is none of {}'s {} classes", names[i], graph.name, graph.labels.size()))
            .at(options.input);
      class_id = found - graph.labels.begin();
    } else if (class_id >= classes) {
      return bad_data(fmt::format("{} class folders, {} has {} classes", names.size(), graph.name, classes))
          .at(options.input);
    }
    STROBE_ASSIGN(const auto paths, media::list_pictures((fs::path(options.input) / names[i]).string()));
    const auto kept = static_cast<size_t>(static_cast<double>(paths.size()) * (1 - options.hold_out) + 0.5);
    for (size_t p = 0; p < kept; ++p)
      files.push_back({paths[p], place++, {.class_id = static_cast<int>(class_id), .boxes = {}}});
  }
  if (files.empty()) return bad_data("no picture is left to train on").at(options.input);
  STROBE_ASSIGN(media::SourceInfo info, info_of(files.front().path, options, files.size()));
  return std::unique_ptr<TrainingSet>(std::make_unique<FileSet>(
      std::move(files), std::move(info), models::CocoDataset{}, graph.labels.empty() ? names : graph.labels, options));
}

Result<std::unique_ptr<TrainingSet>> open_labelled(const models::Graph& graph, const TrainingSetOptions& options) {
  STROBE_ASSIGN(const models::CocoDataset truth, models::read_coco(options.targets));
  std::error_code ignored;
  if (fs::is_directory(options.input, ignored)) {
    STROBE_ASSIGN(const auto paths, media::list_pictures(options.input));
    auto labels = labels_of(truth, graph, paths, options.hold_out);
    if (!labels) return std::move(labels).error().at(options.targets);
    std::vector<FileSet::File> files;
    for (auto& [place, target] : labels->of)
      files.push_back({paths[static_cast<size_t>(place)], place, std::move(target)});
    STROBE_ASSIGN(media::SourceInfo info, info_of(files.front().path, options, files.size()));
    return std::unique_ptr<TrainingSet>(std::make_unique<FileSet>(
        std::move(files), std::move(info), std::move(labels->held_out), std::vector<std::string>(), options));
  }
  STROBE_ASSIGN(auto source, media::open_source(options.input, options.source));
  auto labels = labels_of(truth, graph, {}, options.hold_out);
  if (!labels) return std::move(labels).error().at(options.targets);
  return std::unique_ptr<TrainingSet>(std::make_unique<StreamSet>(std::move(source), std::move(*labels), 0, options));
}

}  // namespace

Result<std::unique_ptr<TrainingSet>> open_training_set(const models::Graph& graph, const TrainingSetOptions& options) {
  if (!options.targets.empty()) return open_labelled(graph, options);
  std::error_code ignored;
  if (is_detector(graph))
    return usage_error(fmt::format(
        "{} is a detector: training needs boxes, --targets LABELS.json (COCO; `strobe frames annotate` makes one)",
        graph.name));
  if (fs::is_directory(options.input, ignored)) {
    const auto names = subfolders(options.input);
    if (!names.empty()) return open_class_folders(graph, names, options);
  }
  STROBE_ASSIGN(auto source, media::open_source(options.input, options.source));
  return std::unique_ptr<TrainingSet>(
      std::make_unique<StreamSet>(std::move(source), Labels{}, class_count(graph), options));
}

}  // namespace strobe::pipeline
