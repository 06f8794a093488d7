#include "sensors/detection_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <numbers>
#include <numeric>
#include <span>
#include <thread>

namespace strobe::sensors {

namespace {

constexpr size_t kRecalls = 101;  // 0, 0.01, ..., 1
using Curve = std::array<double, kRecalls>;

enum ErrorIndex : uint8_t { kTranslation, kScale, kOrientation, kVelocity, kAttribute };

constexpr size_t class_named(std::string_view name) {
  size_t i = 0;
  while (kDetectionClassTable[i].name != name) ++i;
  return i;
}
constexpr size_t kBarrier = class_named("barrier"), kCone = class_named("traffic_cone");

bool is_defined(size_t cls, size_t error) {
  if (cls == kCone) return error == kTranslation || error == kScale;
  return cls != kBarrier || (error != kVelocity && error != kAttribute);
}

// Piecewise linear through (x[i], y[i]), x ascending, at `at`; left of all y.front(), right of all `right`. Where
// several points share an x, the last one counts. The form in which NumPy computes it, to the last bit.
double interpolate(double at, std::span<const double> x, std::span<const double> y, double right) {
  if (at > x.back()) return right;
  const size_t above = static_cast<size_t>(std::ranges::upper_bound(x, at) - x.begin());
  if (above == 0) return y.front();
  const size_t i = above - 1;
  if (i + 1 == x.size() || x[i] == at) return y[i];
  const double slope = (y[i + 1] - y[i]) / (x[i + 1] - x[i]);
  return slope * (at - x[i]) + y[i];
}

// The mean of what came so far, leaving NaNs out; 0 before the first number, 1 everywhere where there is none.
std::vector<double> running_mean(const std::vector<double>& values) {
  std::vector<double> out(values.size());
  double sum = 0, count = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    if (!std::isnan(values[i])) {
      sum += values[i];
      count += 1;
    }
    out[i] = count == 0 ? 0 : sum / count;
  }
  if (count == 0) std::ranges::fill(out, 1.0);
  return out;
}

// The smallest turn between two angles, one and the same after `period`; in [0, pi].
double angle_between(double a, double b, double period) {
  double turn = std::fmod(a - b + period / 2, period);
  if (turn < 0) turn += period;
  turn -= period / 2;
  if (turn > std::numbers::pi) turn -= 2 * std::numbers::pi;
  return std::abs(turn);
}

// IoU of the two boxes were they in one place and of one direction.
double scale_iou(const DetectionBox& a, const DetectionBox& b) {
  const double both = std::min(a.width, b.width) * std::min(a.length, b.length) * std::min(a.height, b.height);
  return both / (a.width * a.length * a.height + b.width * b.length * b.height - both);
}

bool has_size(const DetectionBox& box) {
  return box.width > 0 && box.length > 0 && box.height > 0;
}

// A truth within reach of a prediction.
struct Candidate {
  uint32_t truth;  // place among the class's truths
  double distance;
};

// One class: its boxes in the order in which they are matched, and who could match whom.
struct ClassBoxes {
  std::vector<const DetectionBox*> truths, predictions;
  std::vector<Candidate> candidates;
  std::vector<size_t> candidate_starts;  // one more than predictions
};

ClassBoxes boxes_of_class(size_t cls, const std::vector<DetectionBox>& truths,
                          const std::vector<DetectionBox>& predictions, size_t samples) {
  ClassBoxes out;
  std::vector<uint32_t> starts(samples + 1, 0);
  for (const DetectionBox& truth : truths)
    if (truth.cls == cls) ++starts[truth.sample + 1];
  std::partial_sum(starts.begin(), starts.end(), starts.begin());
  out.truths.resize(starts.back());
  std::vector<uint32_t> next = starts;
  for (const DetectionBox& truth : truths)
    if (truth.cls == cls) out.truths[next[truth.sample]++] = &truth;

  for (const DetectionBox& prediction : predictions)
    if (prediction.cls == cls) out.predictions.push_back(&prediction);
  std::ranges::reverse(out.predictions);
  std::ranges::stable_sort(out.predictions, std::greater<>(), [](const DetectionBox* box) { return box->score; });

  out.candidate_starts.reserve(out.predictions.size() + 1);
  out.candidate_starts.push_back(0);
  for (const DetectionBox* prediction : out.predictions) {
    for (uint32_t i = starts[prediction->sample]; i < starts[prediction->sample + 1]; ++i) {
      const double dx = prediction->x - out.truths[i]->x, dy = prediction->y - out.truths[i]->y;
      const double distance = std::sqrt(dx * dx + dy * dy);
      if (distance < kDetectionDistances.back()) out.candidates.push_back({i, distance});
    }
    out.candidate_starts.push_back(out.candidates.size());
  }
  return out;
}

constexpr uint32_t kNoTruth = UINT32_MAX;

// The truth that each prediction matches.
std::vector<uint32_t> match(const ClassBoxes& boxes, double reach) {
  std::vector<uint32_t> matches(boxes.predictions.size(), kNoTruth);
  std::vector<bool> taken(boxes.truths.size(), false);
  for (size_t i = 0; i < matches.size(); ++i) {
    double nearest = reach;
    for (size_t c = boxes.candidate_starts[i]; c < boxes.candidate_starts[i + 1]; ++c) {
      const Candidate& candidate = boxes.candidates[c];
      if (candidate.distance >= nearest || taken[candidate.truth]) continue;
      nearest = candidate.distance;
      matches[i] = candidate.truth;
    }
    if (matches[i] != kNoTruth) taken[matches[i]] = true;
  }
  return matches;
}

struct Curves {
  Curve precision{}, score{};
};

double recall_at(size_t i) {
  return i + 1 == kRecalls ? 1 : static_cast<double>(i) * 0.01;
}

// Precision and score over recall; both 0 beyond the highest recall. There must be a match.
Curves curves_of(const ClassBoxes& boxes, const std::vector<uint32_t>& matches) {
  std::vector<double> recall(matches.size()), precision(matches.size()), score(matches.size());
  double found = 0;
  for (size_t i = 0; i < matches.size(); ++i) {
    if (matches[i] != kNoTruth) found += 1;
    recall[i] = found / static_cast<double>(boxes.truths.size());
    precision[i] = found / static_cast<double>(i + 1);
    score[i] = boxes.predictions[i]->score;
  }
  Curves out;
  for (size_t i = 0; i < kRecalls; ++i) {
    out.precision[i] = interpolate(recall_at(i), recall, precision, 0);
    out.score[i] = interpolate(recall_at(i), recall, score, 0);
  }
  return out;
}

constexpr size_t kFirstRecall = static_cast<size_t>(100 * kMinRecall + 0.5) + 1;

double average_precision(const Curve& precision) {
  double sum = 0;
  for (size_t i = kFirstRecall; i < kRecalls; ++i) sum += std::max(0.0, precision[i] - kMinPrecision);
  return sum / static_cast<double>(kRecalls - kFirstRecall) / (1 - kMinPrecision);
}

// The five errors of the matches, each as its running mean in the order of scores, averaged over the recalls reached.
Result<void> true_positive_errors(size_t cls, const ClassBoxes& boxes, const std::vector<uint32_t>& matches,
                                  const Curve& score, ClassMetrics& out) {
  std::array<std::vector<double>, kTruePositiveErrors.size()> errors;
  std::vector<double> scores;
  const double period = cls == kBarrier ? std::numbers::pi : 2 * std::numbers::pi;  // a barrier has no front
  for (size_t i = 0; i < matches.size(); ++i) {
    if (matches[i] == kNoTruth) continue;
    const DetectionBox& prediction = *boxes.predictions[i];
    const DetectionBox& truth = *boxes.truths[matches[i]];
    if (!has_size(truth) || !has_size(prediction))
      return bad_data(fmt::format("a {} of the {} has a size that is not above 0", kDetectionClassTable[cls].name,
                                  has_size(truth) ? "predictions" : "truth"));
    const double dx = prediction.x - truth.x, dy = prediction.y - truth.y;
    const double dvx = prediction.vx - truth.vx, dvy = prediction.vy - truth.vy;
    errors[kTranslation].push_back(std::sqrt(dx * dx + dy * dy));
    errors[kScale].push_back(1 - scale_iou(truth, prediction));
    errors[kOrientation].push_back(angle_between(truth.yaw, prediction.yaw, period));
    errors[kVelocity].push_back(std::sqrt(dvx * dvx + dvy * dvy));
    errors[kAttribute].push_back(truth.attribute == 0 ? std::nan("") : truth.attribute == prediction.attribute ? 0 : 1);
    scores.push_back(prediction.score);
  }
  size_t last = kRecalls - 1;
  while (last > 0 && score[last] == 0) --last;
  std::ranges::reverse(scores);
  for (size_t e = 0; e < errors.size(); ++e) {
    if (!is_defined(cls, e)) continue;
    if (last < kFirstRecall) {
      out.errors[e] = 1;
      continue;
    }
    std::vector<double> mean = running_mean(errors[e]);
    std::ranges::reverse(mean);
    double sum = 0;
    for (size_t i = kFirstRecall; i <= last; ++i) sum += interpolate(score[i], scores, mean, mean.back());
    out.errors[e] = sum / static_cast<double>(last + 1 - kFirstRecall);
  }
  return {};
}

Result<ClassMetrics> class_metrics(size_t cls, const std::vector<DetectionBox>& truths,
                                   const std::vector<DetectionBox>& predictions, size_t samples) {
  const ClassBoxes boxes = boxes_of_class(cls, truths, predictions, samples);
  ClassMetrics out;
  out.truths = static_cast<uint32_t>(boxes.truths.size());
  out.predictions = static_cast<uint32_t>(boxes.predictions.size());
  for (size_t e = 0; e < out.errors.size(); ++e)
    if (is_defined(cls, e)) out.errors[e] = 1;  // where nothing is found
  for (size_t d = 0; d < kDetectionDistances.size(); ++d) {
    const std::vector<uint32_t> matches = match(boxes, kDetectionDistances[d]);
    if (std::ranges::all_of(matches, [](uint32_t m) { return m == kNoTruth; })) continue;
    const Curves curves = curves_of(boxes, matches);
    out.ap[d] = average_precision(curves.precision);
    if (d == kTruePositiveDistance) STROBE_TRY(true_positive_errors(cls, boxes, matches, curves.score, out));
  }
  out.mean_ap = std::accumulate(out.ap.begin(), out.ap.end(), 0.0) / static_cast<double>(out.ap.size());
  return out;
}

}  // namespace

