#include "media/ffmpeg/video_input.h"

#include <algorithm>
#include <climits>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <thread>

#include "media/ffmpeg/camera.h"

namespace strobe::media {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxBadReads = 100;  // in a row, before a container counts as broken off

int ask_watch(void* watch) {
  const auto* asked = static_cast<const Watch*>(watch);
  return asked->stopped() || asked->late() ? 1 : 0;
}

std::string read_head(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string head(512, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<size_t>(file.gcount()));
  return head;
}

bool looks_like_text(const std::string& head) {
  return !head.empty() && std::all_of(head.begin(), head.end(), [](unsigned char c) {
    return c >= 0x20 || c == '\n' || c == '\r' || c == '\t' || c == '\f';
  });
}

// The size that an AVI's first header promises, 0 where it is not an AVI.
uint64_t promised_avi_size(const std::string& head) {
  if (head.size() < 12 || head.compare(0, 4, "RIFF") != 0 || head.compare(8, 4, "AVI ") != 0) return 0;
  uint32_t size = 0;
  std::memcpy(&size, head.data() + 4, sizeof size);
  return uint64_t{size} + 8;
}

std::string local_path(const std::string& input) {
  const std::string url = as_url(input);
  return url.starts_with("file:") ? url.substr(5) : "";
}

// Refused before FFmpeg guesses at it.
Result<void> check_local_file(const std::string& path) {
  std::error_code failed;
  const auto status = fs::status(path, failed);
  if (!fs::exists(status)) return not_found("no such file");
  if (!fs::is_regular_file(status)) return {};
  if (fs::file_size(path, failed) == 0 && !failed) return bad_data("not a video: the file is empty");
  if (!std::ifstream(path, std::ios::binary)) return io_error_errno("cannot be read");
  return {};
}

std::string fourcc(uint32_t tag) {
  char text[AV_FOURCC_MAX_STRING_SIZE] = {};
  return av_fourcc_make_string(text, tag);
}

}  // namespace

VideoInput::VideoInput(std::string input, InputKind kind, const SourceOptions& options)
    : input_(std::move(input)), kind_(kind), options_(options) {
  watch_.stop = options.stop;
}

Result<std::unique_ptr<VideoInput>> VideoInput::open(const std::string& input, InputKind kind,
                                                     const SourceOptions& options) {
  std::unique_ptr<VideoInput> opened(new VideoInput(input, kind, options));
  if (auto done = opened->open_demuxer(); !done) return std::move(done).error().at(input);
  if (auto done = opened->open_decoder(); !done) return std::move(done).error().at(input);
  return opened;
}

Error VideoInput::open_error(int code) const {
  if (watch_.stopped()) return {ErrorKind::kInterrupted, "stopped while opening"};
  if (watch_.late() || code == AVERROR(ETIMEDOUT)) {
    return io_error("no answer within " + std::to_string(std::lround(options_.timeout_s * 1000)) + " ms");
  }
  const std::string path = local_path(input_);
  if (kind_ == InputKind::kCamera) return camera_error(code);
  if (path.empty()) return io_error("cannot be opened: " + error_text(code));
  if (code == AVERROR(EACCES) || code == AVERROR(EIO)) return io_error("cannot be read: " + error_text(code));
  const char* const expected = kind_ == InputKind::kPicture ? "not a picture: " : "not a video: ";
  if (looks_like_text(read_head(path))) return bad_data(std::string(expected) + "it holds text");
  return bad_data(expected + error_text(code));
}

