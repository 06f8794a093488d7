// Detections of one file brought to the ids of another.
#include <fmt/format.h>

#include <unordered_map>
#include <unordered_set>

#include "models/average_precision.h"

namespace strobe::models {

namespace {

// Six classes have another name in Darknet's list than in COCO's own files.
std::string_view other_spelling(std::string_view name) {
  static constexpr std::pair<std::string_view, std::string_view> kPairs[] = {
      {"aeroplane", "airplane"},       {"motorbike", "motorcycle"},     {"sofa", "couch"},
      {"pottedplant", "potted plant"}, {"diningtable", "dining table"}, {"tvmonitor", "tv"}};
  for (const auto& [darknet, coco] : kPairs) {
    if (name == darknet) return coco;
    if (name == coco) return darknet;
  }
  return {};
}

std::string stem(const std::string& file_name) {
  return std::filesystem::path(file_name).stem().string();
}

// Ids by name; names that several have lead nowhere.
class Names {
 public:
  void add(const std::string& name, int64_t id) {
    if (name.empty()) return;
    const auto [found, is_new] = ids_.emplace(name, id);
    if (!is_new) found->second.reset();
  }
  std::optional<int64_t> find(const std::string& name) const {
    const auto found = ids_.find(name);
    return found == ids_.end() ? std::nullopt : found->second;
  }

 private:
  std::unordered_map<std::string, std::optional<int64_t>> ids_;
};

std::unordered_map<int64_t, int64_t> shared_images(const CocoDataset& truth, const CocoDataset& detections) {
  Names names, stems;
  for (const CocoImage& image : truth.images) {
    names.add(image.file_name, image.id);
    stems.add(stem(image.file_name), image.id);
  }
  std::unordered_map<int64_t, int64_t> shared;
  for (const CocoImage& image : detections.images) {
    auto id = names.find(image.file_name);
    if (!id) id = stems.find(stem(image.file_name));
    if (id) shared.emplace(image.id, *id);
  }
  return shared;
}

std::unordered_map<int64_t, int64_t> shared_categories(const CocoDataset& truth, const CocoDataset& detections) {
  Names names;
  for (const CocoCategory& category : truth.categories) names.add(category.name, category.id);
  std::unordered_map<int64_t, int64_t> shared;
  for (const CocoCategory& category : detections.categories) {
    auto id = names.find(category.name);
    if (!id) id = names.find(std::string(other_spelling(category.name)));
    if (id) shared.emplace(category.id, *id);
  }
  return shared;
}

Result<void> check_scores(const CocoDataset& detections) {
  for (size_t i = 0; i < detections.annotations.size(); ++i)
    if (!detections.annotations[i].score)
      return bad_data(fmt::format("{}[{}]: score: expected a number, as detections have",
                                  detections.is_result_list ? "" : "annotations", i));
  return {};
}

Result<AlignedDetections> align_list(const CocoDataset& truth, const CocoDataset& detections) {
  std::unordered_set<int64_t> images, categories;
  for (const CocoImage& image : truth.images) images.insert(image.id);
  for (const CocoCategory& category : truth.categories) categories.insert(category.id);
  AlignedDetections aligned;
  int64_t left_out = 0;
  for (size_t i = 0; i < detections.annotations.size(); ++i) {
    const CocoAnnotation& annotation = detections.annotations[i];
    if (!images.contains(annotation.image_id))
      return bad_data(fmt::format("[{}]: image_id {} is not in the truth", i, annotation.image_id));
    if (categories.contains(annotation.category_id)) {
      aligned.annotations.push_back(annotation);
    } else {
      ++left_out;
    }
  }
  if (left_out > 0)
    aligned.notes.push_back(fmt::format("{} detections are of categories that the truth does not have", left_out));
  return aligned;
}

}  // namespace

Result<AlignedDetections> align_detections(const CocoDataset& truth, const CocoDataset& detections) {
  STROBE_TRY(check_scores(detections));
  if (detections.is_result_list) return align_list(truth, detections);
  const auto images = shared_images(truth, detections);
  if (images.empty() && !detections.images.empty() && !truth.images.empty())
    return bad_data(fmt::format("no picture in common with the truth: {} is not among its {} file names",
                                detections.images.front().file_name, truth.images.size()));
  const auto categories = shared_categories(truth, detections);
  AlignedDetections aligned;
  int64_t without_image = 0, without_category = 0;
  for (const CocoAnnotation& annotation : detections.annotations) {
    const auto image = images.find(annotation.image_id);
    const auto category = categories.find(annotation.category_id);
    if (image == images.end()) {
      ++without_image;
    } else if (category == categories.end()) {
      ++without_category;
    } else {
      aligned.annotations.push_back(annotation);
      aligned.annotations.back().image_id = image->second;
      aligned.annotations.back().category_id = category->second;
    }
  }
  if (without_image > 0)
    aligned.notes.push_back(fmt::format("{} detections are on pictures that the truth does not have", without_image));
  if (without_category > 0)
    aligned.notes.push_back(
        fmt::format("{} detections are of categories that the truth does not have", without_category));
  if (const size_t unseen = truth.images.size() - std::min(truth.images.size(), images.size()); unseen > 0)
    aligned.notes.push_back(fmt::format(
        "{} of the truth's {} pictures are not among those of the detections: what is on them counts as missed", unseen,
        truth.images.size()));
  return aligned;
}

}  // namespace strobe::models
