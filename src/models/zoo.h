// Built-in networks: described in code, so that they need no file.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "strobe/base/result.h"
#include "strobe/models/graph.h"

namespace strobe::models {

struct ZooOptions {
  int64_t width = 0, height = 0;  // 0: the network's own input size
  int64_t classes = 0;            // 0: the network's own (80 of COCO, 1000 of ImageNet)
};

struct ZooEntry {
  std::string_view name;
  std::string_view description;
  Result<Graph> (*make)(const ZooOptions& options);  // weights are declared, not filled
  std::string_view (*weights)() = nullptr;           // its own trained ones, as safetensors; null: it has none
};
const std::vector<ZooEntry>& zoo();
const ZooEntry* find_in_zoo(std::string_view name);  // null: no such network

// YOLOv4-tiny (Bochkovskiy et al. 2020; Wang et al. 2020), 416x416: three CSP blocks of which each routes half of its
// channels, two heads. Layer names are those that its published .cfg would give.
Result<Graph> make_yolov4_tiny(const ZooOptions& options);

// Our own person detector: 0.4 M parameters, 384x288, two heads. Trained by tools/train_person_tiny.sh, which says on
// what and with which result.
Result<Graph> make_person_tiny(const ZooOptions& options);
std::string_view person_tiny_weights();

// Classifiers with the structure, parameters and module names of torchvision's: its state dictionaries fit (as
// safetensors, models/safetensors.h). Inputs of 224x224; other sizes as far as every layer gets at least one pixel
// (vgg16: multiples of 224).
Result<Graph> make_resnet18(const ZooOptions& options);
Result<Graph> make_resnet50(const ZooOptions& options);
Result<Graph> make_mobilenet_v2(const ZooOptions& options);
Result<Graph> make_mnasnet1_0(const ZooOptions& options);
Result<Graph> make_squeezenet1_1(const ZooOptions& options);
Result<Graph> make_googlenet(const ZooOptions& options);
Result<Graph> make_vgg16(const ZooOptions& options);

// The 80 class names of COCO in the order and spelling of Darknet's coco.names.
std::vector<std::string> coco_names();

}  // namespace strobe::models