Result<void> VideoInput::open_demuxer() {
  const AVInputFormat* format = nullptr;
  if (const std::string path = local_path(input_); !path.empty()) STROBE_TRY(check_local_file(path));
  if (kind_ == InputKind::kCamera) {
    STROBE_ASSIGN(format, camera_format(input_));
  } else if (kind_ == InputKind::kPicture) {
    format = av_find_input_format("image2");
  }

  AVFormatContext* context = avformat_alloc_context();
  context->interrupt_callback = {ask_watch, &watch_};
  if (kind_ == InputKind::kCamera) context->flags |= AVFMT_FLAG_NONBLOCK;
  // Frames that are looked at to guess their rate are frames that come late.
  if (is_live(kind_)) context->fps_probe_size = 0;
  if (is_live(kind_) || input_.find("://") != std::string::npos) watch_.expect_within(options_.timeout_s);
  Options options(demuxer_options(kind_, options_));
  forget_log();
  int code = avformat_open_input(&context, as_url(input_).c_str(), format, options.get());
  if (code < 0) return open_error(code);  // FFmpeg has freed the context
  demuxer_.reset(context);
  // FFmpeg plays text as ANSI art; nobody who asks for a video means that.
  if (std::strcmp(context->iformat->name, "tty") == 0) return bad_data("not a video: it holds text");

  forget_log();
  code = avformat_find_stream_info(context, nullptr);
  if (watch_.stopped() || watch_.late()) return open_error(code);
  const AVCodec* codec = nullptr;
  const int index = av_find_best_stream(context, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
  if (index == AVERROR_DECODER_NOT_FOUND) {
    for (unsigned i = 0; i < context->nb_streams; ++i) {
      const AVCodecParameters& parameters = *context->streams[i]->codecpar;
      if (parameters.codec_type != AVMEDIA_TYPE_VIDEO) continue;
      if (parameters.codec_id != AV_CODEC_ID_NONE) {
        return unsupported("this FFmpeg has no decoder for its codec, " +
                           std::string(avcodec_get_name(parameters.codec_id)));
      }
      return unsupported("unknown video codec '" + fourcc(parameters.codec_tag) + "'");
    }
  }
  if (index < 0 || (context->streams[index]->disposition & AV_DISPOSITION_ATTACHED_PIC) != 0) {
    if (code < 0) return open_error(code);
    return bad_data(context->nb_streams == 0
                        ? "not a video: nothing in it can be played"
                        : "no video in it, only " + std::to_string(context->nb_streams) +
                              " stream(s) of another kind (" +
                              av_get_media_type_string(context->streams[0]->codecpar->codec_type) + ")");
  }
  stream_ = context->streams[index];
  for (unsigned i = 0; i < context->nb_streams; ++i) {
    if (static_cast<int>(i) != index) context->streams[i]->discard = AVDISCARD_ALL;
  }
  return {};
}

Result<void> VideoInput::open_decoder() {
  const AVCodec* codec = avcodec_find_decoder(stream_->codecpar->codec_id);
  if (codec == nullptr) return unsupported("this FFmpeg has no decoder for its codec");
  if (!options_.hwaccel.empty()) {
    STROBE_ASSIGN(hardware_, HardwareDecoder::open(options_.hwaccel, *codec));
  }
  decoder_.reset(avcodec_alloc_context3(codec));
  forget_log();
  int code = avcodec_parameters_to_context(decoder_.get(), stream_->codecpar);
  if (code >= 0) {
    decoder_->pkt_timebase = stream_->time_base;
    decoder_->thread_count = std::max(0, options_.decode_threads);
    // Threads that decode whole frames hold back as many frames; a live source must show what is now.
    decoder_->thread_type = is_live(kind_) ? FF_THREAD_SLICE : FF_THREAD_FRAME | FF_THREAD_SLICE;
    if (is_live(kind_)) decoder_->flags |= AV_CODEC_FLAG_LOW_DELAY;
    if (hardware_) {
      hardware_->serve(*decoder_);
    } else {
      memory_.serve(*decoder_);
    }
    code = avcodec_open2(decoder_.get(), codec, nullptr);
  }
  if (code == AVERROR(ENOSYS) || code == AVERROR_PATCHWELCOME) {
    return unsupported(std::string(codec->name) + ": " + error_text(code));
  }
  if (code < 0) return bad_data(std::string(codec->name) + " decoder refuses the stream: " + error_text(code));
  if (stream_->codecpar->width <= 0 || stream_->codecpar->height <= 0) {
    const std::string path = local_path(input_);
    const std::string what = kind_ == InputKind::kPicture ? "not a picture: " : "not a video: ";
    if (!path.empty() && looks_like_text(read_head(path))) return bad_data(what + "it holds text");
    return bad_data(what + (last_log_line().empty() ? "nothing in it can be decoded" : last_log_line()));
  }
  fill_memory();
  return {};
}

// For what the caller holds, and for what the decoder keeps: references, its delay, one picture for each thread.
void VideoInput::fill_memory() {
  if (options_.pictures_in_flight <= 0) return;
  constexpr int64_t kReferences = 4;
  const bool by_frame = (decoder_->active_thread_type & FF_THREAD_FRAME) != 0;
  int64_t pictures = options_.pictures_in_flight + kReferences + std::max(0, stream_->codecpar->video_delay) +
                     (by_frame ? decoder_->thread_count : 1);
  // A frame needs memory twice at most: as it was decoded and as it was drawn on.
  if (stream_->nb_frames > 0) pictures = std::min(pictures, 2 * stream_->nb_frames);
  memory_.fill(*decoder_, static_cast<int>(std::min<int64_t>(pictures, INT_MAX)));
}

// Gives the decoder one packet, or tells it that no more come.
Result<void> VideoInput::feed() {
  if (is_live(kind_)) watch_.expect_within(options_.timeout_s);
  for (int bad_reads = 0;;) {
    if (watch_.stopped()) {
      draining_ = true;
      return {};
    }
    forget_log();
    int code = av_read_frame(demuxer_.get(), packet_.get());
    if (code == AVERROR(EAGAIN)) {  // a camera without a new picture
      if (!watch_.late()) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        continue;
      }
      code = AVERROR(ETIMEDOUT);
    }
    if (code == AVERROR_INVALIDDATA && ++bad_reads < kMaxBadReads && !is_live(kind_)) {
      ++damaged_;
      continue;
    }
    if (code < 0) {
      draining_ = true;
      if (watch_.stopped()) return {};
      if (watch_.late() || code == AVERROR(ETIMEDOUT)) {
        broke_off_ = io_error("no data for " + std::to_string(std::lround(options_.timeout_s * 1000)) + " ms");
      } else if (code == AVERROR_INVALIDDATA) {
        broke_off_ = bad_data(error_text(code));
      } else if (code != AVERROR_EOF) {
        broke_off_ = io_error(error_text(code));
      } else if (auto complete = check_complete(); !complete) {
        broke_off_ = std::move(complete).error();
      }
      avcodec_send_packet(decoder_.get(), nullptr);
      return {};
    }
    if (packet_->stream_index != stream_->index) {
      av_packet_unref(packet_.get());
      continue;
    }
    ++packets_;
    cut_packet_ = (packet_->flags & AV_PKT_FLAG_CORRUPT) != 0;
    code = avcodec_send_packet(decoder_.get(), packet_.get());
    av_packet_unref(packet_.get());
    if (code < 0 && code != AVERROR(EAGAIN) && code != AVERROR_EOF) ++damaged_;
    return {};
  }
}

