#include "media/draw.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "media/media_test.h"
#include "media/preprocess.h"

namespace strobe::media {
namespace {

constexpr uint32_t kRed = 0xff0000;

constexpr AVPixelFormat kFormats[] = {AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV422P, AV_PIX_FMT_YUV444P,
                                      AV_PIX_FMT_YUV410P, AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_NV12,    AV_PIX_FMT_NV21,
                                      AV_PIX_FMT_YUYV422, AV_PIX_FMT_RGB24,    AV_PIX_FMT_BGR24,   AV_PIX_FMT_RGBA,
                                      AV_PIX_FMT_BGRA,    AV_PIX_FMT_ARGB,     AV_PIX_FMT_GBRP};

int mid(int, int, int) {
  return 128;
}

int luma(const Frame& frame, int x, int y) {
  return frame.picture->data[0][y * frame.picture->linesize[0] + x];
}

Frame drawn(const Frame& frame, const std::vector<Annotation>& annotations) {
  auto result = draw(frame, annotations);
  EXPECT_TRUE(result) << result.error().to_string();
  return result ? *result : Frame{};
}

// The picture as red, green and blue of 0..1, at its own size.
std::vector<float> colours(const Frame& frame) {
  std::vector<float> values(static_cast<size_t>(3 * frame.width * frame.height));
  EXPECT_TRUE(preprocess(frame, {.width = frame.width, .height = frame.height}, values.data()));
  return values;
}

TEST(Draw, NothingToDrawIsTheSameFrame) {
  const Frame frame = pattern_frame(3, 64, 48);
  EXPECT_EQ(drawn(frame, {}).picture, frame.picture);
}

TEST(Draw, LeavesTheFrameAloneAndKeepsItsFacts) {
  Frame frame = pattern_frame(3, 64, 48);
  frame.time_s = 1.5;
  const std::string before = raw_pixels(*frame.picture);
  const Frame result = drawn(frame, {{10, 12, 30, 20, "x", kRed}});
  EXPECT_EQ(raw_pixels(*frame.picture), before);
  EXPECT_NE(raw_pixels(*result.picture), before);
  EXPECT_EQ(result.index, 3);
  EXPECT_DOUBLE_EQ(result.time_s, 1.5);
  EXPECT_EQ(result.picture->format, frame.picture->format);
  EXPECT_EQ(result.width, 64);
}

TEST(Draw, TheLineHasTheColourAndTheRestIsUntouched) {
  for (const AVPixelFormat format : kFormats) {
    SCOPED_TRACE(av_get_pix_fmt_name(format));
    const Frame frame = make_test_frame(format, 200, 160, mid);
    const auto before = colours(frame);
    const auto after = colours(drawn(frame, {{40, 50, 100, 60, "", kRed}}));
    const auto at = [](const std::vector<float>& values, int c, int x, int y) {
      return values[static_cast<size_t>((c * 160 + y) * 200 + x)];
    };
    // The upper line is red; coarse chroma mixes in its surroundings.
    const auto redness = [&](const std::vector<float>& v) {
      return at(v, 0, 90, 50) - (at(v, 1, 90, 50) + at(v, 2, 90, 50)) / 2;
    };
    EXPECT_GT(redness(after), redness(before) + 0.15);
    for (int c = 0; c < 3; ++c) {
      for (int y = 0; y < 160; ++y) {
        for (int x = 0; x < 200; ++x) {
          const bool outside = x < 32 || x >= 148 || y < 42 || y >= 118;
          const bool inside = x >= 52 && x < 128 && y >= 62 && y < 98;
          if (outside || inside) {
            ASSERT_EQ(at(after, c, x, y), at(before, c, x, y)) << c << " " << x << " " << y;
          }
        }
      }
    }
  }
}

// The same drawing on the same picture, once in RGB and once in YUV of full resolution and range, gives one result.
TEST(Draw, FormatsAgree) {
  const std::vector<Annotation> annotations = {{20.3F, 30.6F, 80, 50, "car 0.97", 0x3070f0},
                                               {60, 10, 90, 99.5F, "dog", 0xffd020}};
  const auto rgb = colours(drawn(make_test_frame(AV_PIX_FMT_RGB24, 180, 140, mid), annotations));
  const auto yuv = colours(drawn(make_test_frame(AV_PIX_FMT_YUVJ444P, 180, 140, mid), annotations));
  for (size_t i = 0; i < rgb.size(); ++i) ASSERT_NEAR(rgb[i], yuv[i], 0.025) << i;
}

TEST(Draw, GreyPicturesGetGreyLines) {
  const Frame frame = make_test_frame(AV_PIX_FMT_GRAY8, 100, 80, mid);
  EXPECT_NEAR(luma(drawn(frame, {{20, 20, 50, 40, "", kRed}}), 40, 20), 76, 3);  // red's luma in BT.601
}

TEST(Draw, DeepFormatsAreConverted) {
  AVFrame* picture = av_frame_alloc();
  picture->format = AV_PIX_FMT_YUV420P10LE;
  picture->width = 64;
  picture->height = 48;
  ASSERT_EQ(av_frame_get_buffer(picture, 0), 0);
  for (int plane = 0; plane < 3; ++plane) {
    const int rows = plane == 0 ? 48 : 24;
    for (int i = 0; i < rows * picture->linesize[plane] / 2; ++i) {
      reinterpret_cast<uint16_t*>(picture->data[plane])[i] = 512;
    }
  }
  const Frame result = drawn(wrap(picture), {{10, 10, 30, 20, "", kRed}});
  EXPECT_EQ(result.picture->format, AV_PIX_FMT_YUV420P);
  EXPECT_NEAR(luma(result, 60, 40), 128, 1);
}

TEST(Draw, LabelsAreLegibleTabs) {
  const Frame frame = make_test_frame(AV_PIX_FMT_YUV420P, 640, 480, mid);
  const Frame result = drawn(frame, {{100, 100, 200, 150, "person 0.93", 0xffffff}});
  // White tab above the box, with dark strokes on it.
  int bright = 0;
  int dark = 0;
  for (int y = 80; y < 100; ++y) {
    for (int x = 99; x < 180; ++x) {
      bright += luma(result, x, y) > 225 ? 1 : 0;
      dark += luma(result, x, y) < 40 ? 1 : 0;
    }
  }
  if (dark == 0 && bright == 0) GTEST_SKIP() << "no font on this machine";
  EXPECT_GT(bright, 500);
  EXPECT_GT(dark, 100);
}

// Coverage of a pixel by a line along the box's rounded edge, straight from the geometry that draw may shorten.
double line_weight(const Annotation& box, double radius, double half, int x, int y) {
  const double half_width = box.width / 2;
  const double half_height = box.height / 2;
  const double r = std::min({radius, half_width, half_height});
  const double dx = std::abs(x + 0.5 - (box.x + half_width)) - half_width + r;
  const double dy = std::abs(y + 0.5 - (box.y + half_height)) - half_height + r;
  const double outside = dx > 0 && dy > 0 ? std::hypot(dx, dy) : std::max(dx, dy);
  return std::clamp(0.5 - (std::abs(outside - r) - half), 0.0, 1.0);
}

// A colour's component in BT.601.
double component_of(uint32_t rgb, int c, bool is_rgb, bool full_range) {
  const double red = rgb >> 16 & 255;
  const double green = rgb >> 8 & 255;
  const double blue = rgb & 255;
  if (is_rgb) return c == 0 ? red : c == 1 ? green : blue;
  const double luma = 0.299 * red + 0.587 * green + 0.114 * blue;
  if (c == 0) return full_range ? luma : 16 + luma * 219 / 255;
  const double chroma = c == 1 ? (blue - luma) / 1.772 : (red - luma) / 1.402;
  return std::clamp(128 + chroma * (full_range ? 1 : 224.0 / 255), 0.0, 255.0);
}

TEST(Draw, EverySampleFollowsTheGeometry) {
  constexpr int kWidth = 161;
  constexpr int kHeight = 123;    // a small picture: its lines are 1.5 wide with corners of radius 3
  constexpr double kHalf = 0.75;  // of the line
  constexpr double kRim = 1.75;   // of the dark rim beneath
  constexpr double kDark = 0.35;  // the rim's opacity
  const std::vector<Annotation> boxes = {
      {20, 30, 100, 60, "", 0xffffff},    {20.3F, 30.6F, 99.9F, 61.7F, "", kRed}, {-10, -7.5F, 60, 40, "", 0x2080ff},
      {120, 90.2F, 40, 34, "", 0x20ff40}, {40, 50, 1, 1, "", 0xffffff},           {41.5F, 52.25F, 3, 60, "", kRed},
      {33.3F, 44.4F, 70, 2.5F, "", kRed}, {50, 60, 17.5F, 19, "", 0x4040ff},      {0, 0, 161, 123, "", 0xffff00},
      {155, 118, 4, 3, "", 0xffffff},     {60, 40, 28, 70.5F, "", 0xffa000},      {3.5F, 70.1F, 150, 24, "", 0xff00ff}};
  for (const AVPixelFormat format : {AV_PIX_FMT_GRAY8, AV_PIX_FMT_YUVJ444P, AV_PIX_FMT_YUVJ420P, AV_PIX_FMT_YUV422P,
                                     AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_YUV410P, AV_PIX_FMT_NV12, AV_PIX_FMT_BGRA}) {
    const AVPixFmtDescriptor& description = *av_pix_fmt_desc_get(format);
    const bool is_rgb = (description.flags & AV_PIX_FMT_FLAG_RGB) != 0;
    const bool full_range = format == AV_PIX_FMT_GRAY8 || av_get_pix_fmt_name(format)[3] == 'j';
    const auto background = [](int c, int x, int y) { return 60 + (40 * c + x + 2 * y) % 150; };
    const Frame plain = make_test_frame(format, kWidth, kHeight, background);
    for (size_t i = 0; i < boxes.size(); ++i) {
      SCOPED_TRACE(std::string(av_get_pix_fmt_name(format)) + ", box " + std::to_string(i));
      const Frame result = drawn(plain, {boxes[i]});
      for (int c = 0; c < std::min<int>(3, description.nb_components); ++c) {
        const AVComponentDescriptor& at = description.comp[c];
        const int cell_x = c > 0 && !is_rgb ? 1 << description.log2_chroma_w : 1;
        const int cell_y = c > 0 && !is_rgb ? 1 << description.log2_chroma_h : 1;
        for (int y = 0; y < kHeight; y += cell_y) {
          for (int x = 0; x < kWidth; x += cell_x) {
            double rim = 0;
            double line = 0;
            int pixels = 0;
            for (int in_y = y; in_y < std::min(y + cell_y, kHeight); ++in_y) {
              for (int in_x = x; in_x < std::min(x + cell_x, kWidth); ++in_x, ++pixels) {
                rim += kDark * line_weight(boxes[i], 3, kRim, in_x, in_y);
                line += line_weight(boxes[i], 3, kHalf, in_x, in_y);
              }
            }
            double expected = background(c, x / cell_x, y / cell_y);
            expected += (component_of(0, c, is_rgb, full_range) - expected) * rim / pixels;
            expected += (component_of(boxes[i].rgb, c, is_rgb, full_range) - expected) * line / pixels;
            const int found = result.picture->data[at.plane][y / cell_y * result.picture->linesize[at.plane] +
                                                             x / cell_x * at.step + at.offset];
            ASSERT_NEAR(found, expected, 2.5) << c << " " << x << " " << y;
          }
        }
      }
    }
  }
}

TEST(Draw, SizesGrowWithThePicture) {
  const auto line_rows = [](int width, int height) {
    const Frame frame =
        make_test_frame(AV_PIX_FMT_YUV420P, width, height, [](int c, int, int) { return c == 0 ? 16 : 128; });
    const Frame result = drawn(frame, {{width * 0.25F, height * 0.25F, width * 0.5F, height * 0.5F, "", 0xffffff}});
    int rows = 0;
    for (int y = 0; y < height / 2; ++y) rows += luma(result, width / 2, y) > 100 ? 1 : 0;
    return rows;
  };
  EXPECT_GE(line_rows(320, 240), 1);
  EXPECT_GE(line_rows(1920, 1080), 4);
}

// Nothing is written outside (the sanitizers watch), whatever a network makes up.
TEST(Draw, AnyBoxOnAnyFormatAndSize) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  const std::vector<float> odd = {0, -1, 0.3F, 5, 63, 64, 1000, -1000, 3e9F, -3e9F, 1e38F, kInf, -kInf, nan};
  std::vector<Annotation> annotations;
  for (const float x : odd) {
    for (const float y : odd)
      annotations.push_back({x, y, odd[annotations.size() % odd.size()], 7, "\xff\xc3 \xe2\x82", kRed});
  }
  for (const float w : odd) {
    for (const float h : odd) annotations.push_back({3, 4, w, h, std::string(300, 'W'), 0x00ff00});
  }
  for (const AVPixelFormat format : kFormats) {
    for (const auto& [width, height] : {std::pair(1, 1), {2, 3}, {17, 9}, {64, 47}}) {
      SCOPED_TRACE(std::string(av_get_pix_fmt_name(format)) + " " + std::to_string(width));
      const Frame frame = make_test_frame(format, width, height, mid);
      EXPECT_TRUE(draw(frame, annotations));
      EXPECT_TRUE(draw(frame, {{{0, 0, static_cast<float>(width), static_cast<float>(height), "all", kRed}}}));
    }
  }
}

TEST(Draw, InvisibleBoxesChangeNothing) {
  const Frame frame = pattern_frame(0, 64, 48);
  const std::string before = raw_pixels(*frame.picture);
  const std::vector<Annotation> unseen = {{-50, 10, 30, 20, "left", kRed},
                                          {70, 10, 30, 20, "right", kRed},
                                          {10, 10, 0, 20, "flat", kRed},
                                          {10, 10, 20, -5, "negative", kRed},
                                          {std::nanf(""), 10, 20, 5, "nan", kRed}};
  EXPECT_EQ(raw_pixels(*drawn(frame, unseen).picture), before);
}

TEST(Draw, CopiesComeFromAPool) {
  const Frame frame = pattern_frame(0, 320, 240);
  std::set<const uint8_t*> buffers;
  for (int i = 0; i < 50; ++i) buffers.insert(drawn(frame, {{10, 10, 50, 50, "", kRed}}).picture->data[0]);
  EXPECT_LE(buffers.size(), 2U);
}

TEST(ClassColour, IsStableAndTellsNeighboursApart) {
  EXPECT_EQ(class_colour(0), class_colour(0));
  for (int id = 0; id < 80; ++id) {
    for (int other = id + 1; other < std::min(80, id + 5); ++other) {
      int distance = 0;
      for (const int shift : {0, 8, 16}) {
        distance += std::abs(static_cast<int>(class_colour(id) >> shift & 255) -
                             static_cast<int>(class_colour(other) >> shift & 255));
      }
      EXPECT_GT(distance, 60) << id << " and " << other;
    }
  }
}

}  // namespace
}  // namespace strobe::media
