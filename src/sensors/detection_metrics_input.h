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
  // Of a file by tokens of sample_data: lists of what is no key frame, which are skipped, and key frames of its scenes
  // that it has no list for (0 where a split was asked for, which must be whole).
  bool by_sample_data = false;
  uint64_t skipped = 0, absent = 0;
};

// Whether the first list of a result file stands under no sample's token: such a file needs all sample_data. Errors:
// kNotFound (file).
Result<bool> is_by_sample_data(const std::filesystem::path& results, const NuScenes& database);

// Lists stand under tokens of samples, or, as a run writes them, of sample_data: then a key frame's counts as that of
// its sample. `split`: a name of nuscenes_splits(), or empty for the smallest one that holds every sample of the file;
// of a file by sample_data: for the key frames that it has. Errors: kNotFound (file, split), kBadData naming the line:
// no "results", a sample that the database or the split lacks, a sample of the split that the file lacks, two lists of
// a sample, no list of a key frame, more than 500 boxes of a sample, a box of an unknown class or attribute, of another
// sample, or with a NaN in its place, size or rotation.
Result<DetectionInput> read_detection_input(const std::filesystem::path& results, const NuScenes& database,
                                            const std::string& split);

}  // namespace strobe::sensors
