#include "media/ffmpeg/sampling.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "media/ffmpeg/av.h"
#include "media/ffmpeg/convert.h"
#include "media/ffmpeg/row_kernels.h"

namespace strobe::media {
namespace {

constexpr int kComponents = 3;

// One colour component inside the picture's planes.
struct Component {
  int plane = 0, offset = 0, step = 1;
  int width = 0, height = 0;       // in samples
  int log2_x = 0, log2_y = 0;      // subsampling
  float shift_x = 0, shift_y = 0;  // of sample 0 from luma sample 0, in luma samples
};

// Where each network column (or row) takes its two samples.
struct Taps {
  std::vector<int32_t> at;
  std::vector<float> weight;  // of the second one
};

// `extent` samples, subsampled by 2^log2 and shifted, seen at `count` network positions over `full` luma samples.
Taps make_taps(int count, int full, int extent, int log2, float shift) {
  Taps taps;
  taps.at.resize(static_cast<size_t>(count));
  taps.weight.resize(taps.at.size());
  const double scale = static_cast<double>(full) / count;
  for (size_t i = 0; i < taps.at.size(); ++i) {
    const double luma = std::clamp((static_cast<double>(i) + 0.5) * scale - 0.5, 0.0, full - 1.0);
    const double position = std::clamp((luma - shift) / (1 << log2), 0.0, extent - 1.0);
    const int first = std::min(static_cast<int>(position), std::max(0, extent - 2));
    taps.at[i] = first;
    taps.weight[i] = extent > 1 ? static_cast<float>(position - first) : 0.0F;
  }
  return taps;
}

std::array<Component, kComponents> components_of(const AVFrame& picture) {
  const AVPixFmtDescriptor& description = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(picture.format));
  const bool is_rgb = (description.flags & AV_PIX_FMT_FLAG_RGB) != 0;
  std::array<Component, kComponents> components;
  for (int c = 0; c < kComponents; ++c) {
    const bool grey = description.nb_components < kComponents;
    const AVComponentDescriptor& source = description.comp[grey ? 0 : c];
    Component& component = components[static_cast<size_t>(c)];
    component.plane = source.plane;
    component.offset = source.offset;
    component.step = source.step;
    if (!is_rgb && !grey && c > 0) {
      component.log2_x = description.log2_chroma_w;
      component.log2_y = description.log2_chroma_h;
    }
    component.width = AV_CEIL_RSHIFT(picture.width, component.log2_x);
    component.height = AV_CEIL_RSHIFT(picture.height, component.log2_y);
    // JPEG's chroma lies in the middle of its luma samples; video's on the left one, unless the stream says otherwise.
    const float middle_x = static_cast<float>((1 << component.log2_x) - 1) / 2;
    const float middle_y = static_cast<float>((1 << component.log2_y) - 1) / 2;
    AVChromaLocation location = picture.chroma_location;
    if (location == AVCHROMA_LOC_UNSPECIFIED) {
      location = is_full_range(picture) ? AVCHROMA_LOC_CENTER : AVCHROMA_LOC_LEFT;
    }
    const bool left =
        location == AVCHROMA_LOC_LEFT || location == AVCHROMA_LOC_TOPLEFT || location == AVCHROMA_LOC_BOTTOMLEFT;
    const bool top = location == AVCHROMA_LOC_TOPLEFT || location == AVCHROMA_LOC_TOP;
    const bool bottom = location == AVCHROMA_LOC_BOTTOMLEFT || location == AVCHROMA_LOC_BOTTOM;
    component.shift_x = left ? 0 : middle_x;
    component.shift_y = top ? 0 : bottom ? 2 * middle_y : middle_y;
  }
  return components;
}

// Red, green and blue out of the picture's components, which come multiplied by kBlendOne.
std::array<ChannelMap, kComponents> colour_maps(const AVFrame& picture) {
  const AVPixFmtDescriptor& description = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(picture.format));
  std::array<ChannelMap, kComponents> maps;
  constexpr double kUnit = 1.0 / kBlendOne;
  const bool full = is_full_range(picture);
  const double y_gain = full ? 1 : 255.0 / 219;
  const double y_zero = full ? 0 : 16;
  if ((description.flags & AV_PIX_FMT_FLAG_RGB) != 0) {
    maps[0].from_y = maps[1].from_u = maps[2].from_v = kUnit;
    return maps;
  }
  const auto set = [&](ChannelMap& map, double from_u, double from_v) {
    map.from_y = static_cast<float>(y_gain * kUnit);
    map.from_u = static_cast<float>(from_u * kUnit);
    map.from_v = static_cast<float>(from_v * kUnit);
    map.offset = static_cast<float>(-y_zero * y_gain - 128 * (from_u + from_v));
  };
  if (description.nb_components < kComponents) {
    for (ChannelMap& map : maps) set(map, 0, 0);
    return maps;
  }
  const auto [red, blue] = luma_weights(matrix_of(picture));
  const double green = 1 - red - blue;
  const double chroma_gain = full ? 1 : 255.0 / 224;
  const double red_from_v = 2 * (1 - red) * chroma_gain;
  const double blue_from_u = 2 * (1 - blue) * chroma_gain;
  set(maps[0], 0, red_from_v);
  set(maps[1], -blue_from_u * blue / green, -red_from_v * red / green);
  set(maps[2], blue_from_u, 0);
  return maps;
}

