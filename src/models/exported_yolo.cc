#include "models/exported_yolo.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace strobe::models {

namespace {

constexpr int64_t kMostEndToEndBoxes = 1000;

// Cells of the strides 8 to `last`; -1 where the input is no whole number of them.
int64_t cells(int64_t height, int64_t width, int64_t last) {
  int64_t sum = 0;
  for (int64_t stride = 8; stride <= last; stride *= 2) {
    if (height % stride != 0 || width % stride != 0) return -1;
    sum += (height / stride) * (width / stride);
  }
  return sum;
}

}  // namespace

Result<std::unique_ptr<ExportedYoloDecoder>> ExportedYoloDecoder::create(std::span<const std::vector<int64_t>> shapes,
                                                                         int64_t input_height, int64_t input_width,
                                                                         const DetectOptions& options) {
  std::unique_ptr<ExportedYoloDecoder> decoder(new ExportedYoloDecoder());
  decoder->options_ = options;
  std::string all;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (decoder->recognise(shapes[i], input_height, input_width)) {
      decoder->output_ = i;
      return decoder;
    }
    all += (i == 0 ? "" : ", ") + fmt::format("{}", fmt::join(shapes[i], "x"));
  }
  return unsupported(fmt::format("the file's output ({}) is not one of a YOLO network that is known", all));
}

bool ExportedYoloDecoder::recognise(std::span<const int64_t> shape, int64_t input_height, int64_t input_width) {
  if (shape.size() != 3) return false;
  const char* family = nullptr;
  for (const int64_t last : {32, 64}) {
    const int64_t count = cells(input_height, input_width, last);
    if (count <= 0) continue;
    if (shape[1] == 3 * count && shape[2] > 5) {
      layout_ = Layout::kAnchors;
      boxes_ = shape[1];
      classes_ = shape[2] - 5;
      family = "YOLOv5's";
    } else if (shape[2] == count && shape[1] > 4) {
      layout_ = Layout::kTransposed;
      boxes_ = shape[2];
      classes_ = shape[1] - 4;
      family = "YOLOv8's";
    }
  }
  if (family == nullptr && shape[2] == 6 && shape[1] > 0 && shape[1] <= kMostEndToEndBoxes) {
    layout_ = Layout::kEndToEnd;
    boxes_ = shape[1];
    classes_ = 0;
    family = "YOLOv10's (boxes already suppressed)";
  }
  if (family == nullptr) return false;
  description_ = fmt::format("output {} is read as {}", fmt::join(shape, "x"), family);
  return true;
}

std::vector<Detection> ExportedYoloDecoder::decode(std::span<const float* const> outputs,
                                                   const PicturePlacement& placement) const {
  std::vector<Detection> found;
  if (output_ >= outputs.size()) return found;
  switch (layout_) {
    case Layout::kAnchors:
      decode_anchors(outputs[output_], placement, found);
      break;
    case Layout::kTransposed:
      decode_transposed(outputs[output_], placement, found);
      break;
    case Layout::kEndToEnd:
      decode_end_to_end(outputs[output_], placement, found);
      std::stable_sort(found.begin(), found.end(),
                       [](const Detection& a, const Detection& b) { return a.score > b.score; });
      return found;
  }
  return non_maximum_suppression(std::move(found), options_.nms_threshold);
}

void ExportedYoloDecoder::decode_anchors(const float* rows, const PicturePlacement& placement,
                                         std::vector<Detection>& out) const {
  for (int64_t box = 0; box < boxes_; ++box, rows += 5 + classes_) {
    if (!(rows[4] >= options_.score_threshold)) continue;
    const float* const best = std::max_element(rows + 5, rows + 5 + classes_);
    const float score = rows[4] * *best;
    if (!(score >= options_.score_threshold)) continue;
    const auto detection =
        into_picture({rows[0], rows[1], rows[2], rows[3]}, placement, static_cast<int>(best - rows - 5), score);
    if (detection) out.push_back(*detection);
  }
}

void ExportedYoloDecoder::decode_transposed(const float* planes, const PicturePlacement& placement,
                                            std::vector<Detection>& out) const {
  // Plane by plane, as the numbers lie: the best class of every box first.
  std::vector<float> best(planes + 4 * boxes_, planes + 5 * boxes_);
  std::vector<int> best_class(static_cast<size_t>(boxes_), 0);
  for (int64_t c = 1; c < classes_; ++c) {
    const float* const plane = planes + (4 + c) * boxes_;
    for (int64_t box = 0; box < boxes_; ++box) {
      const auto at = static_cast<size_t>(box);
      if (!(plane[box] > best[at])) continue;
      best[at] = plane[box];
      best_class[at] = static_cast<int>(c);
    }
  }
  for (int64_t box = 0; box < boxes_; ++box) {
    const auto at = static_cast<size_t>(box);
    if (!(best[at] >= options_.score_threshold)) continue;
    const auto value = [&](int64_t plane) { return planes[plane * boxes_ + box]; };
    const auto detection = into_picture({value(0), value(1), value(2), value(3)}, placement, best_class[at], best[at]);
    if (detection) out.push_back(*detection);
  }
}

void ExportedYoloDecoder::decode_end_to_end(const float* rows, const PicturePlacement& placement,
                                            std::vector<Detection>& out) const {
  for (int64_t box = 0; box < boxes_; ++box, rows += 6) {
    if (!(rows[4] >= options_.score_threshold) || !(rows[5] >= 0 && rows[5] < 1e6F)) continue;
    const auto detection =
        into_picture({(rows[0] + rows[2]) / 2, (rows[1] + rows[3]) / 2, rows[2] - rows[0], rows[3] - rows[1]},
                     placement, static_cast<int>(std::lround(rows[5])), rows[4]);
    if (detection) out.push_back(*detection);
  }
}

}  // namespace strobe::models
