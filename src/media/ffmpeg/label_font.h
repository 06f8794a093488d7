// LabelFont: FreeType glyphs of one size, for labels.
#pragma once

#include <string_view>

#include "media/ffmpeg/canvas.h"

namespace strobe::media {

class LabelFont {
 public:
  virtual ~LabelFont() = default;
  virtual int ascent() const = 0;   // of capitals, above the base line
  virtual int descent() const = 0;  // below it, positive
  virtual int width(std::string_view text) = 0;
  // The text, its base line starting at (x, y), as a mask of what can be seen of it on the canvas; may be empty.
  virtual void render(std::string_view text, int x, int y, const Canvas& canvas, Mask& mask) = 0;
};

// The font of the calling thread in this size; null where the machine has none (said once on stderr).
LabelFont* label_font(int pixels);

}  // namespace strobe::media
