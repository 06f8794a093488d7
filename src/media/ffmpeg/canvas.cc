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

namespace {

// weight: 0 .. 255 * 256
uint8_t mix(int sample, int value, int weight) {
  constexpr int kWhole = 255 * 256;
  return static_cast<uint8_t>((sample * kWhole + (value - sample) * weight + kWhole / 2) / kWhole);
}

}  // namespace

// A cell at the right or lower border of the picture stands for fewer pixels.
Mask Canvas::shrink(const Mask& mask, int log2_x, int log2_y) const {
  const int left = std::max(mask.x, 0) >> log2_x;
  const int top = std::max(mask.y, 0) >> log2_y;
  const int right = AV_CEIL_RSHIFT(std::min(mask.x + mask.width, picture_.width), log2_x);
  const int bottom = AV_CEIL_RSHIFT(std::min(mask.y + mask.height, picture_.height), log2_y);
  Mask cells(left, top, right - left, bottom - top);
  std::vector<int> sums(static_cast<size_t>(cells.width));
  for (int row = 0; row < cells.height; ++row) {
    std::fill(sums.begin(), sums.end(), 0);
    const int cell_top = (top + row) << log2_y;
    const int cell_bottom = std::min(cell_top + (1 << log2_y), picture_.height);
    for (int y = std::max(cell_top, mask.y); y < std::min(cell_bottom, mask.y + mask.height); ++y) {
      const int first = std::max(mask.x, 0);
      const int last = std::min(mask.x + mask.width, picture_.width);
      for (int x = first; x < last; ++x)
        sums[static_cast<size_t>((x >> log2_x) - left)] += mask.at(x - mask.x, y - mask.y);
    }
    for (int column = 0; column < cells.width; ++column) {
      const int cell_left = (left + column) << log2_x;
      const bool whole = cell_left + (1 << log2_x) <= picture_.width && cell_bottom == cell_top + (1 << log2_y);
      const int sum = sums[static_cast<size_t>(column)];
      const int pixels = (std::min(cell_left + (1 << log2_x), picture_.width) - cell_left) * (cell_bottom - cell_top);
      cells.at(column, row) = static_cast<uint8_t>(whole ? sum >> (log2_x + log2_y) : sum / pixels);
    }
  }
  return cells;
}

void Canvas::paint(const Mask& mask, uint32_t rgb, float opacity) {
  const std::array<int, 3> values = component_values(rgb);
  const int share = std::clamp(static_cast<int>(std::lround(opacity * 256)), 0, 256);
  paint_component(components_[0], mask, values[0], share);
  if (components_.size() < 3) return;
  const Component& chroma = components_[1];  // the third one is subsampled alike
  if (chroma.log2_x == 0 && chroma.log2_y == 0) {
    for (size_t c = 1; c < 3; ++c) paint_component(components_[c], mask, values[c], share);
  } else {
    const Mask cells = shrink(mask, chroma.log2_x, chroma.log2_y);
    for (size_t c = 1; c < 3; ++c) paint_component(components_[c], cells, values[c], share);
  }
}

void Canvas::paint_component(const Component& component, const Mask& mask, int value, int opacity) {
  const int left = std::max(mask.x, 0);
  const int right = std::min(mask.x + mask.width, component.width);
  const int bottom = std::min(mask.y + mask.height, component.height);
  for (int y = std::max(mask.y, 0); y < bottom; ++y) {
    uint8_t* const line = component.first + y * component.stride;
    for (int x = left; x < right; ++x) {
      const int cover = mask.at(x - mask.x, y - mask.y);
      if (cover == 0) continue;
      uint8_t& sample = line[x * component.step];
      sample = mix(sample, value, cover * opacity);
    }
  }
}

}  // namespace strobe::media
