#include "media/ffmpeg/canvas.h"

#include <algorithm>
#include <cmath>

#include "media/ffmpeg/convert.h"

namespace strobe::media {

Canvas::Canvas(AVFrame& picture) : picture_(picture) {
  const AVPixFmtDescriptor& description = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(picture.format));
  const bool is_rgb = (description.flags & AV_PIX_FMT_FLAG_RGB) != 0;
  const int count = description.nb_components < 3 ? 1 : 3;  // alpha stays as it is
  for (int c = 0; c < count; ++c) {
    const AVComponentDescriptor& source = description.comp[c];
    Component component;
    component.first = picture.data[source.plane] + source.offset;
    component.stride = picture.linesize[source.plane];
    component.step = source.step;
    component.log2_x = c > 0 && !is_rgb ? description.log2_chroma_w : 0;
    component.log2_y = c > 0 && !is_rgb ? description.log2_chroma_h : 0;
    component.width = AV_CEIL_RSHIFT(picture.width, component.log2_x);
    component.height = AV_CEIL_RSHIFT(picture.height, component.log2_y);
    components_.push_back(component);
  }
}

std::array<int, 3> Canvas::component_values(uint32_t rgb) const {
  const std::array<double, 3> colour = {static_cast<double>(rgb >> 16 & 255), static_cast<double>(rgb >> 8 & 255),
                                        static_cast<double>(rgb & 255)};
  const AVPixFmtDescriptor& description = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(picture_.format));
  if ((description.flags & AV_PIX_FMT_FLAG_RGB) != 0) {
    return {static_cast<int>(colour[0]), static_cast<int>(colour[1]), static_cast<int>(colour[2])};
  }
  const auto [red, blue] = luma_weights(matrix_of(picture_));
  const double luma = red * colour[0] + (1 - red - blue) * colour[1] + blue * colour[2];
  const double u = (colour[2] - luma) / (2 * (1 - blue));
  const double v = (colour[0] - luma) / (2 * (1 - red));
  const bool full = is_full_range(picture_);
  const auto byte = [](double value) { return std::clamp(static_cast<int>(std::lround(value)), 0, 255); };
  if (full) return {byte(luma), byte(128 + u), byte(128 + v)};
  return {byte(16 + luma * 219 / 255), byte(128 + u * 224 / 255), byte(128 + v * 224 / 255)};
}

void Canvas::paint(const Mask& mask, uint32_t rgb, float opacity) {
  const std::array<int, 3> values = component_values(rgb);
  const int share = std::clamp(static_cast<int>(std::lround(opacity * 256)), 0, 256);
  for (size_t c = 0; c < components_.size(); ++c) paint_component(components_[c], mask, values[c], share);
}

// weight: 0 .. 255 * 256
static uint8_t mix(int sample, int value, int weight) {
  constexpr int kWhole = 255 * 256;
  return static_cast<uint8_t>((sample * kWhole + (value - sample) * weight + kWhole / 2) / kWhole);
}

void Canvas::paint_component(const Component& component, const Mask& mask, int value, int opacity) {
  const int left = std::max(mask.x, 0);
  const int top = std::max(mask.y, 0);
  const int right = std::min(mask.x + mask.width, picture_.width);
  const int bottom = std::min(mask.y + mask.height, picture_.height);
  if (left >= right || top >= bottom) return;
  if (component.log2_x == 0 && component.log2_y == 0) {
    for (int y = top; y < bottom; ++y) {
      const uint8_t* const covered = &mask.coverage[static_cast<size_t>(y - mask.y) * static_cast<size_t>(mask.width)];
      uint8_t* const line = component.first + y * component.stride;
      for (int x = left; x < right; ++x) {
        const int cover = covered[x - mask.x];
        if (cover == 0) continue;
        uint8_t& sample = line[x * component.step];
        sample = mix(sample, value, cover * opacity);
      }
    }
    return;
  }
  const int cell_x = 1 << component.log2_x;
  const int cell_y = 1 << component.log2_y;
  for (int row = top >> component.log2_y; row << component.log2_y < bottom; ++row) {
    uint8_t* const line = component.first + row * component.stride;
    const int first_y = std::max(row * cell_y, top);
    const int last_y = std::min((row + 1) * cell_y, bottom);
    for (int column = left >> component.log2_x; column << component.log2_x < right; ++column) {
      const int first_x = std::max(column * cell_x, left);
      const int last_x = std::min((column + 1) * cell_x, right);
      int covered = 0;
      for (int y = first_y; y < last_y; ++y) {
        for (int x = first_x; x < last_x; ++x) covered += mask.at(x - mask.x, y - mask.y);
      }
      if (covered == 0) continue;
      // A cell at the right or lower border of the picture may stand for fewer pixels.
      int pixels = cell_x * cell_y;
      if ((column + 1) * cell_x > picture_.width || (row + 1) * cell_y > picture_.height) {
        pixels = (std::min((column + 1) * cell_x, picture_.width) - column * cell_x) *
                 (std::min((row + 1) * cell_y, picture_.height) - row * cell_y);
      }
      uint8_t& sample = line[column * component.step];
      sample = mix(sample, value, covered * opacity / pixels);
    }
  }
}

}  // namespace strobe::media
