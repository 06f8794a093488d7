// Draws boxes and labels onto frames, in the frame's own pixel format.
#pragma once

#include <span>
#include <string>

#include "media/frame.h"
#include "strobe/base/result.h"

namespace strobe::media {

struct Annotation {
  float x = 0, y = 0, width = 0, height = 0;  // pixels of the frame
  std::string text;                           // label shown on a filled tab above the box; may be empty
  uint32_t rgb = 0xffffff;
};

// A well-distinguishable colour for a class id, always the same one.
uint32_t class_colour(int class_id);

// The frame with the annotations drawn, in a private copy of the pixels (from a pool); the same frame, uncopied, when
// there are none. Text is left out, and counted once in a warning, when no font is found on the machine.
Result<Frame> draw(const Frame& frame, std::span<const Annotation> annotations);

}  // namespace strobe::media