Result<DetectionMetrics> detection_metrics(const std::vector<DetectionBox>& truths,
                                           const std::vector<DetectionBox>& predictions, size_t samples) {
  std::vector<Result<ClassMetrics>> classes(kDetectionClasses, ClassMetrics());
  std::atomic<size_t> next{0};
  const auto work = [&] {
    for (size_t cls; (cls = next++) < kDetectionClasses;)
      classes[cls] = class_metrics(cls, truths, predictions, samples);
  };
  std::vector<std::thread> helpers;
  for (unsigned i = 1; i < std::min<unsigned>(std::thread::hardware_concurrency(), kDetectionClasses); ++i)
    helpers.emplace_back(work);
  work();
  for (std::thread& helper : helpers) helper.join();

  DetectionMetrics out;
  for (size_t cls = 0; cls < kDetectionClasses; ++cls) {
    STROBE_ASSIGN(out.classes[cls], std::move(classes[cls]));
    out.mean_ap += out.classes[cls].mean_ap / static_cast<double>(kDetectionClasses);
  }
  double total = kMeanApWeight * out.mean_ap;
  for (size_t e = 0; e < out.errors.size(); ++e) {
    double sum = 0, count = 0;
    for (const ClassMetrics& cls : out.classes) {
      if (!cls.errors[e]) continue;
      sum += *cls.errors[e];
      count += 1;
    }
    out.errors[e] = sum / count;
    out.scores[e] = std::max(0.0, 1 - out.errors[e]);
    total += out.scores[e];
  }
  out.nds = total / (kMeanApWeight + static_cast<double>(out.scores.size()));
  return out;
}

}  // namespace strobe::sensors
