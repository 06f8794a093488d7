#include "media/ffmpeg/av.h"

extern "C" {
#include <libavutil/log.h>
}

#include <cstdarg>
#include <cstdio>

namespace strobe::media {
namespace {

thread_local std::string last_line;

void keep_line(void* /*source*/, int level, const char* format, va_list arguments) {
  if (level > AV_LOG_ERROR) return;
  char line[256];
  std::vsnprintf(line, sizeof line, format, arguments);
  std::string text = line;
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ' || text.back() == '.')) text.pop_back();
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  }
  if (!text.empty()) last_line = std::move(text);
}

}  // namespace

void capture_log() {
  av_log_set_callback(keep_line);
}
void forget_log() {
  last_line.clear();
}
const std::string& last_log_line() {
  return last_line;
}

std::string error_text(int code) {
  char buffer[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, buffer, sizeof buffer);
  return last_line.empty() ? std::string(buffer) : std::string(buffer) + " (" + last_line + ")";
}

void AVFrameDeleter::operator()(AVFrame* frame) const {
  av_frame_free(&frame);
}

Frame make_frame(AVFramePtr picture, int64_t index, double time_s) {
  Frame frame;
  frame.index = index;
  frame.time_s = time_s;
  frame.width = picture->width;
  frame.height = picture->height;
  frame.picture = std::shared_ptr<const AVFrame>(
      picture.release(), [](const AVFrame* held) { AVFrameDeleter{}(const_cast<AVFrame*>(held)); });
  return frame;
}

}  // namespace strobe::media
