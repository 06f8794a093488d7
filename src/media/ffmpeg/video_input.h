// VideoInput: one opened demuxer and the decoder of its video stream. What files, pictures and live sources share.
#pragma once

#include <atomic>
#include <chrono>
#include <optional>
#include <string>

#include "media/common/input_kind.h"
#include "media/ffmpeg/av.h"
#include "media/ffmpeg/decoder_pictures.h"
#include "media/ffmpeg/hardware_decoder.h"
#include "media/source.h"
#include "strobe/base/result.h"

namespace strobe::media {

// What FFmpeg asks while it blocks: has the user stopped, is the time up?
struct Watch {
  const std::atomic<bool>* stop = nullptr;
  std::optional<std::chrono::steady_clock::time_point> deadline;

  bool stopped() const { return stop != nullptr && stop->load(std::memory_order_relaxed); }
  bool late() const { return deadline && std::chrono::steady_clock::now() > *deadline; }
  void expect_within(double seconds) {
    deadline = std::chrono::steady_clock::now() +
               std::chrono::duration_cast<std::chrono::steady_clock::duration>(std::chrono::duration<double>(seconds));
  }
};

class VideoInput {
 public:
  // Errors: as open_source. kInterrupted when stopped while opening.
  static Result<std::unique_ptr<VideoInput>> open(const std::string& input, InputKind kind,
                                                  const SourceOptions& options);
  VideoInput(const VideoInput&) = delete;
  VideoInput& operator=(const VideoInput&) = delete;
  ~VideoInput() = default;

  // The next decoded picture; null at the end (or when stopped). What breaks off in the middle is reported once the
  // pictures before it were given. Errors: kBadData, kIo.
  Result<AVFramePtr> next();

  SourceInfo info() const;
  int64_t damaged() const { return damaged_; }
  // Seconds of the picture's presentation since the start of the stream, where the container says so.
  std::optional<double> seconds(const AVFrame& picture) const;
  bool has_known_end() const { return demuxer_->duration > 0; }

 private:
  VideoInput(std::string input, InputKind kind, const SourceOptions& options);
  Result<void> open_demuxer();
  Result<void> open_decoder();
  void fill_memory();
  Result<void> feed();
  Result<void> check_complete();
  Error open_error(int code) const;

  std::string input_;
  InputKind kind_;
  SourceOptions options_;
  Watch watch_;
  AVInputPtr demuxer_;  // after watch_: closing it may still ask
  DecoderPictures memory_;
  std::unique_ptr<HardwareDecoder> hardware_;  // null: the processor decodes
  AVCodecContextPtr decoder_;                  // after memory_ and hardware_, out of which it takes its pictures
  AVPacketPtr packet_{av_packet_alloc()};
  AVStream* stream_ = nullptr;
  int64_t packets_ = 0;
  int64_t pictures_ = 0;
  int64_t damaged_ = 0;
  bool draining_ = false;
  bool cut_packet_ = false;         // the last packet was shorter than it says
  std::optional<Error> broke_off_;  // reported when the decoder is empty
};

}  // namespace strobe::media
