#include "media/common/synthetic.h"
#include "media/ffmpeg/av.h"
#include "media/ffmpeg/sources.h"

namespace strobe::media {
namespace {

class SyntheticSource : public Source {
 public:
  SyntheticSource(SourceInfo info, const std::atomic<bool>* stop) : info_(std::move(info)), stop_(stop) {}

  const SourceInfo& info() const override { return info_; }

  Result<std::optional<Frame>> next() override {
    if (index_ == info_.frames || (stop_ && stop_->load())) return std::optional<Frame>();
    AVFramePtr picture(av_frame_alloc());
    if (!picture) return internal_error("no memory for a picture");
    picture->format = AV_PIX_FMT_RGB24;
    picture->width = info_.width;
    picture->height = info_.height;
    if (const int code = av_frame_get_buffer(picture.get(), 0); code < 0)
      return internal_error("no memory for a picture: " + error_text(code));
    paint_synthetic(index_, info_.width, info_.height, picture->data[0], static_cast<size_t>(picture->linesize[0]));
    const double time_s = static_cast<double>(index_) / info_.fps;
    return std::optional(make_frame(std::move(picture), index_++, time_s));
  }

 private:
  SourceInfo info_;
  const std::atomic<bool>* stop_;
  int64_t index_ = 0;
};

}  // namespace

Result<std::unique_ptr<Source>> open_synthetic_source(const std::string& input, const SourceOptions& options) {
  STROBE_ASSIGN(SourceInfo info, parse_synthetic(input));
  return std::unique_ptr<Source>(std::make_unique<SyntheticSource>(std::move(info), options.stop));
}

}  // namespace strobe::media
