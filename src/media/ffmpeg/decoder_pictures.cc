#include "media/ffmpeg/decoder_pictures.h"

extern "C" {
#include <libavutil/imgutils.h>
}

#include <algorithm>
#include <array>
#include <optional>

namespace strobe::media {
namespace {

constexpr size_t kMostReady = size_t{256} << 20;  // bytes
constexpr size_t kAlignment = 64;
constexpr size_t kPadding = 64 + 16;  // SIMD code of decoders may read and write so far behind a plane

struct Layout {
  std::array<int, 4> strides{};
  std::array<size_t, 4> offsets{};
  size_t bytes = 0;
};

bool has_simple_planes(AVPixelFormat format) {
  const AVPixFmtDescriptor* description = av_pix_fmt_desc_get(format);
  return description != nullptr && (description->flags & (AV_PIX_FMT_FLAG_HWACCEL | AV_PIX_FMT_FLAG_PAL)) == 0;
}

// As avcodec_default_get_buffer2 lays planes out, only one behind the other.
std::optional<Layout> layout_of(AVCodecContext& decoder, AVPixelFormat format, int width, int height) {
  std::array<int, AV_NUM_DATA_POINTERS> alignment{};
  avcodec_align_dimensions2(&decoder, &width, &height, alignment.data());
  Layout layout;
  // Wider until every plane's stride fits; each by itself would break the ratio between luma and chroma.
  for (bool aligned = false; !aligned; width += width & -width) {
    if (width > (1 << 28) || av_image_fill_linesizes(layout.strides.data(), format, width) < 0) return std::nullopt;
    aligned = true;
    for (size_t i = 0; i < 4; ++i) aligned = aligned && layout.strides[i] % std::max(1, alignment[i]) == 0;
  }
  std::array<ptrdiff_t, 4> strides{};
  std::copy(layout.strides.begin(), layout.strides.end(), strides.begin());
  std::array<size_t, 4> sizes{};
  if (av_image_fill_plane_sizes(sizes.data(), format, height, strides.data()) < 0) return std::nullopt;
  for (size_t i = 0; i < 4 && sizes[i] > 0; ++i) {
    layout.offsets[i] = layout.bytes;
    layout.bytes += (sizes[i] + kPadding + kAlignment - 1) / kAlignment * kAlignment;
  }
  return layout.bytes > 0 ? std::optional(layout) : std::nullopt;
}

}  // namespace

void DecoderPictures::serve(AVCodecContext& decoder) {
  if (decoder.codec_type != AVMEDIA_TYPE_VIDEO || (decoder.codec->capabilities & AV_CODEC_CAP_DR1) == 0) return;
  decoder.opaque = this;
  decoder.get_buffer2 = get_buffer;
#if FF_API_THREAD_SAFE_CALLBACKS
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
  decoder.thread_safe_callbacks = 1;  // else frame threads take turns
#pragma GCC diagnostic pop
#endif
}

void DecoderPictures::fill(AVCodecContext& decoder, int pictures) {
  if (decoder.get_buffer2 != get_buffer || pictures <= 0 || decoder.width <= 0 || decoder.height <= 0) return;
  if (!has_simple_planes(decoder.pix_fmt)) return;
  // What is coded may be up to a block larger than what is shown, which is all that is known so far.
  const auto whole_blocks = [](int size) { return (size + 15) / 16 * 16; };
  const auto layout = layout_of(decoder, decoder.pix_fmt, std::max(whole_blocks(decoder.width), decoder.coded_width),
                                std::max(whole_blocks(decoder.height), decoder.coded_height));
  if (!layout) return;
  const size_t ready = std::min(static_cast<size_t>(pictures), kMostReady / layout->bytes);
  if (ready > 0) pool_ = PicturePool::create(layout->bytes, ready);
}

std::shared_ptr<PicturePool> DecoderPictures::pool_for(size_t bytes) {
  const std::lock_guard lock(mutex_);
  // A stream may change its size: buffers much too large are given up as well as those too small.
  if (!pool_ || pool_->bytes() < bytes || pool_->bytes() / 4 > bytes) {
    pool_ = PicturePool::find(bytes);
    if (!pool_) pool_ = PicturePool::create(bytes, 0);
  }
  return pool_;
}

int DecoderPictures::get_buffer(AVCodecContext* decoder, AVFrame* picture, int flags) {
  const auto format = static_cast<AVPixelFormat>(picture->format);
  if (!has_simple_planes(format) || picture->hw_frames_ctx != nullptr) {
    return avcodec_default_get_buffer2(decoder, picture, flags);
  }
  const auto layout = layout_of(*decoder, format, picture->width, picture->height);
  if (!layout) return avcodec_default_get_buffer2(decoder, picture, flags);
  picture->buf[0] = static_cast<DecoderPictures*>(decoder->opaque)->pool_for(layout->bytes)->take();
  if (picture->buf[0] == nullptr) return AVERROR(ENOMEM);
  for (size_t i = 0; i < 4 && layout->strides[i] > 0; ++i) {
    picture->data[i] = picture->buf[0]->data + layout->offsets[i];
    picture->linesize[i] = layout->strides[i];
  }
  picture->extended_data = picture->data;
  return 0;
}

}  // namespace strobe::media
