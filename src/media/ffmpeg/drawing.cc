#include "media/ffmpeg/drawing.h"

extern "C" {
#include <libavutil/imgutils.h>
}

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <string_view>

#include "media/ffmpeg/canvas.h"
#include "media/ffmpeg/convert.h"
#include "media/ffmpeg/draw_kernels.h"
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

RoundedBox rounded(const Box& box, float radius) {
  const float half_width = (box.right - box.left) / 2;
  const float half_height = (box.bottom - box.top) / 2;
  return {(box.left + box.right) / 2, (box.top + box.bottom) / 2, half_width, half_height,
          std::min({radius, half_width, half_height})};
}

int below(float value) {
  return static_cast<int>(std::floor(value));
}
int above(float value) {
  return static_cast<int>(std::ceil(value));
}
float middle(int pixel) {
  return static_cast<float>(pixel) + 0.5F;
}
int whole_groups(int pixels) {
  return (pixels + kDrawGroup - 1) / kDrawGroup * kDrawGroup;
}

// What changes within a part of an outline: at a corner both coordinates matter, along a side only the one across it.
enum class Part : uint8_t { kCorner, kHorizontalSide, kVerticalSide };

class Outline {
 public:
  Outline(Canvas& canvas, const Box& box, const Style& style, uint32_t rgb)
      : canvas_(canvas),
        box_(rounded(box, style.radius)),
        shape_{style.line / 2, style.line / 2 + kHalo, kHaloOpacity},
        black_(canvas.ink(kBlack)),
        ink_(canvas.ink(rgb)) {}

  void paint(const Area& wanted, Part part) {
    thread_local Mask line, halo;
    const Area area = canvas_.fit(wanted);
    if (area.empty()) return;
    line.reset(area, part == Part::kVerticalSide);
    halo.reset(area, part == Part::kVerticalSide);
    const DrawKernels& kernels = draw_kernels();
    for (int row = 0; row < line.rows(); ++row) {
      if (part == Part::kHorizontalSide) {
        std::array<uint8_t, kDrawGroup> of_line, of_halo;
        kernels.outline(box_, shape_, box_.x, middle(area.top + row), kDrawGroup, of_line.data(), of_halo.data());
        std::memset(line.row(row), of_line[0], static_cast<size_t>(area.width()));
        std::memset(halo.row(row), of_halo[0], static_cast<size_t>(area.width()));
      } else {
        const float y = part == Part::kVerticalSide ? box_.y : middle(area.top + row);
        kernels.outline(box_, shape_, middle(area.left), y, whole_groups(area.width()), line.row(row), halo.row(row));
      }
    }
    canvas_.paint(halo, black_);
    canvas_.paint(line, ink_);
  }

 private:
  Canvas& canvas_;
  RoundedBox box_;
  LineShape shape_;
  Canvas::Ink black_, ink_;
};

// Only the surroundings of the line are visited: four corners and, where the box is large enough, four thin bands
// between them. They do not overlap, nor share a chroma sample.
void paint_outline(Canvas& canvas, const Box& box, const Style& style, uint32_t rgb) {
  Outline outline(canvas, box, style, rgb);
  const float half_width = style.line / 2 + kHalo;
  const float reach = half_width + style.radius + 2;
  const int left = below(box.left - reach);
  const int top = below(box.top - reach);
  const int right = above(box.right + reach);
  const int bottom = above(box.bottom + reach);
  const auto cell_start = [](int value, int cell) { return value & -cell; };
  const auto cell_end = [](int value, int cell) { return (value + cell - 1) & -cell; };
  const int inner_left = cell_end(above(box.left + reach), canvas.cell_width());
  const int inner_top = cell_end(above(box.top + reach), canvas.cell_height());
  const int inner_right = std::max(inner_left, cell_start(below(box.right - reach), canvas.cell_width()));
  const int inner_bottom = std::max(inner_top, cell_start(below(box.bottom - reach), canvas.cell_height()));
  outline.paint({left, top, inner_left, inner_top}, Part::kCorner);
  outline.paint({inner_right, top, right, inner_top}, Part::kCorner);
  outline.paint({left, inner_bottom, inner_left, bottom}, Part::kCorner);
  outline.paint({inner_right, inner_bottom, right, bottom}, Part::kCorner);

  const float band = half_width + 1;
  const bool tall = inner_top < inner_bottom;
  const bool wide = inner_left < inner_right;
  if (wide) {  // of a flat box, the band of one side would miss the other: it takes the whole height
    const int end = tall ? above(box.top + band) : inner_top;
    const int start = tall ? below(box.bottom - band) : inner_bottom;
    outline.paint({inner_left, below(box.top - band), inner_right, end}, Part::kHorizontalSide);
    outline.paint({inner_left, start, inner_right, above(box.bottom + band)}, Part::kHorizontalSide);
  }
  if (tall) {
    const int end = wide ? above(box.left + band) : inner_left;
    const int start = wide ? below(box.right - band) : inner_right;
    outline.paint({below(box.left - band), inner_top, end, inner_bottom}, Part::kVerticalSide);
    outline.paint({start, inner_top, above(box.right + band), inner_bottom}, Part::kVerticalSide);
  }
}

// A filled box with rounded corners; between them every row is the same.
void paint_tab(Canvas& canvas, const Box& box, const Style& style, uint32_t rgb) {
  thread_local Mask mask;
  const RoundedBox shape = rounded(box, style.radius);
  const Area area = canvas.fit({below(box.left), below(box.top), above(box.right), above(box.bottom)});
  if (area.empty()) return;
  mask.reset(area);
  const DrawKernels& kernels = draw_kernels();
  const auto straight = [&](int y) {
    return middle(y) > box.top + shape.radius && middle(y) < box.bottom - shape.radius;
  };
  const int columns = whole_groups(area.width());
  for (int row = 0; row < mask.rows(); ++row) {
    const int y = area.top + row;
    if (row > 0 && straight(y) && straight(y - 1)) {
      std::memcpy(mask.row(row), mask.row(row - 1), static_cast<size_t>(columns));
    } else {
      kernels.inside(shape, middle(area.left), middle(y), columns, mask.row(row));
    }
  }
  canvas.paint(mask, canvas.ink(rgb));
}

uint32_t text_colour(uint32_t background) {
  const uint32_t luma = 299 * (background >> 16 & 255) + 587 * (background >> 8 & 255) + 114 * (background & 255);
  return luma > 128000 ? 0x101010 : 0xffffff;
}

// On top of the box where there is room, else inside its upper edge; never beyond the picture's sides.
void paint_label(Canvas& canvas, const Box& box, const Style& style, const Annotation& annotation) {
  LabelFont* const font = label_font(style.font);
  if (font == nullptr) return;
  const std::string_view text = std::string_view(annotation.text).substr(0, kLongestLabel);
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
  paint_tab(canvas, tab, style, annotation.rgb);
  const int base_line = bottom - (height - font->ascent()) / 2;
  thread_local Mask mask;
  font->render(text, left + style.padding, base_line, canvas, mask);
  canvas.paint(mask, canvas.ink(text_colour(annotation.rgb)));
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
    paint_outline(canvas, box, style, annotation.rgb);
  }
  // Labels lie over every box.
  for (const Annotation& annotation : annotations) {
    if (annotation.text.empty() || !visible_box(annotation, canvas, style, box)) continue;
    paint_label(canvas, box, style, annotation);
  }
  return make_frame(std::move(picture), frame.index, frame.time_s);
}

}  // namespace strobe::media
