#include "pipeline/network_input.h"

#include <algorithm>

namespace strobe::pipeline {

media::InputFormat input_format(const models::InputRule& rule, int width, int height) {
  media::InputFormat format;
  format.width = width;
  format.height = height;
  format.letterbox = rule.fit == models::InputRule::Fit::kLetterbox;
  format.bgr = rule.bgr;
  format.scale = rule.scale;
  std::copy(std::begin(rule.mean), std::end(rule.mean), format.mean);
  std::copy(std::begin(rule.deviation), std::end(rule.deviation), format.deviation);
  return format;
}

}  // namespace strobe::pipeline
