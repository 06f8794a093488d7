// `strobe frames evaluate`: how well detections fit the truth.
#pragma once

#include <string>

#include "strobe/base/result.h"

namespace strobe::app {

struct EvaluateFlags {
  std::string detections, truth;
  std::string format = "text";
};

// Prints COCO's average precision and recall, in all and by category.
Result<int> evaluate_detections(const EvaluateFlags& flags);

}  // namespace strobe::app
