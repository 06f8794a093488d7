// Accuracy of results that come late: each held against the annotations of the moment at which it was ready, and, for
// comparison, of the moment at which its sensor measured. The idea: Li, Wang, Ramanan, "Towards Streaming Perception",
// ECCV 2020; the form, a result against the truth at stamp + delay, is that of pPerf's lidar_ap tables.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "sensors/detection_boxes.h"
#include "sensors/detection_metrics.h"
#include "sensors/nuscenes.h"
#include "strobe/base/result.h"

namespace strobe::sensors {

// A result that was given out: of which input, and how long after its stamp.
struct TimedResult {
  std::string token;   // of the sample_data; of a sample: its key frame of LIDAR_TOP
  double delay_s = 0;  // not negative
};

struct StreamingAccuracy {
  size_t results = 0, without_boxes = 0;  // of those given in; those whose token the file does not have
  size_t beyond = 0;  // ready after the scene's last key frame, whose annotations are taken, standing still
  FilterCounts still_truths, stream_truths, predictions;
  DetectionMetrics still, stream;
};

// file: in nuScenes' submission format, by tokens as above, boxes in the global frame. Both kinds of truth are
// the annotations of the nearest key frame, moved linearly where its neighbour knows them too, filtered as the
// detection task does with the ego vehicle where it was when the sensor measured, so that both count the same ranges.
// `database` must be opened with every sensor's data. Errors: kBadData (a token of `results` that the database lacks;
// the file's faults, with the line), kNotFound.
Result<StreamingAccuracy> streaming_accuracy(const std::filesystem::path& file, const NuScenes& database,
                                             const std::vector<TimedResult>& results);

}  // namespace strobe::sensors
