#include "models/average_precision.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <span>
#include <unordered_map>

namespace strobe::models {

namespace {

constexpr size_t kThresholds = 10, kRecalls = 101, kAreas = 4;
constexpr size_t kMostDetections[] = {1, 10, 100};
constexpr size_t kLimits = std::size(kMostDetections);
constexpr size_t kAt50 = 0, kAt75 = 5;  // among the thresholds
constexpr size_t kAll = 0;              // among the areas
struct AreaRange {
  double least, most;
};
constexpr AreaRange kAreaRanges[kAreas] = {{0, 1e10}, {0, 32.0 * 32}, {32.0 * 32, 96.0 * 96}, {96.0 * 96, 1e10}};

// numpy.linspace, to the last bit: a recall or an overlap that lies on a threshold must fall to the same side.
template <size_t kCount>
std::array<double, kCount> linspace(double first, double last) {
  std::array<double, kCount> values;
  const double step = (last - first) / (kCount - 1);
  for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<double>(i) * step + first;
  values.back() = last;
  return values;
}

bool outside(double area, const AreaRange& range) {
  return area < range.least || area > range.most;
}

// Intersection over union; over the detection's own area where the truth is a crowd.
double overlap(const CocoAnnotation& detection, const CocoAnnotation& truth) {
  const double width = std::min(detection.width + detection.x, truth.width + truth.x) - std::max(detection.x, truth.x);
  if (width <= 0) return 0;
  const double height =
      std::min(detection.height + detection.y, truth.height + truth.y) - std::max(detection.y, truth.y);
  if (height <= 0) return 0;
  const double both = width * height, own = detection.width * detection.height;
  return both / (truth.is_crowd ? own : own + truth.width * truth.height - both);
}

// How one detection fared, in one range of areas: a bit a threshold.
struct Verdict {
  uint16_t matched = 0, ignored = 0;
};
static_assert(kThresholds <= 16);

struct Scored {
  double score;
  size_t rank;  // in its picture: 0 is the best
  std::array<Verdict, kAreas> verdicts;
};

// All of one category: pictures are added in the order of their ids.
class CategoryMatches {
 public:
  // Truths and detections of one picture, detections in their file's order.
  void add_picture(std::span<const CocoAnnotation* const> truths, std::span<const CocoAnnotation* const> detections) {
    by_score_.assign(detections.begin(), detections.end());
    std::stable_sort(by_score_.begin(), by_score_.end(),
                     [](const auto* a, const auto* b) { return *a->score > *b->score; });
    if (by_score_.size() > kMostDetections[kLimits - 1]) by_score_.resize(kMostDetections[kLimits - 1]);
    overlaps_.resize(by_score_.size() * truths.size());
    for (size_t d = 0; d < by_score_.size(); ++d)
      for (size_t t = 0; t < truths.size(); ++t) overlaps_[d * truths.size() + t] = overlap(*by_score_[d], *truths[t]);
    const size_t first = scored_.size();
    for (size_t d = 0; d < by_score_.size(); ++d) scored_.push_back({*by_score_[d]->score, d, {}});
    for (size_t area = 0; area < kAreas; ++area) match(truths, area, first);
  }

  // Sorts; after the last picture.
  void finish() {
    std::stable_sort(scored_.begin(), scored_.end(),
                     [](const Scored& a, const Scored& b) { return a.score > b.score; });
  }

  int64_t counted_truths(size_t area) const { return counted_[area]; }

