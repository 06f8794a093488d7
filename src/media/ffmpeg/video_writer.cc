#include "media/ffmpeg/video_writer.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <optional>

#include "media/ffmpeg/av.h"
#include "media/ffmpeg/convert.h"

namespace strobe::media {
namespace {

namespace fs = std::filesystem;

struct AVOutputDeleter {
  void operator()(AVFormatContext* context) const {
    if (context->pb != nullptr) avio_closep(&context->pb);
    avformat_free_context(context);
  }
};
using AVOutputPtr = std::unique_ptr<AVFormatContext, AVOutputDeleter>;

fs::path temporary_name(const fs::path& target) {
  static std::atomic<int> counter{0};
  fs::path name = target;
  name += ".part-" + std::to_string(::getpid()) + "-v" + std::to_string(counter.fetch_add(1));
  return name;
}

std::string size_text(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

const AVCodec* find_encoder(const std::string& name) {
  if (name == "h264") return avcodec_find_encoder_by_name("libx264");
  return avcodec_find_encoder_by_name(name.c_str());
}

std::string known_encoders() {
  std::string names;
  for (const char* name : {"h264", "mpeg4", "mjpeg", "libx265", "libvpx-vp9", "libsvtav1"}) {
    if (find_encoder(name) != nullptr) names += (names.empty() ? "" : ", ") + std::string(name);
  }
  return names;
}

// Only what differs from 4:2:0 in 8 bits is converted; JPEG's encoder takes full range alone.
AVPixelFormat target_format(const AVCodec& codec, const AVFrame* first, bool full_range) {
  if (codec.id == AV_CODEC_ID_MJPEG) return AV_PIX_FMT_YUVJ420P;
  const bool is_420 = first != nullptr && (first->format == AV_PIX_FMT_YUV420P || first->format == AV_PIX_FMT_YUVJ420P);
  if (is_420 && full_range && codec.id == AV_CODEC_ID_H264) return AV_PIX_FMT_YUVJ420P;
  return AV_PIX_FMT_YUV420P;
}

class FileWriter : public VideoWriter {
 public:
  FileWriter(fs::path path, int width, int height, const WriterOptions& options, const AVCodec& codec)
      : path_(std::move(path)), width_(width), height_(height), options_(options), codec_(codec) {}
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  ~FileWriter() override { discard(); }

  Result<void> open_file() {
    if (path_.empty()) return {};
    temporary_ = temporary_name(path_);
    const AVOutputFormat* format = av_guess_format(nullptr, path_.c_str(), nullptr);
    if (format == nullptr) format = av_guess_format("mp4", nullptr, nullptr);
    if (format == nullptr || avformat_query_codec(format, codec_.id, FF_COMPLIANCE_NORMAL) == 0) {
      return unsupported(path_.string() + ": a file of this kind cannot hold " + options_.codec);
    }
    AVFormatContext* context = nullptr;
    forget_log();
    int code = avformat_alloc_output_context2(&context, format, nullptr, temporary_.c_str());
    if (code < 0) return io_failure(code);
    muxer_.reset(context);
    if ((format->flags & AVFMT_NOFILE) != 0) return unsupported(path_.string() + ": not a kind of video file");
    code = avio_open(&context->pb, ("file:" + temporary_.string()).c_str(), AVIO_FLAG_WRITE);
    return code < 0 ? io_failure(code) : Result<void>();
  }

  Result<void> write(const Frame& frame) override {
    if (failed_) return *failed_;
    return keep(write_picture(frame));
  }

  Result<void> finish() override {
    if (failed_) return *failed_;
    return keep(finish_file());
  }

 private:
  // The first failure is final; the half-written file goes at once, which gives a full disk its room back.
  Result<void> keep(Result<void> done) {
    if (!done) {
      failed_ = done.error();
      discard();
    }
    return done;
  }

  void discard() {
    encoder_.reset();
    muxer_.reset();
    std::error_code ignored;
    if (!temporary_.empty()) fs::remove(temporary_, ignored);
    temporary_.clear();
  }

  Error io_failure(int code) const { return io_error(path_.string() + ": cannot be written: " + error_text(code)); }

  Result<void> write_picture(const Frame& frame) {
    if (!frame.picture) return internal_error("a frame without a picture was given to the video writer");
    const bool fits = frame.width == width_ && frame.height == height_;
    if (!encoder_) STROBE_TRY(open_encoder(frame.picture.get()));
    const bool full_range = encoder_->color_range == AVCOL_RANGE_JPEG;
    AVFramePtr picture;
    if (!fits) {  // a folder of unequal pictures, or a stream that changed its size
      STROBE_ASSIGN(picture, fit(*frame.picture, encoder_->pix_fmt, full_range, encoder_->width, encoder_->height));
    } else if (frame.picture->format != encoder_->pix_fmt) {
      STROBE_ASSIGN(picture, convert(*frame.picture, encoder_->pix_fmt, full_range));
    } else {
      picture.reset(av_frame_clone(frame.picture.get()));
      if (!picture) return engine_error("no memory for a frame");
    }
    picture->width = encoder_->width;  // crops odd sizes
    picture->height = encoder_->height;
    picture->pts = frames_++;
    picture->quality = encoder_->global_quality;
    picture->pict_type = AV_PICTURE_TYPE_NONE;  // the decoder's choice is not the encoder's
    return encode(picture.get());
  }

  Result<void> open_encoder(const AVFrame* first) {
    encoder_.reset(avcodec_alloc_context3(&codec_));
    const bool full_range = first != nullptr && is_full_range(*first);
    encoder_->pix_fmt = target_format(codec_, first, full_range);
    encoder_->width = width_ & ~1;
    encoder_->height = height_ & ~1;
    const AVRational rate = av_d2q(options_.fps, 60000);
    encoder_->time_base = av_inv_q(rate);
    encoder_->framerate = rate;
    encoder_->thread_count = std::max(1, options_.threads);
    encoder_->color_range = encoder_->pix_fmt == AV_PIX_FMT_YUVJ420P ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
    if (first != nullptr &&
        (av_pix_fmt_desc_get(static_cast<AVPixelFormat>(first->format))->flags & AV_PIX_FMT_FLAG_RGB) == 0) {
      encoder_->colorspace = first->colorspace;
      encoder_->color_primaries = first->color_primaries;
      encoder_->color_trc = first->color_trc;
      encoder_->chroma_sample_location = first->chroma_location;
      encoder_->sample_aspect_ratio = first->sample_aspect_ratio;
    } else {
      encoder_->colorspace = AVCOL_SPC_SMPTE170M;
    }
    Options options;
    if (std::strcmp(codec_.name, "libx264") == 0) {
      options.set("preset", options_.preset);
      options.set("crf", std::to_string(options_.quality));
    } else if (codec_.id == AV_CODEC_ID_MPEG4 || codec_.id == AV_CODEC_ID_MJPEG) {
      // Quantiser 2 (best) to 31; 23 of h264 looks like 4 here.
      encoder_->flags |= AV_CODEC_FLAG_QSCALE;
      encoder_->global_quality = FF_QP2LAMBDA * std::clamp(options_.quality / 5, 2, 31);
    }
    if (muxer_ && (muxer_->oformat->flags & AVFMT_GLOBALHEADER) != 0) encoder_->flags |= AV_CODEC_FLAG_GLOBAL_HEADER;
    forget_log();
    int code = avcodec_open2(encoder_.get(), &codec_, options.get());
    if (code < 0) {
      return engine_error("the encoder " + std::string(codec_.name) + " refuses " + size_text(width_, height_) +
                          " at " + std::to_string(options_.fps) + " frames/s: " + error_text(code));
    }
    if (!muxer_) return {};
    stream_ = avformat_new_stream(muxer_.get(), nullptr);
    avcodec_parameters_from_context(stream_->codecpar, encoder_.get());
    stream_->time_base = encoder_->time_base;
    stream_->avg_frame_rate = rate;
    stream_->sample_aspect_ratio = encoder_->sample_aspect_ratio;
    Options muxing;
    if (std::strstr(muxer_->oformat->name, "mp4") != nullptr || std::strcmp(muxer_->oformat->name, "mov") == 0) {
      muxing.set("movflags", "+faststart");  // browsers start to play before they have it all
    }
    code = avformat_write_header(muxer_.get(), muxing.get());
    return code < 0 ? io_failure(code) : Result<void>();
  }

  // picture null: flushes.
  Result<void> encode(const AVFrame* picture) {
    forget_log();
    int code = avcodec_send_frame(encoder_.get(), picture);
    if (code < 0) return engine_error("the encoder " + std::string(codec_.name) + " failed: " + error_text(code));
    for (;;) {
      code = avcodec_receive_packet(encoder_.get(), packet_.get());
      if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return {};
      if (code < 0) return engine_error("the encoder " + std::string(codec_.name) + " failed: " + error_text(code));
      if (!muxer_) {
        av_packet_unref(packet_.get());
        continue;
      }
      packet_->stream_index = stream_->index;
      packet_->duration = 1;
      av_packet_rescale_ts(packet_.get(), encoder_->time_base, stream_->time_base);
      code = av_interleaved_write_frame(muxer_.get(), packet_.get());
      if (code >= 0) code = muxer_->pb->error;  // a failed write of the buffer shows here only
      if (code < 0) return io_failure(code);
    }
  }

  Result<void> finish_file() {
    if (!encoder_) STROBE_TRY(open_encoder(nullptr));
    STROBE_TRY(encode(nullptr));
    encoder_.reset();
    if (!muxer_) return {};
    forget_log();
    int code = av_write_trailer(muxer_.get());
    if (code >= 0) code = muxer_->pb->error;
    const int closed = avio_closep(&muxer_->pb);
    if (code >= 0) code = closed;
    if (code < 0) return io_failure(code);
    muxer_.reset();
    std::error_code failed;
    fs::rename(temporary_, path_, failed);
    if (failed) return io_error(path_.string() + ": cannot be written: " + failed.message());
    temporary_.clear();
    return {};
  }

  fs::path path_;
  fs::path temporary_;
  int width_;
  int height_;
  WriterOptions options_;
  const AVCodec& codec_;
  AVOutputPtr muxer_;  // null: packets are thrown away
  AVCodecContextPtr encoder_;
  AVPacketPtr packet_{av_packet_alloc()};
  AVStream* stream_ = nullptr;
  int64_t frames_ = 0;
  std::optional<Error> failed_;
};

}  // namespace

Result<std::unique_ptr<VideoWriter>> make_video_writer(const fs::path& path, int width, int height,
                                                       const WriterOptions& options) {
  const AVCodec* codec = find_encoder(options.codec);
  if (codec == nullptr || codec->type != AVMEDIA_TYPE_VIDEO) {
    return unsupported("this FFmpeg has no video encoder '" + options.codec + "'; it has " + known_encoders() +
                       " and others that `ffmpeg -encoders` lists");
  }
  if (width < 2 || height < 2) return usage_error("a video cannot have the size " + size_text(width, height));
  if (!(options.fps > 0) || options.fps > 10000) {
    return usage_error("a video cannot have " + std::to_string(options.fps) + " frames/s");
  }
  auto writer = std::make_unique<FileWriter>(path, width, height, options, *codec);
  STROBE_TRY(writer->open_file());
  return std::unique_ptr<VideoWriter>(std::move(writer));
}

}  // namespace strobe::media
