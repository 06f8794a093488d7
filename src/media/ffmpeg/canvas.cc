#include "media/ffmpeg/canvas.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "media/ffmpeg/convert.h"
#include "media/ffmpeg/draw_kernels.h"

namespace strobe::media {
namespace {

int round_up(int value, int unit) {
  return (value + unit - 1) / unit * unit;
}

}  // namespace

void Mask::reset(const Area& area, bool one_row) {
  area_ = area;
  one_row_ = one_row;
  row_bytes_ = round_up(area.width(), 2 * kDrawGroup);  // half of it, for chroma, is still whole groups
  weights_.resize(static_cast<size_t>(row_bytes_) * static_cast<size_t>(rows()));
}

void Mask::seal() {
  const auto surplus = static_cast<size_t>(row_bytes_ - area_.width());
  for (int index = 0; index < rows(); ++index) std::memset(row(index) + area_.width(), 0, surplus);
}

Canvas::Canvas(AVFrame& picture) : picture_(picture) {
  const AVPixFmtDescriptor& description = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(picture.format));
  count_ = description.nb_components < 3 ? 1 : 3;  // alpha stays as it is
  if (count_ == 3 && (description.flags & AV_PIX_FMT_FLAG_RGB) == 0) {
    log2_x_ = description.log2_chroma_w;
    log2_y_ = description.log2_chroma_h;
  }
  for (size_t c = 0; c < count_; ++c) {
    const AVComponentDescriptor& source = description.comp[c];
    components_[c] = {picture.data[source.plane] + source.offset, picture.linesize[source.plane], source.step};
  }
}

Area Canvas::fit(const Area& area) const {
  const auto below = [](int value, int log2) { return std::max(value, 0) >> log2 << log2; };
  const auto above = [](int value, int log2, int end) {
    return std::min((std::clamp(value, 0, end) + (1 << log2) - 1) >> log2 << log2, end);
  };
  return {below(area.left, log2_x_), below(area.top, log2_y_), above(area.right, log2_x_, width()),
          above(area.bottom, log2_y_, height())};
}

Canvas::Ink Canvas::ink(uint32_t rgb) const {
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

// A cell at the right or lower border of the picture stands for fewer pixels.
void Canvas::shrink(Mask& mask, Mask& cells) const {
  const Area& pixels = mask.area();
  cells.reset({pixels.left >> log2_x_, pixels.top >> log2_y_, AV_CEIL_RSHIFT(pixels.right, log2_x_),
               AV_CEIL_RSHIFT(pixels.bottom, log2_y_)},
              mask.one_row());
  const int columns = cells.area().width();
  const DrawKernels& kernels = draw_kernels();
  for (int row = 0; row < cells.rows(); ++row) {
    const int first = mask.one_row() ? 0 : row << log2_y_;
    const int last = std::min(first + (1 << log2_y_), mask.rows()) - 1;
    uint8_t* const out = cells.row(row);
    if (log2_x_ == 1 && last - first <= 1) {
      const uint8_t* const upper = mask.row(first);
      const uint8_t* const lower = mask.row(last);
      kernels.halve(upper, lower, round_up(columns, kDrawGroup), out);
      const int end = pixels.width() - 1;
      if (end % 2 == 0) out[columns - 1] = static_cast<uint8_t>((upper[end] + lower[end]) / 2);
      continue;
    }
    for (int column = 0; column < columns; ++column) {
      const int left = column << log2_x_;
      const int right = std::min(left + (1 << log2_x_), pixels.width());
      int sum = 0;
      for (int y = first; y <= last; ++y) {
        for (int x = left; x < right; ++x) sum += mask.row(y)[x];
      }
      out[column] = static_cast<uint8_t>(sum / ((right - left) * (last - first + 1)));
    }
  }
  cells.seal();
}

void Canvas::paint(Mask& mask, const Ink& ink) {
  if (mask.area().empty()) return;
  mask.seal();
  paint_component(components_[0], mask, ink[0]);
  if (count_ < 3) return;
  thread_local Mask cells;
  const bool subsampled = log2_x_ > 0 || log2_y_ > 0;
  if (subsampled) shrink(mask, cells);
  for (size_t c = 1; c < 3; ++c) paint_component(components_[c], subsampled ? cells : mask, ink[c]);
}

void Canvas::paint_component(const Component& component, Mask& mask, int value) {
  const Area& area = mask.area();
  uint8_t* first = component.first + area.top * component.stride + area.left * component.step;
  if (component.step == 1) {
    // Beyond the area, at most one group less a sample, nothing is changed; behind the last row lies padding.
    draw_kernels().mix(first, component.stride, mask.row(0), mask.stride(), round_up(area.width(), kDrawGroup),
                       area.height(), value);
    return;
  }
  for (int row = 0; row < area.height(); ++row, first += component.stride) {
    const uint8_t* const weights = mask.row(mask.one_row() ? 0 : row);
    for (int column = 0; column < area.width(); ++column) {
      if (weights[column] == 0) continue;
      uint8_t& sample = first[column * component.step];
      sample = mixed(sample, value, weights[column]);
    }
  }
}

}  // namespace strobe::media
