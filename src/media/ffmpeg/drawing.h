// The body of draw().
#pragma once

#include <span>

#include "media/draw.h"

namespace strobe::media {

Result<Frame> draw_annotations(const Frame& frame, std::span<const Annotation> annotations);

}  // namespace strobe::media