  struct Curve {
    double recall = 0;
    std::array<double, kRecalls> precision{};
  };
  // area must have truths that count.
  Curve curve(size_t area, size_t threshold, size_t limit, const std::array<double, kRecalls>& recalls) {
    recall_.clear();
    precision_.clear();
    double hits = 0, misses = 0;
    const auto truths = static_cast<double>(counted_[area]);
    for (const Scored& scored : scored_) {
      if (scored.rank >= limit) continue;
      const Verdict verdict = scored.verdicts[area];
      if (((verdict.ignored >> threshold) & 1) == 0) ((verdict.matched >> threshold) & 1) != 0 ? ++hits : ++misses;
      recall_.push_back(hits / truths);
      precision_.push_back(hits / (misses + hits + std::numeric_limits<double>::epsilon()));
    }
    Curve curve;
    if (recall_.empty()) return curve;
    curve.recall = recall_.back();
    for (size_t i = precision_.size() - 1; i > 0; --i) precision_[i - 1] = std::max(precision_[i - 1], precision_[i]);
    size_t at = 0;
    for (size_t r = 0; r < kRecalls; ++r) {
      while (at < recall_.size() && recall_[at] < recalls[r]) ++at;
      if (at == recall_.size()) break;
      curve.precision[r] = precision_[at];
    }
    return curve;
  }

 private:
  void match(std::span<const CocoAnnotation* const> truths, size_t area, size_t first) {
    const AreaRange& range = kAreaRanges[area];
    const auto ignored = [&](size_t t) { return truths[t]->is_crowd || outside(truths[t]->area, range); };
    order_.clear();
    for (size_t t = 0; t < truths.size(); ++t)
      if (!ignored(t)) order_.push_back(t);
    const size_t counting = order_.size();
    counted_[area] += static_cast<int64_t>(counting);
    for (size_t t = 0; t < truths.size(); ++t)
      if (ignored(t)) order_.push_back(t);
    for (size_t threshold = 0; threshold < kThresholds; ++threshold) {
      taken_.assign(truths.size(), 0);
      for (size_t d = 0; d < by_score_.size(); ++d) {
        const size_t best = best_truth(truths, counting, d, kOverlapThresholds[threshold]);
        const bool matched = best < order_.size();
        // Beyond the range of areas only what matches something that counts may count.
        const bool is_ignored = matched ? best >= counting : outside(by_score_[d]->width * by_score_[d]->height, range);
        if (matched) taken_[best] = 1;
        Verdict& verdict = scored_[first + d].verdicts[area];
        verdict.matched |= static_cast<uint16_t>(static_cast<unsigned>(matched) << threshold);
        verdict.ignored |= static_cast<uint16_t>(static_cast<unsigned>(is_ignored) << threshold);
      }
    }
  }

  // Place in order_; of equal overlaps the later one. Truths that do not count are looked at only when none that counts
  // fits.
  size_t best_truth(std::span<const CocoAnnotation* const> truths, size_t counting, size_t d, double threshold) const {
    double least = std::min(threshold, 1 - 1e-10);
    size_t best = order_.size();
    for (size_t i = 0; i < order_.size(); ++i) {
      if (taken_[i] != 0 && !truths[order_[i]]->is_crowd) continue;
      if (i >= counting && best < counting) break;
      const double found = overlaps_[d * truths.size() + order_[i]];
      if (found < least) continue;
      least = found;
      best = i;
    }
    return best;
  }

  inline static const std::array<double, kThresholds> kOverlapThresholds = linspace<kThresholds>(0.5, 0.95);
  std::vector<const CocoAnnotation*> by_score_;
  std::vector<double> overlaps_, recall_, precision_;
  std::vector<size_t> order_;   // truths, those that count first
  std::vector<uint8_t> taken_;  // by place in order_
  std::vector<Scored> scored_;
  std::array<int64_t, kAreas> counted_{};
};

class Mean {
 public:
  void add(double value) {
    sum_ += value;
    ++count_;
  }
  std::optional<double> value() const {
    return count_ == 0 ? std::nullopt : std::optional(sum_ / static_cast<double>(count_));
  }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

// Annotations by category, then by picture; within both in their own order.
std::vector<const CocoAnnotation*> grouped(const std::vector<CocoAnnotation>& annotations) {
  std::vector<const CocoAnnotation*> sorted;
  sorted.reserve(annotations.size());
  for (const CocoAnnotation& annotation : annotations) sorted.push_back(&annotation);
  std::stable_sort(sorted.begin(), sorted.end(), [](const auto* a, const auto* b) {
    return a->category_id != b->category_id ? a->category_id < b->category_id : a->image_id < b->image_id;
  });
  return sorted;
}

using Group = std::span<const CocoAnnotation* const>;

// Cuts what belongs to a category off the front of the rest, after dropping smaller ids.
Group take(Group& rest, int64_t id, int64_t CocoAnnotation::*key) {
  const auto begin = std::find_if(rest.begin(), rest.end(), [&](const auto* a) { return a->*key >= id; });
  const auto end = std::find_if(begin, rest.end(), [&](const auto* a) { return a->*key > id; });
  rest = Group(end, rest.end());
  return {begin, end};
}

// What the measures of one category, or of all, are means of.
struct Sums {
  std::array<Mean, kAreas> precision;
  Mean precision50, precision75;
  std::array<Mean, kLimits> recall;  // without a range of areas
  std::array<Mean, kAreas> recall_of_area;