// Containers end silently where a file was cut off; what they promised tells.
Result<void> VideoInput::check_complete() {
  const std::string path = local_path(input_);
  if (path.empty() || kind_ == InputKind::kPicture) return {};
  const bool is_mp4 = std::strstr(demuxer_->iformat->name, "mp4") != nullptr;
  if (is_mp4 && packets_ < stream_->nb_frames) {
    return bad_data("the file is cut off: it promises " + std::to_string(stream_->nb_frames) + " frames");
  }
  std::error_code failed;
  const uint64_t size = fs::file_size(path, failed);
  if (const uint64_t promised = promised_avi_size(read_head(path)); !failed && size < promised) {
    return bad_data("the file is cut off: it promises " + std::to_string(promised) + " bytes and has " +
                    std::to_string(size));
  }
  if (cut_packet_ || last_log_line().find("prematurely") != std::string::npos) return bad_data("the file is cut off");
  return {};
}

Result<AVFramePtr> VideoInput::next() {
  AVFramePtr picture(av_frame_alloc());
  for (;;) {
    const int code = avcodec_receive_frame(decoder_.get(), picture.get());
    if (code == 0) {
      ++pictures_;
      if ((picture->flags & AV_FRAME_FLAG_CORRUPT) != 0 || picture->decode_error_flags != 0) ++damaged_;
      if (!hardware_) return picture;
      auto copied = hardware_->to_host(std::move(picture));
      if (!copied) return std::move(copied).error().at("frame " + std::to_string(pictures_)).at(input_);
      return copied;
    }
    if (code == AVERROR(EAGAIN) && !draining_) {
      STROBE_TRY(feed());
      if (hardware_ && hardware_->refused()) {
        return unsupported("hwaccel " + options_.hwaccel + " does not decode this stream (" + decoder_->codec->name +
                           ", " + info().pixel_format + ")" + (last_log_line().empty() ? "" : ": " + last_log_line()))
            .at(input_);
      }
      continue;
    }
    if (code != AVERROR_EOF && code != AVERROR(EAGAIN)) {
      ++damaged_;
      continue;
    }
    if (watch_.stopped()) return AVFramePtr();
    if (broke_off_) {
      Error error = *std::exchange(broke_off_, std::nullopt);
      return std::move(error).at("after frame " + std::to_string(pictures_)).at(input_);
    }
    if (pictures_ == 0 && damaged_ > 0) {
      return bad_data("no frame could be decoded" +
                      (last_log_line().empty() ? std::string() : " (" + last_log_line() + ")"))
          .at(input_);
    }
    return AVFramePtr();
  }
}

SourceInfo VideoInput::info() const {
  SourceInfo info;
  info.width = stream_->codecpar->width;
  info.height = stream_->codecpar->height;
  info.codec = avcodec_get_name(stream_->codecpar->codec_id);
  const char* const pixels = av_get_pix_fmt_name(static_cast<AVPixelFormat>(stream_->codecpar->format));
  info.pixel_format = pixels != nullptr ? pixels : "";
  info.live = is_live(kind_);
  info.kind = kind_ == InputKind::kCamera    ? "camera"
              : kind_ == InputKind::kRtsp    ? "rtsp"
              : kind_ == InputKind::kStream  ? "stream"
              : kind_ == InputKind::kPicture ? "picture"
                                             : "file";
  const AVRational rate = av_guess_frame_rate(demuxer_.get(), stream_, nullptr);
  if (rate.num > 0 && rate.den > 0) info.fps = av_q2d(rate);
  if (!info.live) {
    info.frames = std::max<int64_t>(0, stream_->nb_frames);
    if (info.frames == 0 && demuxer_->duration > 0) {
      info.frames = std::llround(static_cast<double>(demuxer_->duration) / AV_TIME_BASE * info.fps);
    }
  }
  return info;
}

std::optional<double> VideoInput::seconds(const AVFrame& picture) const {
  const int64_t stamp = picture.best_effort_timestamp;
  if (stamp == AV_NOPTS_VALUE) return std::nullopt;
  return static_cast<double>(stamp) * av_q2d(stream_->time_base);
}

}  // namespace strobe::media
