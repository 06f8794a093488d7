// Sources of frames: video files, single pictures, folders of pictures, V4L2 cameras and RTSP streams, all through
// FFmpeg's libraries, and pictures made by rule. Without FFmpeg only the last and PPM files (src/media/plain).
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "media/frame.h"
#include "strobe/base/result.h"

namespace strobe::media {

struct SourceOptions {
  int decode_threads = 1;  // 0: as many as FFmpeg thinks right
  // A device that decodes videos and streams, by FFmpeg's name: "cuda" (NVDEC), "cuda:1", "vaapi"; empty: the
  // processor.
  std::string hwaccel;
  enum class RtspTransport : uint8_t { kTcp, kUdp } rtsp_transport = RtspTransport::kTcp;
  // Frames of a video that the caller holds at the same time, those that draw() makes included. When the source is
  // opened, memory for them and for the decoder's own pictures (256 MiB at most) is made ready, so that the run does
  // not wait for the system's pages; more than that is made when it is needed. 0: all of it is.
  int pictures_in_flight = 24;
  double timeout_s = 10;                    // of opening and of each read of a live source
  int reconnects = 5;                       // tries in a row after a live source broke, with growing pauses; 0: none
  double picture_fps = 30;                  // frame rate given to a folder of pictures
  const std::atomic<bool>* stop = nullptr;  // set: a blocked read returns the end of the stream within 0.1 s
};

struct SourceInfo {
  int width = 0, height = 0;
  double fps = 0;            // 0: unknown
  int64_t frames = 0;        // 0: unknown
  bool live = false;         // frames come at their own pace (camera, RTSP) and can be lost
  std::string codec;         // "h264"
  std::string pixel_format;  // "yuv420p"
  std::string kind;          // "file", "picture", "folder", "camera", "rtsp", "synthetic"
};

class Source {
 public:
  virtual ~Source() = default;
  virtual const SourceInfo& info() const = 0;
  // The next frame; nothing at the end. A damaged part of a file is skipped and counted; a file that breaks off gives
  // what it has, then the error kBadData saying at which frame. Errors: kBadData, kIo (live source lost for good).
  virtual Result<std::optional<Frame>> next() = 0;
  virtual int64_t damaged() const { return 0; }      // packets or frames that could not be decoded so far
  virtual int64_t reconnected() const { return 0; }  // times a live source was opened again
};

// input: a path of a video, of a picture (.jpg, .png, ...) or of a folder of pictures (sorted by name, numbers by
// value); rtsp://...; /dev/videoN; synthetic://WIDTHxHEIGHT[@FPS][/FRAMES].
// Errors: kNotFound, kBadData ("V: not a video: ..."), kUnsupported (codec, hwaccel), kUsage (hwaccel), kIo.
Result<std::unique_ptr<Source>> open_source(const std::string& input, const SourceOptions& options);

// Pictures that come as bytes: sensor messages, files that were read before.
class PictureDecoder {
 public:
  virtual ~PictureDecoder() = default;
  // JPEG, PNG or WebP, told by their first bytes. index and time_s go into the frame. Used by one thread at a time; the
  // pixels are the caller's. Errors: kBadData (not a whole picture), kUnsupported (another format).
  virtual Result<Frame> decode(std::span<const uint8_t> picture, int64_t index, double time_s) = 0;
};
Result<std::unique_ptr<PictureDecoder>> make_picture_decoder();

}  // namespace strobe::media
