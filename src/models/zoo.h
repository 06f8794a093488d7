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
  int64_t classes = 80;
};

struct ZooEntry {
  std::string_view name;
  std::string_view description;
  Result<Graph> (*make)(const ZooOptions& options);  // weights are declared, not filled
};
const std::vector<ZooEntry>& zoo();
const ZooEntry* find_in_zoo(std::string_view name);  // null: no such network

// YOLOv4-tiny (Bochkovskiy et al. 2020; Wang et al. 2020), 416x416: three CSP blocks of which each routes half of its
// channels, two heads. Layer names are those that its published .cfg would give.
Result<Graph> make_yolov4_tiny(const ZooOptions& options);

// The 80 class names of COCO in the order and spelling of Darknet's coco.names.
std::vector<std::string> coco_names();

}  // namespace strobe::models
