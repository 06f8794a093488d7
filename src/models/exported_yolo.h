// The outputs of YOLO networks as their trainers export them to ONNX and TorchScript, recognised by shape.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "models/box_decoder.h"
#include "strobe/base/result.h"

namespace strobe::models {

// All count in pixels of the network's input, which is a letterboxed RGB picture scaled to 0..1. N: the cells of the
// strides 8, 16 and 32 (or also 64) of the input.
//   YOLOv5, v7            B x 3 N x (5 + classes)   centre x, y, width, height, objectness, class probabilities
//   YOLOv8, v9, v11, v12  B x (4 + classes) x N     centre x, y, width, height, class probabilities
//   YOLOv10, end to end   B x M x 6                 left, top, right, bottom, score, class; M <= 1000, already
//   suppressed
class ExportedYoloDecoder : public BoxDecoder {
 public:
  // shapes: of every output, batch first; the first one that fits is read. Errors: kUnsupported (says the shapes).
  static Result<std::unique_ptr<ExportedYoloDecoder>> create(std::span<const std::vector<int64_t>> shapes,
                                                             int64_t input_height, int64_t input_width,
                                                             const DetectOptions& options);

  std::vector<Detection> decode(std::span<const float* const> outputs,
                                const PicturePlacement& placement) const override;
  // "output 1x84x8400 read as YOLOv8's"
  const std::string& description() const { return description_; }
  int64_t classes() const { return classes_; }  // 0: the layout does not tell

 private:
  enum class Layout : uint8_t { kAnchors, kTransposed, kEndToEnd };
  ExportedYoloDecoder() = default;
  bool recognise(std::span<const int64_t> shape, int64_t input_height, int64_t input_width);
  void decode_anchors(const float* rows, const PicturePlacement& placement, std::vector<Detection>& out) const;
  void decode_transposed(const float* planes, const PicturePlacement& placement, std::vector<Detection>& out) const;
  void decode_end_to_end(const float* rows, const PicturePlacement& placement, std::vector<Detection>& out) const;

  Layout layout_ = Layout::kAnchors;
  size_t output_ = 0;
  int64_t boxes_ = 0, classes_ = 0;
  DetectOptions options_;
  std::string description_;
};

}  // namespace strobe::models