// With the channels in the network's order and its normalisation.
std::array<ChannelMap, kComponents> channel_maps(const AVFrame& picture, const InputFormat& format) {
  std::array<ChannelMap, kComponents> maps = colour_maps(picture);
  if (format.bgr) std::swap(maps[0], maps[2]);
  for (size_t c = 0; c < kComponents; ++c) {
    maps[c].gain = format.scale / format.deviation[c];
    maps[c].bias = -format.mean[c] / format.deviation[c];
  }
  return maps;
}

// The picture in a format that is sampled as it is.
Result<std::shared_ptr<const AVFrame>> plain_picture(const Frame& frame, const InputFormat& format) {
  if (!frame.picture) return internal_error("a frame without a picture was given to preprocess");
  if (format.width <= 0 || format.height <= 0) return usage_error("a network input of size 0");
  if (has_plain_bytes(static_cast<AVPixelFormat>(frame.picture->format))) return frame.picture;
  STROBE_ASSIGN(AVFramePtr converted, convert(*frame.picture, AV_PIX_FMT_RGB24, true));
  return std::shared_ptr<const AVFrame>(std::move(converted));
}

// What PictureSampling says of pictures of one kind.
struct PictureKind {
  int width = 0, height = 0, format = -1;
  AVChromaLocation location = AVCHROMA_LOC_UNSPECIFIED;
  AVColorSpace matrix = AVCOL_SPC_UNSPECIFIED;
  bool full_range = false;
  InputFormat input;
  bool operator==(const PictureKind&) const = default;
};

SampleTaps sample_taps(const Taps& taps, int extent, double steps) {
  SampleTaps out;
  for (size_t i = 0; i < taps.at.size(); ++i) {
    out.first.push_back(taps.at[i]);
    out.second.push_back(std::min(taps.at[i] + 1, extent - 1));
    out.weight.push_back(steps > 0 ? static_cast<float>(std::lround(taps.weight[i] * steps) / steps) : taps.weight[i]);
  }
  return out;
}

