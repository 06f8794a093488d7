#include "models/zoo.h"

#include <algorithm>

namespace strobe::models {

const std::vector<ZooEntry>& zoo() {
  static const std::vector<ZooEntry> entries = {
      {"yolov4-tiny", "YOLOv4-tiny, 416x416, 80 COCO classes", &make_yolov4_tiny},
      {"person-tiny", "Person detector, 384x288, 1 class, trained", &make_person_tiny, &person_tiny_weights},
      {"resnet18", "ResNet-18, 224x224, 1000 ImageNet classes", &make_resnet18},
      {"resnet50", "ResNet-50, 224x224, 1000 ImageNet classes", &make_resnet50},
      {"mobilenet_v2", "MobileNetV2 1.0, 224x224, 1000 ImageNet classes", &make_mobilenet_v2},
      {"mnasnet1_0", "MnasNet-B1 1.0, 224x224, 1000 ImageNet classes", &make_mnasnet1_0},
      {"squeezenet1_1", "SqueezeNet 1.1, 224x224, 1000 ImageNet classes", &make_squeezenet1_1},
      {"googlenet", "GoogLeNet, 224x224, 1000 ImageNet classes", &make_googlenet},
      {"vgg16", "VGG-16, 224x224, 1000 ImageNet classes", &make_vgg16},
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
