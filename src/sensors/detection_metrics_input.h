// What the detection metrics are computed from: a result file in nuScenes' submission format, and the annotations of a
// database; both filtered as the task says (range of the class, boxes without points, cycles in bicycle racks).
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "sensors/detection_boxes.h"
#include "sensors/detection_metrics.h"
#include "sensors/nuscenes.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

struct DetectionInput {
  std::string split;
  uint32_t scenes = 0, samples = 0;
  std::vector<DetectionBox> truths, predictions;
  FilterCounts truth_counts, prediction_counts;
  // The result file's "meta", such as {"use_lidar": true}.
  std::vector<std::pair<std::string, bool>> meta;
};

// `split`: a name of nuscenes_splits(), or empty for the smallest one that holds every sample of the file.
// Errors: kNotFound (file, split), kBadData naming the line: no "results", a sample that the database or the split
// lacks, a sample of the split that the file lacks, more than 500 boxes of a sample, a box of an unknown class or
// attribute, of another sample, or with a NaN in its place, size or rotation.
Result<DetectionInput> read_detection_input(const std::filesystem::path& results, const NuScenes& database,
                                            const std::string& split);

}  // namespace strobe::sensors
