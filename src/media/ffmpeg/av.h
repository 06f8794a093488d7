// Small helpers around FFmpeg's C interface: ownership, options, error texts.
#pragma once

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
#include <libavutil/avutil.h>
#include <libavutil/dict.h>
#include <libavutil/frame.h>
#include <libavutil/pixdesc.h>
}

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "media/frame.h"

namespace strobe::media {

struct AVPacketDeleter {
  void operator()(AVPacket* packet) const { av_packet_free(&packet); }
};
struct AVCodecContextDeleter {
  void operator()(AVCodecContext* context) const { avcodec_free_context(&context); }
};
struct AVInputDeleter {
  void operator()(AVFormatContext* context) const { avformat_close_input(&context); }
};
using AVPacketPtr = std::unique_ptr<AVPacket, AVPacketDeleter>;
using AVCodecContextPtr = std::unique_ptr<AVCodecContext, AVCodecContextDeleter>;
using AVInputPtr = std::unique_ptr<AVFormatContext, AVInputDeleter>;

class Options {
 public:
  Options() = default;
  explicit Options(const std::vector<std::pair<std::string, std::string>>& pairs) {
    for (const auto& [key, value] : pairs) set(key, value);
  }
  Options(const Options&) = delete;
  Options& operator=(const Options&) = delete;
  ~Options() { av_dict_free(&dictionary_); }
  void set(const std::string& key, const std::string& value) {
    av_dict_set(&dictionary_, key.c_str(), value.c_str(), 0);
  }
  AVDictionary** get() { return &dictionary_; }

 private:
  AVDictionary* dictionary_ = nullptr;
};

// FFmpeg's log goes nowhere; the last error line of each thread is kept to explain the code that comes back.
void capture_log();
void forget_log();
const std::string& last_log_line();

// "Invalid data found when processing input (moov atom not found)": the text of an AVERROR code, and the log line of
// this thread since forget_log().
std::string error_text(int code);

// A shared frame out of a decoded or made picture; size is the picture's.
Frame make_frame(AVFramePtr picture, int64_t index, double time_s);

}  // namespace strobe::media
