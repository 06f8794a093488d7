// The metrics of the nuScenes detection task, configuration detection_cvpr_2019: average precision by distance of
// centres on the ground, five errors of true positives, and the nuScenes detection score. Definitions: Caesar et al.,
// "nuScenes: A multimodal dataset for autonomous driving", 2019, section 3.1, and the rules of the detection challenge;
// where those leave a choice (ties, interpolation), it is that of the published development kit, version 1.2.0.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"

namespace strobe::sensors {

// Order of the rows in every output.
inline constexpr size_t kDetectionClasses = 10;
struct DetectionClass {
  std::string_view name;
  double range;  // metres from the ego vehicle on the ground; boxes at or beyond it do not count
};
inline constexpr std::array<DetectionClass, kDetectionClasses> kDetectionClassTable = {{{"car", 50},
                                                                                        {"truck", 50},
                                                                                        {"bus", 50},
                                                                                        {"trailer", 50},
                                                                                        {"construction_vehicle", 50},
                                                                                        {"pedestrian", 40},
                                                                                        {"motorcycle", 40},
                                                                                        {"bicycle", 40},
                                                                                        {"traffic_cone", 30},
                                                                                        {"barrier", 30}}};
inline constexpr std::array<double, 4> kDetectionDistances = {0.5, 1, 2, 4};  // metres
inline constexpr size_t kTruePositiveDistance = 2;                            // index: errors are taken at 2 m
inline constexpr double kMinRecall = 0.1, kMinPrecision = 0.1;
inline constexpr size_t kMaxBoxesPerSample = 500;
inline constexpr double kMeanApWeight = 5;

// trans_err m, scale_err 1 - IoU of aligned boxes, orient_err rad, vel_err m/s, attr_err 1 - accuracy.
inline constexpr std::array<std::string_view, 5> kTruePositiveErrors = {"trans_err", "scale_err", "orient_err",
                                                                        "vel_err", "attr_err"};

// What of a box the metrics see.
struct DetectionBox {
  uint32_t sample = 0;
  uint8_t cls = 0;        // index into kDetectionClassTable
  uint8_t attribute = 0;  // 0 none; else any number that is equal for equal attributes
  double x = 0, y = 0;
  double width = 0, length = 0, height = 0;
  double yaw = 0;
  double vx = 0, vy = 0;  // NaN where unknown
  double score = 0;       // of a prediction
};

struct ClassMetrics {
  uint32_t truths = 0, predictions = 0;  // behind the filters
  std::array<double, kDetectionDistances.size()> ap{};
  double mean_ap = 0;
  // Nothing where the error is not defined for the class.
  std::array<std::optional<double>, kTruePositiveErrors.size()> errors;
};

struct DetectionMetrics {
  std::array<ClassMetrics, kDetectionClasses> classes;
  double mean_ap = 0;
  std::array<double, kTruePositiveErrors.size()> errors{};  // means over the classes that have them
  std::array<double, kTruePositiveErrors.size()> scores{};  // max(0, 1 - error)
  double nds = 0;                                           // (5 mAP + the five scores) / 10
};

// Boxes that passed the filters. Predictions of one score are taken from the last to the first; a truth is matched by
// the first prediction to which it is the nearest free one; of truths equally near, the first. Uses all cores.
// `samples`: the numbers of samples lie below it. Errors: kBadData (a box that is matched has no size).
Result<DetectionMetrics> detection_metrics(const std::vector<DetectionBox>& truths,
                                           const std::vector<DetectionBox>& predictions, size_t samples);

}  // namespace strobe::sensors
