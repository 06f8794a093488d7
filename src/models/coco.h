// COCO's object detection format (cocodataset.org/#format-data): pictures, categories and boxes, as truth or, with
// scores, as detections. Polygons, masks and licences are not read.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::models {

struct CocoImage {
  int64_t id = 0;
  std::string file_name;
  int64_t width = 0, height = 0;  // 0: not told
  std::optional<int64_t> frame;   // of a video: the frame's index in it and its time
  std::optional<double> time_s;
};

struct CocoCategory {
  int64_t id = 0;
  std::string name;
};

struct CocoAnnotation {
  int64_t id = 0, image_id = 0, category_id = 0;
  double x = 0, y = 0, width = 0, height = 0;  // pixels, from the picture's top left corner
  double area = 0;
  bool is_crowd = false;
  std::optional<double> score;
};

struct CocoDataset {
  bool is_result_list = false;     // only annotations: the form in which COCO's detections are handed in
  std::string description, input;  // of "info"; input: what was annotated
  std::vector<CocoImage> images;
  std::vector<CocoCategory> categories;
  std::vector<CocoAnnotation> annotations;
};

// A dataset (an object with "images", "categories" and "annotations") or a list of results ([{"image_id",
// "category_id", "bbox", "score"}]). An area that is not told is the box's; an id of an annotation that is not told is
// its place, from 1. Errors: kBadData saying which element lacks what ("annotations[12]: bbox: expected [x, y, width,
// height]"); twice the same id of a picture or a category; a box without a picture or category of the same file.
Result<CocoDataset> parse_coco(std::string_view text);
Result<CocoDataset> read_coco(const std::filesystem::path& path);

// The dataset as one JSON object, one element a line.
std::string format_coco(const CocoDataset& dataset);

// The categories of a network by class id. The 80 classes of COCO, in the order in which detectors have them, get
// COCO's own ids (1..90, with gaps); others 1, 2, 3, ...
std::vector<CocoCategory> coco_categories(const std::vector<std::string>& labels);

}  // namespace strobe::models
