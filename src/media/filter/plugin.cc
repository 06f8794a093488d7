// libstrobe_filter.so: chains of libavfilter's filters. Apart from the plugin that decodes, as that library drags in
// dozens of others that hardly any run needs.
#include <cstdint>  // before FFmpeg, which wants its macros

extern "C" {
#include <libavfilter/avfilter.h>
#include <libavfilter/buffersink.h>
#include <libavfilter/buffersrc.h>
#include <libavutil/error.h>
#include <libavutil/frame.h>
#include <libavutil/opt.h>
#include <libavutil/pixdesc.h>
}

#include <cstring>
#include <string>

#include "media/filter.h"

namespace strobe::media {
namespace {

struct GraphDeleter {
  void operator()(AVFilterGraph* graph) const { avfilter_graph_free(&graph); }
};
struct EndsDeleter {
  void operator()(AVFilterInOut* ends) const { avfilter_inout_free(&ends); }
};
using Ends = std::unique_ptr<AVFilterInOut, EndsDeleter>;

std::string text_of(int code) {
  char text[AV_ERROR_MAX_STRING_SIZE] = {};
  av_strerror(code, text, sizeof text);
  return text;
}

class Chain : public PictureFilter {
 public:
  explicit Chain(std::string description) : description_(std::move(description)) {}

  // Parses the chain for pictures of a usual kind, so that a wrong one is refused before a run begins.
  Result<void> check() {
    std::unique_ptr<AVFrame, AVFrameDeleter> picture(av_frame_alloc());
    picture->width = 640;
    picture->height = 480;
    picture->format = AV_PIX_FMT_YUV420P;
    picture->sample_aspect_ratio = {1, 1};
    if (av_frame_get_buffer(picture.get(), 0) < 0) return io_error("no memory for a picture");
    for (int plane = 0; plane < 3; ++plane)
      std::memset(picture->data[plane], 128, static_cast<size_t>(picture->linesize[plane]) * (plane == 0 ? 480 : 240));
    Frame frame;
    frame.width = picture->width;
    frame.height = picture->height;
    frame.picture = std::shared_ptr<const AVFrame>(
        picture.release(), [](const AVFrame* held) { AVFrameDeleter{}(const_cast<AVFrame*>(held)); });
    STROBE_TRY(apply(frame));
    width_ = 0;  // begin anew with the first real picture
    return {};
  }

  Result<Frame> apply(const Frame& frame) override {
    const AVFrame& picture = *frame.picture;
    if (picture.width != width_ || picture.height != height_ || picture.format != format_)
      STROBE_TRY(configure(picture.width, picture.height, picture.format, picture.sample_aspect_ratio));
    // The reference is the source's to keep; the picture's data is only read.
    int code = av_buffersrc_write_frame(source_, &picture);
    if (code < 0) return failed(code);
    std::unique_ptr<AVFrame, AVFrameDeleter> filtered(av_frame_alloc());
    code = av_buffersink_get_frame(sink_, filtered.get());
    if (code == AVERROR(EAGAIN))
      return unsupported("filter '" + description_ + "' holds pictures back: only filters of one picture suit here");
    if (code < 0) return failed(code);
    Frame out = frame;
    out.width = filtered->width;
    out.height = filtered->height;
    out.picture = std::shared_ptr<const AVFrame>(filtered.release(), [](const AVFrame* held) {
      auto* mine = const_cast<AVFrame*>(held);
      av_frame_free(&mine);
    });
    return out;
  }

 private:
  struct AVFrameDeleter {
    void operator()(AVFrame* held) const { av_frame_free(&held); }
  };

  Error failed(int code) const { return unsupported("filter '" + description_ + "': " + text_of(code)); }

  Result<void> configure(int width, int height, int format, AVRational aspect) {
    graph_.reset(avfilter_graph_alloc());
    graph_->nb_threads = 1;  // the pipeline's stages share the cores already
    const std::string arguments = "video_size=" + std::to_string(width) + "x" + std::to_string(height) +
                                  ":pix_fmt=" + std::to_string(format) +
                                  ":time_base=1/1000000:pixel_aspect=" + std::to_string(aspect.num) + "/" +
                                  std::to_string(aspect.den > 0 ? aspect.den : 1);
    int code = avfilter_graph_create_filter(&source_, avfilter_get_by_name("buffer"), "in", arguments.c_str(), nullptr,
                                            graph_.get());
    if (code < 0) return failed(code);
    code =
        avfilter_graph_create_filter(&sink_, avfilter_get_by_name("buffersink"), "out", nullptr, nullptr, graph_.get());
    if (code < 0) return failed(code);
    // Pictures leave in the format in which they came: the network's preprocessing and the drawing know those.
    const AVPixelFormat formats[] = {static_cast<AVPixelFormat>(format), AV_PIX_FMT_NONE};
    code = av_opt_set_int_list(sink_, "pix_fmts", formats, AV_PIX_FMT_NONE, AV_OPT_SEARCH_CHILDREN);
    if (code < 0) return failed(code);
    STROBE_TRY(parse());
    code = avfilter_graph_config(graph_.get(), nullptr);
    if (code < 0) return failed(code);
    width_ = width;
    height_ = height;
    format_ = format;
    return {};
  }

  Result<void> parse() {
    AVFilterInOut* inputs = avfilter_inout_alloc();
    AVFilterInOut* outputs = avfilter_inout_alloc();
    *outputs = {.name = av_strdup("in"), .filter_ctx = source_, .pad_idx = 0, .next = nullptr};
    *inputs = {.name = av_strdup("out"), .filter_ctx = sink_, .pad_idx = 0, .next = nullptr};
    const int code = avfilter_graph_parse_ptr(graph_.get(), description_.c_str(), &inputs, &outputs, nullptr);
    const Ends open_inputs(inputs), open_outputs(outputs);
    if (code < 0) return usage_error("filter '" + description_ + "': " + text_of(code));
    if (inputs != nullptr || outputs != nullptr)
      return unsupported("filter '" + description_ + "' does not take one picture and give one");
    return {};
  }

  std::string description_;
  std::unique_ptr<AVFilterGraph, GraphDeleter> graph_;
  AVFilterContext* source_ = nullptr;  // the graph's
  AVFilterContext* sink_ = nullptr;
  int width_ = 0, height_ = 0, format_ = AV_PIX_FMT_NONE;
};

Result<std::unique_ptr<PictureFilter>> open_chain(const std::string& description) {
  auto chain = std::make_unique<Chain>(description);
  auto checked = chain->check();
  if (!checked) return std::move(checked).error();
  return std::unique_ptr<PictureFilter>(std::move(chain));
}

}  // namespace
}  // namespace strobe::media

extern "C" __attribute__((visibility("default"))) bool strobe_filter_open(
    const std::string& description, strobe::Result<std::unique_ptr<strobe::media::PictureFilter>>* opened) {
  *opened = strobe::media::open_chain(description);
  return opened->has_value();
}
