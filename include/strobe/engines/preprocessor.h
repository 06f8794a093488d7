// Preprocessing on the device that a network runs on: pictures go there as they are, and the network's input is made
// and read there.
#pragma once

#include <cstdint>
#include <memory>

#include "strobe/base/picture_sampling.h"
#include "strobe/base/result.h"

namespace strobe::engines {

struct PrepOptions {
  // Before it is sampled each component is smoothed as FFmpeg's gblur with this sigma (in its own samples, steps 1)
  // does it, and rounded to whole values; 0: not.
  double smoothing_sigma = 0;
};

// The input of one batch on a device. Only the engine that made it looks into it. Goes before the network that it is
// of.
class DeviceInput {
 public:
  virtual ~DeviceInput() = default;
};

// Used by one thread at a time; create_input by any.
class Preprocessor {
 public:
  virtual ~Preprocessor() = default;
  // Of the network's input shape; zeros.
  virtual Result<std::unique_ptr<DeviceInput>> create_input() = 0;
  // Samples the picture into item `item` of the input: copies its bytes, sends them and gives the work to the device.
  // Returns before that is done, but is at most a few pictures ahead of the device. The input is not in a run
  // meanwhile. Errors: kEngine, kUnsupported (the device's memory is full), kInternal (another network's input).
  virtual Result<void> put(const PictureBytes& picture, int64_t item, DeviceInput& input) = 0;
};

}  // namespace strobe::engines
