#include "models/zoo.h"

#include <algorithm>

namespace strobe::models {

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> entries = {
      {"yolov4-tiny", "YOLOv4-tiny, 416x416, 80 COCO classes", &make_yolov4_tiny},
  };
  return entries;
}

const ZooEntry* find_in_zoo(std::string_view name) {
  const auto it = std::find_if(zoo().begin(), zoo().end(), [&](const ZooEntry& entry) { return entry.name == name; });
  return it == zoo().end() ? nullptr : &*it;
}

std::vector<std::string> coco_names() {
  return {
      "person",         "bicycle",    "car",           "motorbike",     "aeroplane",   "bus",           "train",
      "truck",          "boat",       "traffic light", "fire hydrant",  "stop sign",   "parking meter", "bench",
      "bird",           "cat",        "dog",           "horse",         "sheep",       "cow",           "elephant",
      "bear",           "zebra",      "giraffe",       "backpack",      "umbrella",    "handbag",       "tie",
      "suitcase",       "frisbee",    "skis",          "snowboard",     "sports ball", "kite",          "baseball bat",
      "baseball glove", "skateboard", "surfboard",     "tennis racket", "bottle",      "wine glass",    "cup",
      "fork",           "knife",      "spoon",         "bowl",          "banana",      "apple",         "sandwich",
      "orange",         "broccoli",   "carrot",        "hot dog",       "pizza",       "donut",         "cake",
      "chair",          "sofa",       "pottedplant",   "bed",           "diningtable", "toilet",        "tvmonitor",
      "laptop",         "mouse",      "remote",        "keyboard",      "cell phone",  "microwave",     "oven",
      "toaster",        "sink",       "refrigerator",  "book",          "clock",       "vase",          "scissors",
      "teddy bear",     "hair drier", "toothbrush"};
}

}  // namespace strobe::models
