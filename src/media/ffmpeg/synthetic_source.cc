#include "media/common/synthetic.h"
#include "media/ffmpeg/av.h"
#include "media/ffmpeg/sources.h"

namespace strobe::media {
namespace {

class PaintedSource : public SyntheticSource {
 public:
  using SyntheticSource::SyntheticSource;

 protected:
  Result<Frame> painted(int64_t index, double time_s) override {
    AVFramePtr picture(av_frame_alloc());
    if (!picture) return internal_error("no memory for a picture");
    picture->format = AV_PIX_FMT_RGB24;
    picture->width = info().width;
    picture->height = info().height;
    if (const int code = av_frame_get_buffer(picture.get(), 0); code < 0)
      return internal_error("no memory for a picture: " + error_text(code));
    paint_synthetic(index, info().width, info().height, picture->data[0], static_cast<size_t>(picture->linesize[0]));
    return make_frame(std::move(picture), index, time_s);
  }
};

}  // namespace

Result<std::unique_ptr<Source>> open_synthetic_source(const std::string& input, const SourceOptions& options) {
  STROBE_ASSIGN(SourceInfo info, parse_synthetic(input));
  return std::unique_ptr<Source>(std::make_unique<PaintedSource>(std::move(info), options.stop));
}

}  // namespace strobe::media