  void add(const CategoryMatches::Curve& curve, size_t area, size_t threshold, size_t limit) {
    if (area == kAll) recall[limit].add(curve.recall);
    if (limit != kLimits - 1) return;
    recall_of_area[area].add(curve.recall);
    for (const double precision_there : curve.precision) {
      precision[area].add(precision_there);
      if (area == kAll && threshold == kAt50) precision50.add(precision_there);
      if (area == kAll && threshold == kAt75) precision75.add(precision_there);
    }
  }
};

}  // namespace

AveragePrecision average_precision(const CocoDataset& truth, const std::vector<CocoAnnotation>& detections) {
  static const auto recalls = linspace<kRecalls>(0, 1);
  const auto truths_by_group = grouped(truth.annotations), detections_by_group = grouped(detections);
  Group truths_left = truths_by_group, detections_left = detections_by_group;
  std::vector<CocoCategory> categories = truth.categories;
  std::sort(categories.begin(), categories.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  AveragePrecision result;
  Sums all;
  for (const CocoCategory& category : categories) {
    Group truths = take(truths_left, category.id, &CocoAnnotation::category_id);
    Group found = take(detections_left, category.id, &CocoAnnotation::category_id);
    AveragePrecision::Category row{
        .id = category.id, .name = category.name, .ap = {}, .ap50 = {}, .ap75 = {}, .ar100 = {}};
    row.detections = static_cast<int64_t>(found.size());
    CategoryMatches matches;
    while (!truths.empty() || !found.empty()) {
      const int64_t picture = std::min(truths.empty() ? INT64_MAX : truths.front()->image_id,
                                       found.empty() ? INT64_MAX : found.front()->image_id);
      const Group here = take(truths, picture, &CocoAnnotation::image_id);
      matches.add_picture(here, take(found, picture, &CocoAnnotation::image_id));
    }
    matches.finish();
    row.truths = matches.counted_truths(kAll);
    Sums own;
    for (size_t area = 0; area < kAreas; ++area) {
      if (matches.counted_truths(area) == 0) continue;
      for (size_t threshold = 0; threshold < kThresholds; ++threshold) {
        for (size_t limit = 0; limit < kLimits; ++limit) {
          if (area != kAll && limit != kLimits - 1) continue;
          const auto curve = matches.curve(area, threshold, kMostDetections[limit], recalls);
          own.add(curve, area, threshold, limit);
          all.add(curve, area, threshold, limit);
        }
      }
    }
    row.ap = own.precision[kAll].value();
    row.ap50 = own.precision50.value();
    row.ap75 = own.precision75.value();
    row.ar100 = own.recall[kLimits - 1].value();
    result.categories.push_back(std::move(row));
  }
  result.ap = all.precision[kAll].value();
  result.ap50 = all.precision50.value();
  result.ap75 = all.precision75.value();
  result.ap_small = all.precision[1].value();
  result.ap_medium = all.precision[2].value();
  result.ap_large = all.precision[3].value();
  result.ar1 = all.recall[0].value();
  result.ar10 = all.recall[1].value();
  result.ar100 = all.recall[2].value();
  result.ar_small = all.recall_of_area[1].value();
  result.ar_medium = all.recall_of_area[2].value();
  result.ar_large = all.recall_of_area[3].value();
  return result;
}

}  // namespace strobe::models
