// `strobe frames extract`: pictures out of a video.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "strobe/base/result.h"

namespace strobe::app {

struct ExtractFlags {
  std::string input, output;
  std::string prefix = "f", format = "png", size, start, end;
  double fps = 2;
  int64_t every = 0;  // 0: by fps
  int quality = 100;
  bool quiet = false;
};

// Which frames of a stream are taken. Ticks at start, start + 1/fps, ...: each takes the first frame that is shown at
// it or after it, so that a frame is taken once at most whatever the pace of the source.
class FramePicker {
 public:
  FramePicker(double start_s, double end_s, double fps, int64_t every)
      : start_s_(start_s), end_s_(end_s), fps_(fps), every_(every) {}
  // To be asked about every frame, in order.
  bool takes(double time_s);
  // Whether no later frame can be taken.
  bool is_past(double time_s) const { return time_s >= end_s_; }

 private:
  double start_s_, end_s_, fps_;
  int64_t every_, seen_ = 0, next_tick_ = 0;
};

// "12.5", "1:30", "01:02:03.25" as seconds.
Result<double> parse_time(const std::string& flag, const std::string& text);

// "640x480"; a side of 0 follows the other one. Nothing for an empty text.
struct PictureSize {
  int width = 0, height = 0;
};
Result<PictureSize> parse_size(const std::string& text);

// Writes DIR/<prefix>_000001.<format>, ... and DIR/frames.csv (file, frame, time_s). Exit code 0; errors: bad flags and
// inputs; a source that breaks off, after all that it gave was written.
Result<int> extract_frames(const ExtractFlags& flags, const std::atomic<bool>& stop);

}  // namespace strobe::app
