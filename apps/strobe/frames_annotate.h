// `strobe frames annotate`: a detector's boxes, drawn into pictures or a video and written in COCO's format.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "run_flags.h"
#include "strobe/base/result.h"

namespace strobe::app {

struct AnnotateFlags {
  std::string input, output;
  std::string model = RunFlags().model, weights, labels, engine = RunFlags().engines.front(), size;
  float threshold = 0.5F, nms = RunFlags().nms;
  std::vector<std::string> classes;
  std::string format = "jpg";
  bool pictures = false, quiet = false;
};

// Detects everything first (pipeline::run_video), then draws. Writes one picture a picture, or OUT/annotated.mp4 of a
// video, and OUT/annotations.json. Exit code 0; errors: bad flags, inputs and networks; a source that breaks off, after
// all that it gave was written.
Result<int> annotate_frames(const AnnotateFlags& flags, const std::atomic<bool>& stop);

}  // namespace strobe::app
