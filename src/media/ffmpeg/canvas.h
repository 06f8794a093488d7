// Canvas: anti-aliased shapes onto a picture in whatever 8-bit format it has. Shapes are masks at full resolution;
// a subsampled chroma sample takes the mean of the pixels that it stands for.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "media/ffmpeg/av.h"

namespace strobe::media {

// Pixels of a rectangle; right and bottom are the first ones beyond it.
struct Area {
  int left = 0, top = 0, right = 0, bottom = 0;
  int width() const { return right - left; }
  int height() const { return bottom - top; }
  bool empty() const { return right <= left || bottom <= top; }
};

// How much of each pixel of an area is painted, 0..255. Its memory is kept from one shape to the next.
class Mask {
 public:
  // one_row: all rows are alike, and only one is kept. The weights are not defined until they are written.
  void reset(const Area& area, bool one_row = false);
  void clear() { std::fill(weights_.begin(), weights_.end(), uint8_t{0}); }
  const Area& area() const { return area_; }
  int rows() const { return one_row_ ? 1 : area_.height(); }  // that are kept
  bool one_row() const { return one_row_; }
  ptrdiff_t stride() const { return one_row_ ? 0 : row_bytes_; }
  // Room for the area's width rounded up to a group of pixels.
  uint8_t* row(int index) { return weights_.data() + index * stride(); }
  // Nothing is painted right of the area.
  void seal();

 private:
  Area area_;
  bool one_row_ = false;
  ptrdiff_t row_bytes_ = 0;
  std::vector<uint8_t> weights_;
};

class Canvas {
 public:
  using Ink = std::array<int, 3>;  // a colour in the picture's components

  // picture: of a format with plain bytes, writable, out of new_picture(), and living as long as the canvas.
  explicit Canvas(AVFrame& picture);
  int width() const { return picture_.width; }
  int height() const { return picture_.height; }
  // Width and height of the cells of pixels that share one chroma sample.
  int cell_width() const { return 1 << log2_x_; }
  int cell_height() const { return 1 << log2_y_; }
  // The area grown to whole cells and cut to the picture: what a mask of it must cover.
  Area fit(const Area& area) const;
  Ink ink(uint32_t rgb) const;
  // The mask's area: as fit() gives it.
  void paint(Mask& mask, const Ink& ink);

 private:
  struct Component {
    uint8_t* first = nullptr;  // its first sample
    ptrdiff_t stride = 0;
    int step = 1;
  };
  // The mask as subsampled components see it, in their samples.
  void shrink(Mask& mask, Mask& cells) const;
  // The mask counts in samples of the component.
  static void paint_component(const Component& component, Mask& mask, int value);

  AVFrame& picture_;
  std::array<Component, 3> components_;
  size_t count_ = 0;
  int log2_x_ = 0, log2_y_ = 0;  // of chroma
};

}  // namespace strobe::media