PictureSampling sampling_of(const AVFrame& picture, const InputFormat& format) {
  const Placement placed = place(picture.width, picture.height, format);
  PictureSampling sampling;
  sampling.width = format.width;
  sampling.height = format.height;
  sampling.left = static_cast<int64_t>(placed.x);
  sampling.top = static_cast<int64_t>(placed.y);
  sampling.placed_width = static_cast<int64_t>(placed.width);
  sampling.placed_height = static_cast<int64_t>(placed.height);
  const auto width = static_cast<int>(placed.width), height = static_cast<int>(placed.height);
  const std::array<Component, kComponents> components = components_of(picture);
  const std::array<ChannelMap, kComponents> maps = channel_maps(picture, format);
  for (size_t c = 0; c < kComponents; ++c) {
    const Component& from = components[c];
    const Taps columns = make_taps(width, picture.width, from.width, from.log2_x, from.shift_x);
    const Taps rows = make_taps(height, picture.height, from.height, from.log2_y, from.shift_y);
    sampling.components[c] = {.plane = from.plane,
                              .offset = from.offset,
                              .step = from.step,
                              .width = from.width,
                              .height = from.height,
                              .columns = sample_taps(columns, from.width, 0),
                              .rows = sample_taps(rows, from.height, kBlendOne)};
    sampling.planes.resize(std::max(sampling.planes.size(), static_cast<size_t>(from.plane) + 1));
    PictureSampling::Plane& plane = sampling.planes[static_cast<size_t>(from.plane)];
    plane.rows = from.height;
    plane.bytes = std::max<int64_t>(plane.bytes, int64_t{from.width} * from.step);
    sampling.mix[c] = {maps[c].from_y * kBlendOne, maps[c].from_u * kBlendOne, maps[c].from_v * kBlendOne};
    sampling.offset[c] = maps[c].offset;
    sampling.gain[c] = maps[c].gain;
    sampling.bias[c] = maps[c].bias;
  }
  return sampling;
}

// Everything that depends on sizes and formats only; kept by each thread for as long as they stay the same.
class Sampler {
 public:
  bool fits(const AVFrame& picture, int width, int height) const {
    return picture.width == picture_width_ && picture.height == picture_height_ && picture.format == format_ &&
           picture.chroma_location == location_ && is_full_range(picture) == full_range_ && width == width_ &&
           height == height_;
  }

  void prepare(const AVFrame& picture, int width, int height) {
    picture_width_ = picture.width;
    picture_height_ = picture.height;
    format_ = picture.format;
    location_ = picture.chroma_location;
    full_range_ = is_full_range(picture);
    width_ = width;
    height_ = height;
    components_ = components_of(picture);
    for (size_t c = 0; c < kComponents; ++c) {
      const Component& component = components_[c];
      columns_[c] = make_taps(width, picture.width, component.width, component.log2_x, component.shift_x);
      rows_[c] = make_taps(height, picture.height, component.height, component.log2_y, component.shift_y);
      for (int32_t& at : columns_[c].at) at = at * component.step + component.offset;
      samples_[c].resize(static_cast<size_t>(width));
    }
    // One pixel more than the widest row: the second tap of a picture of one column is read, and weighs nothing.
    for (size_t c = 0; c < kComponents; ++c) {
      blended_[c].assign(static_cast<size_t>(row_bytes(c) + 2 * components_[c].step), 0);
    }
    scratch_.resize(static_cast<size_t>(width));
  }

  // Row `row` of the placed picture as three rows of components.
  void sample(const AVFrame& picture, int row) {
    const RowKernels& kernels = row_kernels();
    for (size_t c = 0; c < kComponents; ++c) {
      const Component& component = components_[c];
      size_t shared = c;  // packed components lie in one row, blended once
      for (size_t earlier = 0; earlier < c; ++earlier) {
        if (components_[earlier].plane == component.plane && components_[earlier].log2_y == component.log2_y) {
          shared = std::min(shared, earlier);
        }
      }
      const auto at = static_cast<size_t>(row);
      if (shared == c) {
        const int first = rows_[c].at[at];
        const int second = std::min(first + 1, component.height - 1);
        const int weight = static_cast<int>(std::lround(rows_[c].weight[at] * kBlendOne));
        const uint8_t* const plane = picture.data[component.plane];
        const ptrdiff_t stride = picture.linesize[component.plane];
        kernels.blend(plane + first * stride, plane + second * stride, weight, row_bytes(c), blended_[c].data());
      }
      kernels.sample(blended_[shared].data(), component.step, columns_[c].at.data(), columns_[c].weight.data(), width_,
                     scratch_.data(), samples_[c].data());
    }
  }

  const float* samples(size_t component) const { return samples_[component].data(); }

