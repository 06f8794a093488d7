#include "media/ffmpeg/drawing.h"

extern "C" {
#include <libavutil/imgutils.h>
}

#include <algorithm>
#include <cmath>
#include <string>

#include "media/ffmpeg/canvas.h"
#include "media/ffmpeg/convert.h"
#include "media/ffmpeg/label_font.h"

namespace strobe::media {
namespace {

constexpr uint32_t kBlack = 0x000000;
constexpr float kHalo = 1.0F;  // width of the dark rim that lifts a box off a bright background
constexpr float kHaloOpacity = 0.35F;
constexpr size_t kLongestLabel = 200;  // bytes

// Everything grows with the shorter side of the picture.
struct Style {
  explicit Style(int width, int height) {
    const auto side = static_cast<float>(std::min(width, height));
    line = std::max(1.5F, side / 250);
    radius = 2.0F * line;
    font = std::max(11, static_cast<int>(std::lround(side / 38)));
    padding = std::max(3, font / 3);
  }
  float line, radius;
  int font, padding;
};

struct Box {
  float left, top, right, bottom;
};

// The annotation's box, cut to a little more than the picture so that numbers stay small; false where nothing of it can
// be seen.
bool visible_box(const Annotation& annotation, const Canvas& canvas, const Style& style, Box& box) {
  box = {annotation.x, annotation.y, annotation.x + annotation.width, annotation.y + annotation.height};
  if (!std::isfinite(box.left) || !std::isfinite(box.top)) return false;
  if (!(annotation.width > 0) || !(annotation.height > 0)) return false;
  const float margin = 2 * (style.line + style.radius) + 4;
  box.left = std::clamp(box.left, -margin, canvas.width() + margin);
  box.top = std::clamp(box.top, -margin, canvas.height() + margin);
  box.right = std::clamp(box.right, -margin, canvas.width() + margin);
  box.bottom = std::clamp(box.bottom, -margin, canvas.height() + margin);
  return box.right > 0 && box.bottom > 0 && box.left < static_cast<float>(canvas.width()) &&
         box.top < static_cast<float>(canvas.height());
}

// Signed distance of a point from a rectangle with rounded corners; negative inside.
float distance_to(const Box& box, float radius, float x, float y) {
  const float half_width = (box.right - box.left) / 2;
  const float half_height = (box.bottom - box.top) / 2;
  const float r = std::min({radius, half_width, half_height});
  const float dx = std::abs(x - (box.left + box.right) / 2) - half_width + r;
  const float dy = std::abs(y - (box.top + box.bottom) / 2) - half_height + r;
  if (dx > 0 && dy > 0) return std::sqrt(dx * dx + dy * dy) - r;
  return std::max(dx, dy) - r;
}

uint8_t coverage(float distance) {
  return static_cast<uint8_t>(255 * std::clamp(0.5F - distance, 0.0F, 1.0F) + 0.5F);
}

template <typename Distance>
void paint_shape(Canvas& canvas, int left, int top, int right, int bottom, uint32_t rgb, float opacity,
                 const Distance& distance) {
  left = std::max(left, 0);
  top = std::max(top, 0);
  Mask mask(left, top, std::min(right, canvas.width()) - left, std::min(bottom, canvas.height()) - top);
  for (int row = 0; row < mask.height; ++row) {
    for (int column = 0; column < mask.width; ++column) {
      mask.at(column, row) =
          coverage(distance(static_cast<float>(left + column) + 0.5F, static_cast<float>(top + row) + 0.5F));
    }
  }
  canvas.paint(mask, rgb, opacity);
}

// Only the surroundings of the line are visited: four corners and, where the box is large enough, four thin bands
// between them. They do not overlap.
void paint_outline(Canvas& canvas, const Box& box, const Style& style, float line, uint32_t rgb, float opacity) {
  const auto edge = [&](float x, float y) { return std::abs(distance_to(box, style.radius, x, y)) - line / 2; };
  const auto below = [](float value) { return static_cast<int>(std::floor(value)); };
  const auto above = [](float value) { return static_cast<int>(std::ceil(value)); };
  const float reach = line / 2 + style.radius + 2;
  const int left = below(box.left - reach);
  const int top = below(box.top - reach);
  const int right = above(box.right + reach);
  const int bottom = above(box.bottom + reach);
  // Even borders: chroma samples that stand for two rows or columns belong to one part.
  const int inner_left = (above(box.left + reach) + 1) & ~1;
  const int inner_top = (above(box.top + reach) + 1) & ~1;
  const int inner_right = std::max(inner_left, below(box.right - reach) & ~1);
  const int inner_bottom = std::max(inner_top, below(box.bottom - reach) & ~1);
  paint_shape(canvas, left, top, inner_left, inner_top, rgb, opacity, edge);
  paint_shape(canvas, inner_right, top, right, inner_top, rgb, opacity, edge);
  paint_shape(canvas, left, inner_bottom, inner_left, bottom, rgb, opacity, edge);
  paint_shape(canvas, inner_right, inner_bottom, right, bottom, rgb, opacity, edge);

  const float band = line / 2 + 1;
  const bool tall = inner_top < inner_bottom;
  const bool wide = inner_left < inner_right;
  if (wide) {  // of a flat box, the band of one side would miss the other: it takes the whole height
    const int end = tall ? above(box.top + band) : inner_top;
    const int start = tall ? below(box.bottom - band) : inner_bottom;
    paint_shape(canvas, inner_left, below(box.top - band), inner_right, end, rgb, opacity, edge);
    paint_shape(canvas, inner_left, start, inner_right, above(box.bottom + band), rgb, opacity, edge);
  }
  if (tall) {
    const int end = wide ? above(box.left + band) : inner_left;
    const int start = wide ? below(box.right - band) : inner_right;
    paint_shape(canvas, below(box.left - band), inner_top, end, inner_bottom, rgb, opacity, edge);
    paint_shape(canvas, start, inner_top, above(box.right + band), inner_bottom, rgb, opacity, edge);
  }
}

uint32_t text_colour(uint32_t background) {
  const uint32_t luma = 299 * (background >> 16 & 255) + 587 * (background >> 8 & 255) + 114 * (background & 255);
  return luma > 128000 ? 0x101010 : 0xffffff;
}

// On top of the box where there is room, else inside its upper edge; never beyond the picture's sides.
void paint_label(Canvas& canvas, const Box& box, const Style& style, const Annotation& annotation) {
  LabelFont* const font = label_font(style.font);
  if (font == nullptr) return;
  const std::string text = annotation.text.substr(0, kLongestLabel);
  const int half_line = static_cast<int>(std::lround(style.line / 2));
  const int width = font->width(text) + 2 * style.padding;
  const int height = font->ascent() + 2 * style.padding - style.padding / 3;
  int left = static_cast<int>(std::lround(box.left)) - half_line;
  left = std::max(0, std::min(left, canvas.width() - width));
  int bottom = static_cast<int>(std::lround(box.top)) + half_line;
  if (bottom < height) bottom = std::max(0, bottom) + height;
  const int top = bottom - height;
  const Box tab = {static_cast<float>(left), static_cast<float>(top), static_cast<float>(left + width),
                   static_cast<float>(bottom)};
  const auto shape = [&](float x, float y) { return distance_to(tab, style.radius, x, y); };
  paint_shape(canvas, left - 1, top - 1, left + width + 1, bottom + 1, annotation.rgb, 1, shape);
  const int base_line = bottom - (height - font->ascent()) / 2;
  canvas.paint(font->render(text, left + style.padding, base_line), text_colour(annotation.rgb));
}

Result<AVFramePtr> private_copy(const AVFrame& picture) {
  const auto format = static_cast<AVPixelFormat>(picture.format);
  if (!has_plain_bytes(format)) return convert(picture, AV_PIX_FMT_YUV420P, is_full_range(picture));
  AVFramePtr copy = new_picture(format, picture.width, picture.height);
  if (!copy) return engine_error("no memory to draw on a frame");
  av_image_copy(copy->data, copy->linesize, const_cast<const uint8_t**>(picture.data), picture.linesize, format,
                picture.width, picture.height);
  av_frame_copy_props(copy.get(), &picture);
  return copy;
}

}  // namespace

Result<Frame> draw_annotations(const Frame& frame, std::span<const Annotation> annotations) {
  if (annotations.empty()) return frame;
  if (!frame.picture) return internal_error("a frame without a picture was given to draw");
  STROBE_ASSIGN(AVFramePtr picture, private_copy(*frame.picture));
  Canvas canvas(*picture);
  const Style style(canvas.width(), canvas.height());
  Box box{};
  for (const Annotation& annotation : annotations) {
    if (!visible_box(annotation, canvas, style, box)) continue;
    paint_outline(canvas, box, style, style.line + 2 * kHalo, kBlack, kHaloOpacity);
    paint_outline(canvas, box, style, style.line, annotation.rgb, 1);
  }
  // Labels lie over every box.
  for (const Annotation& annotation : annotations) {
    if (annotation.text.empty() || !visible_box(annotation, canvas, style, box)) continue;
    paint_label(canvas, box, style, annotation);
  }
  return make_frame(std::move(picture), frame.index, frame.time_s);
}

}  // namespace strobe::media
