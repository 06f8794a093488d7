// Average precision of detections, as COCO defines it: the numbers of pycocotools' COCOeval for boxes.
//
// A detection matches the truth of its picture and category with which it overlaps most, at least by the threshold;
// better scores choose first, each truth is taken once. Crowds and truths outside the range of areas neither count nor
// hurt. Precision is read off at 101 recalls, after being made monotonic, and averaged over the thresholds 0.50, 0.55,
// ..., 0.95 and the categories that have truths. Of each picture and category the 100 best detections count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/coco.h"

namespace strobe::models {

// A measure without a truth to measure with has no value (pycocotools: -1).
struct AveragePrecision {
  std::optional<double> ap, ap50, ap75;                 // over all thresholds, at 0.50, at 0.75
  std::optional<double> ap_small, ap_medium, ap_large;  // truths up to 32^2, up to 96^2, and above
  std::optional<double> ar1, ar10, ar100;               // recall with so many detections a picture and category
  std::optional<double> ar_small, ar_medium, ar_large;  // with 100

  struct Category {
    int64_t id = 0;
    std::string name;
    int64_t truths = 0, detections = 0;  // crowds not counted
    std::optional<double> ap, ap50, ap75, ar100;
  };
  std::vector<Category> categories;  // by id
};

// detections: as aligned with the truth, below. Their id is not used, their area is that of the box.
AveragePrecision average_precision(const CocoDataset& truth, const std::vector<CocoAnnotation>& detections);

struct AlignedDetections {
  std::vector<CocoAnnotation> annotations;  // with the truth's ids of pictures and categories
  std::vector<std::string> notes;           // what was left out
};

// Brings detections to the truth's ids. A list of results has them already: an unknown picture is an error (kBadData).
// A dataset's pictures are found by file name (else by the name without its extension), its categories by name; those
// that the truth does not have are left out, with a note. Errors: a detection without a score; no picture in common.
Result<AlignedDetections> align_detections(const CocoDataset& truth, const CocoDataset& detections);

}  // namespace strobe::models