 private:
  // Up to the last byte of the plane's row that any component uses.
  int row_bytes(size_t c) const {
    int bytes = 0;
    for (const Component& other : components_) {
      if (other.plane == components_[c].plane) bytes = std::max(bytes, other.width * other.step);
    }
    return bytes;
  }

  int picture_width_ = 0, picture_height_ = 0, format_ = -1, width_ = 0, height_ = 0;
  AVChromaLocation location_ = AVCHROMA_LOC_UNSPECIFIED;
  bool full_range_ = false;
  std::array<Component, kComponents> components_;
  std::array<Taps, kComponents> columns_;
  std::array<Taps, kComponents> rows_;
  std::array<std::vector<int16_t>, kComponents> blended_;
  std::array<std::vector<float>, kComponents> samples_;
  std::vector<int32_t> scratch_;
};

void fill_border(const InputFormat& format, const Placement& placed, const std::array<ChannelMap, kComponents>& maps,
                 float* output) {
  const auto x = static_cast<int>(placed.x);
  const auto y = static_cast<int>(placed.y);
  const auto right = x + static_cast<int>(placed.width);
  const auto bottom = y + static_cast<int>(placed.height);
  const auto width = static_cast<size_t>(format.width);
  for (size_t c = 0; c < kComponents; ++c) {
    const float grey = 127.5F * maps[c].gain + maps[c].bias;
    float* const plane = output + c * width * static_cast<size_t>(format.height);
    for (int row = 0; row < format.height; ++row) {
      float* const line = plane + static_cast<size_t>(row) * width;
      const bool inside = row >= y && row < bottom;
      std::fill(line, line + (inside ? x : format.width), grey);
      if (inside) std::fill(line + right, line + format.width, grey);
    }
  }
}

}  // namespace

Result<void> sample_picture(const Frame& frame, const InputFormat& format, float* output) {
  STROBE_ASSIGN(const std::shared_ptr<const AVFrame> picture, plain_picture(frame, format));
  const Placement placed = place(picture->width, picture->height, format);
  const auto width = static_cast<int>(placed.width);
  const auto height = static_cast<int>(placed.height);
  thread_local Sampler sampler;
  if (!sampler.fits(*picture, width, height)) sampler.prepare(*picture, width, height);

  const std::array<ChannelMap, kComponents> maps = channel_maps(*picture, format);
  if (width != format.width || height != format.height) fill_border(format, placed, maps, output);

  const auto plane = static_cast<size_t>(format.width) * static_cast<size_t>(format.height);
  float* line =
      output + static_cast<size_t>(placed.y) * static_cast<size_t>(format.width) + static_cast<size_t>(placed.x);
  const RowKernels& kernels = row_kernels();
  for (int row = 0; row < height; ++row, line += format.width) {
    sampler.sample(*picture, row);
    for (size_t c = 0; c < kComponents; ++c) {
      kernels.map(sampler.samples(0), sampler.samples(1), sampler.samples(2), maps[c], width, line + c * plane);
    }
  }
  return {};
}

Result<PictureBytes> bytes_of_picture(const Frame& frame, const InputFormat& format) {
  STROBE_ASSIGN(const std::shared_ptr<const AVFrame> picture, plain_picture(frame, format));
  const PictureKind kind = {.width = picture->width,
                            .height = picture->height,
                            .format = picture->format,
                            .location = picture->chroma_location,
                            .matrix = matrix_of(*picture),
                            .full_range = is_full_range(*picture),
                            .input = format};
  thread_local PictureKind last;
  thread_local std::shared_ptr<const PictureSampling> sampling;
  if (!sampling || !(kind == last)) {
    sampling = std::make_shared<const PictureSampling>(sampling_of(*picture, format));
    last = kind;
  }
  PictureBytes bytes{.sampling = sampling, .planes = {}, .owner = picture};
  for (size_t p = 0; p < sampling->planes.size(); ++p) bytes.planes.push_back({picture->data[p], picture->linesize[p]});
  return bytes;
}

}  // namespace strobe::media
