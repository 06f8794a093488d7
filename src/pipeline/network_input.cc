#include "pipeline/network_input.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

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

PictureBytes grey_picture(const media::InputFormat& format) {
  static constexpr uint8_t kGrey = 128;
  const auto taps = [](int count) {
    const auto size = static_cast<size_t>(count);
    return SampleTaps{std::vector<int64_t>(size), std::vector<int64_t>(size), std::vector<float>(size)};
  };
  PictureSampling sampling;
  sampling.width = sampling.placed_width = format.width;
  sampling.height = sampling.placed_height = format.height;
  sampling.planes = {{1, 1}};
  for (size_t c = 0; c < PictureSampling::kChannels; ++c) {
    sampling.components[c] = {.plane = 0,
                              .offset = 0,
                              .step = 1,
                              .width = 1,
                              .height = 1,
                              .columns = taps(format.width),
                              .rows = taps(format.height)};
    sampling.mix[c][c] = sampling.gain[c] = 1;
  }
  return {.sampling = std::make_shared<const PictureSampling>(std::move(sampling)),
          .planes = {{&kGrey, 1}},
          .owner = nullptr};
}

}  // namespace strobe::pipeline
