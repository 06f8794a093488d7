// Canvas: anti-aliased shapes onto a picture in whatever 8-bit format it has. Shapes are masks at full resolution;
// a subsampled chroma sample takes the mean of the pixels that it stands for.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "media/ffmpeg/av.h"

namespace strobe::media {

// How much of each pixel of a rectangle is covered, 0..255. It may lie anywhere, also outside the picture.
struct Mask {
  Mask(int left, int top, int columns, int rows)
      : x(left),
        y(top),
        width(columns > 0 ? columns : 0),
        height(rows > 0 ? rows : 0),
        coverage(static_cast<size_t>(width) * static_cast<size_t>(height)) {}
  uint8_t& at(int column, int row) {
    return coverage[static_cast<size_t>(row) * static_cast<size_t>(width) + static_cast<size_t>(column)];
  }
  uint8_t at(int column, int row) const { return const_cast<Mask*>(this)->at(column, row); }

  int x, y, width, height;
  std::vector<uint8_t> coverage;
};

class Canvas {
 public:
  // picture: of a format with plain bytes, writable, and living as long as the canvas.
  explicit Canvas(AVFrame& picture);
  int width() const { return picture_.width; }
  int height() const { return picture_.height; }
  // Paints rgb through the mask; opacity 0..1 thins it.
  void paint(const Mask& mask, uint32_t rgb, float opacity = 1);

 private:
  struct Component {
    uint8_t* first = nullptr;  // its first sample
    ptrdiff_t stride = 0;
    int step = 1, width = 0, height = 0, log2_x = 0, log2_y = 0;
  };
  // The mask as subsampled components see it, in their samples.
  Mask shrink(const Mask& mask, int log2_x, int log2_y) const;
  // The mask counts in samples of the component.
  void paint_component(const Component& component, const Mask& mask, int value, int opacity);
  std::array<int, 3> component_values(uint32_t rgb) const;

  AVFrame& picture_;
  std::vector<Component> components_;
};

}  // namespace strobe::media
