// The second pass of `strobe frames annotate`: the input is read again, and what was found in it drawn.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "media/source.h"
#include "pipeline/video_run.h"
#include "strobe/base/result.h"

namespace strobe::app {

struct DrawingOptions {
  std::string input;
  media::SourceInfo source;  // as the first pass saw it
  std::filesystem::path folder;
  std::string format = "jpg";      // of pictures
  bool pictures_of_video = false;  // one picture a frame instead of annotated.mp4
  std::function<void(int64_t finished)> on_progress;
};

struct DrawnFrame {
  std::string
      source_name;  // of the picture that was read; of a frame of a video: as `frames extract --every 1` names it
  int width = 0, height = 0;
};

// Draws frame i of the input with the boxes of detections[i], and writes it. A frame beyond the detections is not
// written. A video breaks off where it did before, which is no error here. Returns one element a written frame.
Result<std::vector<DrawnFrame>> draw_frames(const DrawingOptions& options,
                                            const std::vector<pipeline::FrameDetections>& detections,
                                            const std::vector<std::string>& labels);

}  // namespace strobe::app
