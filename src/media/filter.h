// Filters on pictures before they enter a network, as FFmpeg describes them ("gblur=sigma=1,hue=s=1.2").
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "media/frame.h"
#include "strobe/base/result.h"

namespace strobe::media {

// A chain of filters of which each takes one picture and gives one. Used by one thread.
class PictureFilter {
 public:
  virtual ~PictureFilter() = default;
  // The filtered picture, with the frame's index and time; the frame itself stays as it is. Errors: kUnsupported (the
  // chain gave no picture, or the picture's format suits none of its filters).
  virtual Result<Frame> apply(const Frame& frame) = 0;
};

// Errors: kUsage ("no such filter: 'x'", an option that a filter does not have), kUnsupported (FFmpeg's filters are not
// built in, or the chain wants more than one picture or gives more).
Result<std::unique_ptr<PictureFilter>> open_filter(const std::string& description);

// How much is done to a picture before the network sees it.
enum class PrepLevel : uint8_t {
  kSimple,   // scaling and normalisation alone
  kMedium,   // noise is smoothed before
  kComplex,  // noise is removed along the edges, edges sharpened, colours corrected
};
// The chain of a level; empty for kSimple.
std::string_view filter_of(PrepLevel level);
// The same for somebody who does it elsewhere than in FFmpeg: the sigma of gblur, all that the level is; 0: nothing.
// Errors: kUnsupported (kComplex, whose bilateral filter goes from pixel to pixel).
Result<double> smoothing_of(PrepLevel level);

}  // namespace strobe::media

// What libstrobe_filter.so exports.
extern "C" {
using strobe_filter_open_fn = bool (*)(const std::string& description,
                                       strobe::Result<std::unique_ptr<strobe::media::PictureFilter>>* opened);
}
