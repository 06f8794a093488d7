#include "media/ffmpeg/convert.h"

extern "C" {
#include <libavutil/imgutils.h>
#include <libswscale/swscale.h>
}

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "media/ffmpeg/picture_pool.h"

namespace strobe::media {
namespace {

constexpr int kAlignment = 64;

// A pool with buffers of this size: a decoder's, whose memory has been touched, or one of the calling thread.
std::shared_ptr<PicturePool> pool_for(size_t bytes) {
  if (auto found = PicturePool::find(bytes)) return found;
  constexpr size_t kSizes = 3;  // that one thread makes in turn
  thread_local std::array<std::shared_ptr<PicturePool>, kSizes> pools;
  thread_local size_t oldest = 0;
  pools[oldest] = PicturePool::create(bytes, 0);
  return pools[std::exchange(oldest, (oldest + 1) % kSizes)];
}

struct SwsDeleter {
  void operator()(SwsContext* context) const { sws_freeContext(context); }
};

// swscale knows full range by the old names of the formats too.
AVPixelFormat without_range(AVPixelFormat format) {
  switch (format) {
    case AV_PIX_FMT_YUVJ420P:
      return AV_PIX_FMT_YUV420P;
    case AV_PIX_FMT_YUVJ422P:
      return AV_PIX_FMT_YUV422P;
    case AV_PIX_FMT_YUVJ444P:
      return AV_PIX_FMT_YUV444P;
    case AV_PIX_FMT_YUVJ440P:
      return AV_PIX_FMT_YUV440P;
    case AV_PIX_FMT_YUVJ411P:
      return AV_PIX_FMT_YUV411P;
    default:
      return format;
  }
}

const int* coefficients(AVColorSpace matrix) {
  return sws_getCoefficients(matrix == AVCOL_SPC_BT709        ? SWS_CS_ITU709
                             : matrix == AVCOL_SPC_SMPTE240M  ? SWS_CS_SMPTE240M
                             : matrix == AVCOL_SPC_BT2020_NCL ? SWS_CS_BT2020
                             : matrix == AVCOL_SPC_FCC        ? SWS_CS_FCC
                                                              : SWS_CS_ITU601);
}

}  // namespace

bool has_plain_bytes(AVPixelFormat format) {
  const AVPixFmtDescriptor* description = av_pix_fmt_desc_get(format);
  if (description == nullptr) return false;
  constexpr uint64_t kOther = AV_PIX_FMT_FLAG_PAL | AV_PIX_FMT_FLAG_BITSTREAM | AV_PIX_FMT_FLAG_HWACCEL |
                              AV_PIX_FMT_FLAG_BAYER | AV_PIX_FMT_FLAG_FLOAT;
  if ((description->flags & kOther) != 0) return false;
  for (int c = 0; c < description->nb_components; ++c) {
    if (description->comp[c].depth != 8 || description->comp[c].shift != 0) return false;
  }
  return true;
}

AVColorSpace matrix_of(const AVFrame& picture) {
  switch (picture.colorspace) {
    case AVCOL_SPC_BT709:
    case AVCOL_SPC_FCC:
    case AVCOL_SPC_SMPTE240M:
      return picture.colorspace;
    case AVCOL_SPC_BT2020_NCL:
    case AVCOL_SPC_BT2020_CL:
      return AVCOL_SPC_BT2020_NCL;
    default:
      return AVCOL_SPC_SMPTE170M;
  }
}

bool is_full_range(const AVFrame& picture) {
  const auto format = static_cast<AVPixelFormat>(picture.format);
  if (without_range(format) != format) return true;
  if (picture.color_range != AVCOL_RANGE_UNSPECIFIED) return picture.color_range == AVCOL_RANGE_JPEG;
  const AVPixFmtDescriptor* description = av_pix_fmt_desc_get(format);
  return description != nullptr && ((description->flags & AV_PIX_FMT_FLAG_RGB) != 0 || description->nb_components < 3);
}

LumaWeights luma_weights(AVColorSpace matrix) {
  switch (matrix) {
    case AVCOL_SPC_BT709:
      return {0.2126, 0.0722};
    case AVCOL_SPC_FCC:
      return {0.30, 0.11};
    case AVCOL_SPC_SMPTE240M:
      return {0.212, 0.087};
    case AVCOL_SPC_BT2020_NCL:
      return {0.2627, 0.0593};
    default:
      return {};
  }
}

AVFramePtr new_picture(AVPixelFormat format, int width, int height) {
  const int size = av_image_get_buffer_size(format, width, height, kAlignment);
  AVFramePtr picture(av_frame_alloc());
  if (size <= 0 || !picture) return nullptr;
  // Decoders and SIMD code may touch a little beyond the last row.
  picture->buf[0] = pool_for(static_cast<size_t>(size) + AV_INPUT_BUFFER_PADDING_SIZE)->take();
  if (picture->buf[0] == nullptr) return nullptr;
  av_image_fill_arrays(picture->data, picture->linesize, picture->buf[0]->data, format, width, height, kAlignment);
  picture->format = format;
  picture->width = width;
  picture->height = height;
  return picture;
}

namespace {

struct Area {
  int x, y, width, height;
};

// The picture into an area of the target, which has its format and size already.
Result<void> scale_into(const AVFrame& picture, AVFrame& target, const Area& area, bool full_range) {
  const auto source = static_cast<AVPixelFormat>(picture.format);
  const auto format = static_cast<AVPixelFormat>(target.format);
  const char* const name = av_get_pix_fmt_name(source);
  if (sws_isSupportedInput(without_range(source)) == 0) {
    return unsupported(std::string("pixel format ") + (name != nullptr ? name : "unknown") + " cannot be converted");
  }
  thread_local std::unique_ptr<SwsContext, SwsDeleter> scaler;
  scaler.reset(sws_getCachedContext(scaler.release(), picture.width, picture.height, without_range(source), area.width,
                                    area.height, without_range(format),
                                    SWS_BILINEAR | SWS_FULL_CHR_H_INT | SWS_ACCURATE_RND, nullptr, nullptr, nullptr));
  if (!scaler) return engine_error("no memory to convert a picture");
  const bool from_rgb = (av_pix_fmt_desc_get(source)->flags & AV_PIX_FMT_FLAG_RGB) != 0;
  const int* const matrix = coefficients(from_rgb ? AVCOL_SPC_SMPTE170M : matrix_of(picture));
  sws_setColorspaceDetails(scaler.get(), matrix, is_full_range(picture) ? 1 : 0, matrix, full_range ? 1 : 0, 0, 1 << 16,
                           1 << 16);
  uint8_t* planes[4] = {target.data[0], target.data[1], target.data[2], target.data[3]};
  const AVPixFmtDescriptor& description = *av_pix_fmt_desc_get(format);
  for (int c = 0; c < description.nb_components; ++c) {
    const AVComponentDescriptor& component = description.comp[c];
    const bool is_chroma = c > 0 && (description.flags & AV_PIX_FMT_FLAG_RGB) == 0;
    const int x = is_chroma ? area.x >> description.log2_chroma_w : area.x;
    const int y = is_chroma ? area.y >> description.log2_chroma_h : area.y;
    planes[component.plane] = target.data[component.plane] + y * target.linesize[component.plane] + x * component.step;
  }
  if (sws_scale(scaler.get(), picture.data, picture.linesize, 0, picture.height, planes, target.linesize) !=
      area.height) {
    return engine_error(std::string("swscale failed on pixel format ") + name);
  }
  target.color_range = full_range ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG;
  target.colorspace = from_rgb ? AVCOL_SPC_SMPTE170M : picture.colorspace;
  target.color_primaries = picture.color_primaries;
  target.color_trc = picture.color_trc;
  target.sample_aspect_ratio = picture.sample_aspect_ratio;
  if (from_rgb) target.chroma_location = AVCHROMA_LOC_LEFT;
  return {};
}

}  // namespace

Result<AVFramePtr> convert(const AVFrame& picture, AVPixelFormat format, bool full_range) {
  return scale(picture, format, full_range, picture.width, picture.height);
}

Result<AVFramePtr> scale(const AVFrame& picture, AVPixelFormat format, bool full_range, int width, int height) {
  AVFramePtr converted = new_picture(format, width, height);
  if (!converted) return engine_error("no memory to convert a picture");
  STROBE_TRY(scale_into(picture, *converted, {0, 0, width, height}, full_range));
  return converted;
}

Result<AVFramePtr> fit(const AVFrame& picture, AVPixelFormat format, bool full_range, int width, int height) {
  AVFramePtr target = new_picture(format, width, height);
  if (!target) return engine_error("no memory to scale a picture");
  const ptrdiff_t strides[4] = {target->linesize[0], target->linesize[1], target->linesize[2], target->linesize[3]};
  av_image_fill_black(target->data, strides, format, full_range ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG, width, height);
  const double scale =
      std::min(static_cast<double>(width) / picture.width, static_cast<double>(height) / picture.height);
  // Even places and sizes, as subsampled formats need them.
  const auto even = [](double length, int most) {
    return std::clamp(static_cast<int>(std::lround(length)) & ~1, std::min(2, most), most);
  };
  const int fitted_width = even(picture.width * scale, width);
  const int fitted_height = even(picture.height * scale, height);
  const Area area = {((width - fitted_width) / 2) & ~1, ((height - fitted_height) / 2) & ~1, fitted_width,
                     fitted_height};
  STROBE_TRY(scale_into(picture, *target, area, full_range));
  return target;
}

}  // namespace strobe::media
