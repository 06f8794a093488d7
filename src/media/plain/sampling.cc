#include "media/plain/sampling.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

namespace strobe::media {
namespace {

constexpr size_t kChannels = 3;

// The two samples of each network position, and the weight of the second one.
struct Taps {
  std::vector<size_t> first, second;
  std::vector<float> weight;
};

Taps make_taps(int count, int extent) {
  Taps taps;
  const double scale = static_cast<double>(extent) / count;
  for (int i = 0; i < count; ++i) {
    const double position = std::clamp((i + 0.5) * scale - 0.5, 0.0, extent - 1.0);
    const int first = std::min(static_cast<int>(position), std::max(0, extent - 2));
    taps.first.push_back(static_cast<size_t>(first));
    taps.second.push_back(static_cast<size_t>(std::min(first + 1, extent - 1)));
    taps.weight.push_back(static_cast<float>(position - first));
  }
  return taps;
}

}  // namespace

Result<void> sample_rgb(const RgbPicture& picture, const InputFormat& format, float* output) {
  if (format.width <= 0 || format.height <= 0) return usage_error("a network input of size 0");
  const Placement placed = place(picture.width, picture.height, format);
  const auto left = static_cast<size_t>(placed.x), top = static_cast<size_t>(placed.y);
  const auto width = static_cast<size_t>(placed.width), height = static_cast<size_t>(placed.height);
  const Taps columns = make_taps(static_cast<int>(width), picture.width);
  const Taps rows = make_taps(static_cast<int>(height), picture.height);
  const auto line = static_cast<size_t>(format.width);
  const size_t plane = line * static_cast<size_t>(format.height);
  float gain[kChannels], bias[kChannels];
  for (size_t c = 0; c < kChannels; ++c) {
    gain[c] = format.scale / format.deviation[c];
    bias[c] = -format.mean[c] / format.deviation[c];
    if (width * height < plane) std::fill_n(output + c * plane, plane, 127.5F * gain[c] + bias[c]);
  }
  std::vector<float> blended(picture.stride());
  for (size_t row = 0; row < height; ++row) {
    const uint8_t* const above = picture.rgb.data() + rows.first[row] * picture.stride();
    const uint8_t* const below = picture.rgb.data() + rows.second[row] * picture.stride();
    const float weight = rows.weight[row];
    for (size_t i = 0; i < blended.size(); ++i) {
      const auto a = static_cast<float>(above[i]), b = static_cast<float>(below[i]);
      blended[i] = a + (b - a) * weight;
    }
    for (size_t c = 0; c < kChannels; ++c) {
      const float* const source = blended.data() + (format.bgr ? kChannels - 1 - c : c);
      float* const to = output + c * plane + (top + row) * line + left;
      for (size_t x = 0; x < width; ++x) {
        const float a = source[kChannels * columns.first[x]], b = source[kChannels * columns.second[x]];
        to[x] = (a + (b - a) * columns.weight[x]) * gain[c] + bias[c];
      }
    }
  }
  return {};
}

Result<PictureBytes> bytes_of_rgb(const RgbPicture& picture, std::shared_ptr<const void> owner,
                                  const InputFormat& format) {
  if (format.width <= 0 || format.height <= 0) return usage_error("a network input of size 0");
  struct Kind {
    int width = 0, height = 0;
    InputFormat input;
    bool operator==(const Kind&) const = default;
  };
  const Kind kind{picture.width, picture.height, format};
  thread_local Kind last;
  thread_local std::shared_ptr<const PictureSampling> sampling;
  if (!sampling || !(kind == last)) {
    const Placement placed = place(picture.width, picture.height, format);
    const auto table = [](float count, int extent) {
      Taps taps = make_taps(static_cast<int>(count), extent);
      return SampleTaps{
          {taps.first.begin(), taps.first.end()}, {taps.second.begin(), taps.second.end()}, std::move(taps.weight)};
    };
    PictureSampling made;
    made.width = format.width;
    made.height = format.height;
    made.left = static_cast<int64_t>(placed.x);
    made.top = static_cast<int64_t>(placed.y);
    made.placed_width = static_cast<int64_t>(placed.width);
    made.placed_height = static_cast<int64_t>(placed.height);
    made.planes = {{picture.height, static_cast<int64_t>(picture.stride())}};
    for (size_t c = 0; c < kChannels; ++c) {
      made.components[c] = {.plane = 0,
                            .offset = static_cast<int64_t>(c),
                            .step = kChannels,
                            .width = picture.width,
                            .height = picture.height,
                            .columns = table(placed.width, picture.width),
                            .rows = table(placed.height, picture.height)};
      made.mix[c][format.bgr ? kChannels - 1 - c : c] = 1;
      made.gain[c] = format.scale / format.deviation[c];
      made.bias[c] = -format.mean[c] / format.deviation[c];
    }
    sampling = std::make_shared<const PictureSampling>(std::move(made));
    last = kind;
  }
  return PictureBytes{.sampling = sampling,
                      .planes = {{picture.rgb.data(), static_cast<ptrdiff_t>(picture.stride())}},
                      .owner = std::move(owner)};
}

}  // namespace strobe::media
