#include "media/preprocess.h"

#include <algorithm>
#include <cmath>

#include "media/media_test.h"

namespace strobe::media {
namespace {

std::vector<float> sampled(const Frame& frame, const InputFormat& format) {
  std::vector<float> values(static_cast<size_t>(3 * format.width * format.height), -99);
  const auto done = preprocess(frame, format, values.data());
  EXPECT_TRUE(done) << done.error().to_string();
  return values;
}

// --- The slow obvious way, in double, straight from the definitions.

double sample(const AVFrame& picture, int component, double x, double y) {
  const AVPixFmtDescriptor& description = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(picture.format));
  const bool chroma = component > 0 && (description.flags & AV_PIX_FMT_FLAG_RGB) == 0;
  const int width = chroma ? AV_CEIL_RSHIFT(picture.width, description.log2_chroma_w) : picture.width;
  const int height = chroma ? AV_CEIL_RSHIFT(picture.height, description.log2_chroma_h) : picture.height;
  x = std::clamp(x, 0.0, width - 1.0);
  y = std::clamp(y, 0.0, height - 1.0);
  const AVComponentDescriptor& at = description.comp[component];
  const auto pixel = [&](int column, int row) {
    column = std::min(column, width - 1);
    row = std::min(row, height - 1);
    return picture.data[at.plane][row * picture.linesize[at.plane] + column * at.step + at.offset];
  };
  const int left = static_cast<int>(x);
  const int top = static_cast<int>(y);
  const double a = x - left;
  const double b = y - top;
  return (1 - b) * ((1 - a) * pixel(left, top) + a * pixel(left + 1, top)) +
         b * ((1 - a) * pixel(left, top + 1) + a * pixel(left + 1, top + 1));
}

// Red, green, blue of 0..255 at a position in luma samples; BT.601.
std::array<double, 3> reference(const AVFrame& picture, double x, double y, bool full, bool left_chroma) {
  const AVPixFmtDescriptor& description = *av_pix_fmt_desc_get(static_cast<AVPixelFormat>(picture.format));
  x = std::clamp(x, 0.0, picture.width - 1.0);
  y = std::clamp(y, 0.0, picture.height - 1.0);
  if (description.nb_components < 3) {
    const double grey = sample(picture, 0, x, y);
    return {grey, grey, grey};
  }
  if ((description.flags & AV_PIX_FMT_FLAG_RGB) != 0) {
    return {sample(picture, 0, x, y), sample(picture, 1, x, y), sample(picture, 2, x, y)};
  }
  const double factor_x = 1 << description.log2_chroma_w;
  const double factor_y = 1 << description.log2_chroma_h;
  const double chroma_x = left_chroma ? x / factor_x : (x + 0.5) / factor_x - 0.5;
  const double chroma_y = (y + 0.5) / factor_y - 0.5;
  double luma = sample(picture, 0, x, y);
  double u = sample(picture, 1, chroma_x, chroma_y) - 128;
  double v = sample(picture, 2, chroma_x, chroma_y) - 128;
  if (!full) {
    luma = (luma - 16) * 255 / 219;
    u = u * 255 / 224;
    v = v * 255 / 224;
  }
  std::array<double, 3> rgb = {luma + 1.402 * v, luma - 0.344136 * u - 0.714136 * v, luma + 1.772 * u};
  for (double& value : rgb) value = std::clamp(value, 0.0, 255.0);
  return rgb;
}

int scrambled(int c, int x, int y) {
  return (37 * x + 59 * y + 83 * c + 11 * x * y) % 256;
}

TEST(Preprocess, EveryFormatIsSampledAsDefined) {
  struct Case {
    AVPixelFormat format;
    bool full, left;
  };
  for (const Case& c : std::initializer_list<Case>{{AV_PIX_FMT_YUV420P, false, true},
                                                   {AV_PIX_FMT_YUVJ420P, true, false},
                                                   {AV_PIX_FMT_YUV422P, false, true},
                                                   {AV_PIX_FMT_YUVJ422P, true, false},
                                                   {AV_PIX_FMT_YUV444P, false, true},
                                                   {AV_PIX_FMT_YUVJ440P, true, false},
                                                   {AV_PIX_FMT_YUV410P, false, true},
                                                   {AV_PIX_FMT_NV12, false, true},
                                                   {AV_PIX_FMT_NV21, false, true},
                                                   {AV_PIX_FMT_YUYV422, false, true},
                                                   {AV_PIX_FMT_UYVY422, false, true},
                                                   {AV_PIX_FMT_GRAY8, true, true},
                                                   {AV_PIX_FMT_RGB24, true, true},
                                                   {AV_PIX_FMT_BGR24, true, true},
                                                   {AV_PIX_FMT_RGBA, true, true},
                                                   {AV_PIX_FMT_BGRA, true, true},
                                                   {AV_PIX_FMT_ARGB, true, true},
                                                   {AV_PIX_FMT_GBRP, true, true}}) {
    for (const auto& [width, height, to_width, to_height] :
         {std::array{48, 36, 20, 15}, {31, 23, 40, 32}, {17, 40, 17, 13}, {2, 2, 5, 3}, {1, 1, 3, 3}, {64, 3, 7, 9}}) {
      SCOPED_TRACE(std::string(av_get_pix_fmt_name(c.format)) + " " + std::to_string(width));
      const Frame frame = make_test_frame(c.format, width, height, scrambled);
      const auto values = sampled(frame, {.width = to_width, .height = to_height, .scale = 1});
      double worst = 0;
      for (int y = 0; y < to_height; ++y) {
        for (int x = 0; x < to_width; ++x) {
          const auto rgb = reference(*frame.picture, (x + 0.5) * width / to_width - 0.5,
                                     (y + 0.5) * height / to_height - 0.5, c.full, c.left);
          for (size_t k = 0; k < 3; ++k) {
            const float value =
                values[(k * static_cast<size_t>(to_height) + static_cast<size_t>(y)) * static_cast<size_t>(to_width) +
                       static_cast<size_t>(x)];
            worst = std::max(worst, std::abs(value - rgb[k]));
          }
        }
      }
      // Rows are blended in steps of 1/128: an error of up to 1/256 of the full jump, times the colour matrix.
      EXPECT_LT(worst, 255.0 / 256 * (1 + 2.1));
      EXPECT_GE(*std::min_element(values.begin(), values.end()), 0) << "every value is filled";
    }
  }
}

// cv2.resize(float32 picture, INTER_LINEAR) of OpenCV 4.11, for the picture `scrambled` in RGB.
TEST(Preprocess, AsOpenCvResizes) {
  const Frame large = make_test_frame(AV_PIX_FMT_RGB24, 7, 5, scrambled);
  const std::vector<float> shrunk = {34.917F,  106.083F, 177.25F,  163.083F, 140.125F, 211.375F, 90.625F,  193.875F,
                                     181.333F, 124.667F, 110.667F, 139.333F, 117.917F, 178.417F, 174.917F, 75.417F,
                                     127.125F, 70.375F,  173.625F, 116.875F, 72.333F,  186.333F, 97.667F,  115.667F,
                                     168.917F, 165.417F, 87.25F,   105.083F, 50.125F,  153.375F, 32.625F,  103.875F,
                                     155.333F, 109.333F, 170.0F,   134.667F};
  const auto values = sampled(large, {.width = 4, .height = 3, .scale = 1});
  for (size_t i = 0; i < shrunk.size(); ++i) EXPECT_NEAR(values[i], shrunk[i], 1.0) << i;

  const Frame small = make_test_frame(AV_PIX_FMT_RGB24, 3, 2, scrambled);
  const std::vector<float> grown = {
      0.0F,    14.8F,   37.0F,   59.2F,   74.0F,   14.75F,  30.65F,  54.5F,   78.35F, 94.25F,  44.25F,  62.35F,
      89.5F,   116.65F, 134.75F, 59.0F,   78.2F,   107.0F,  135.8F,  155.0F,  83.0F,  97.8F,   120.0F,  142.2F,
      157.0F,  97.75F,  113.65F, 137.5F,  161.35F, 177.25F, 127.25F, 145.35F, 172.5F, 199.65F, 217.75F, 142.0F,
      161.2F,  190.0F,  218.8F,  238.0F,  166.0F,  180.8F,  203.0F,  225.2F,  240.0F, 180.75F, 171.05F, 156.5F,
      180.35F, 196.25F, 210.25F, 151.55F, 63.5F,   90.65F,  108.75F, 225.0F,  141.8F, 17.0F,   45.8F,   65.0F};
  const auto enlarged = sampled(small, {.width = 5, .height = 4, .scale = 1});
  for (size_t i = 0; i < grown.size(); ++i) EXPECT_NEAR(enlarged[i], grown[i], 0.05) << i;
}

// Means of 4 x 4 tiles of cv2.dnn.blobFromImage(dog.jpg, 1/255, 416 x 416, swapRB) of OpenCV 4.11.
TEST(Preprocess, RealPictureAsOpenCvReadsIt) {
  const auto dog = test::shared_data("samples/dog.jpg");
  STROBE_REQUIRE_DATA(dog);
  constexpr float kTiles[3][4][4] = {{{.4973F, .4911F, .6171F, .5196F},
                                      {.4771F, .4672F, .5635F, .6634F},
                                      {.4782F, .3455F, .4834F, .5260F},
                                      {.5398F, .5406F, .6328F, .5854F}},
                                     {{.5153F, .5530F, .6545F, .5763F},
                                      {.4736F, .4483F, .5423F, .6514F},
                                      {.4702F, .3158F, .4556F, .4998F},
                                      {.5603F, .5441F, .6568F, .5874F}},
                                     {{.3987F, .3337F, .5012F, .4170F},
                                      {.4018F, .4102F, .5060F, .6024F},
                                      {.3218F, .2693F, .3405F, .2393F},
                                      {.5964F, .5604F, .6933F, .5580F}}};
  auto source = open_source(dog.string(), {});
  ASSERT_TRUE(source) << source.error().to_string();
  auto frame = (*source)->next();
  ASSERT_TRUE(frame && *frame);
  const auto values = sampled(**frame, {.width = 416, .height = 416});
  for (size_t c = 0; c < 3; ++c) {
    for (size_t i = 0; i < 4; ++i) {
      for (size_t j = 0; j < 4; ++j) {
        double sum = 0;
        for (size_t y = 0; y < 104; ++y) {
          for (size_t x = 0; x < 104; ++x) sum += values[(c * 416 + i * 104 + y) * 416 + j * 104 + x];
        }
        EXPECT_NEAR(sum / (104 * 104), kTiles[c][i][j], 0.0015) << c << " " << i << " " << j;
      }
    }
  }
}

// ITU-R BT.601 and BT.709: the published 8-bit values of pure colours.
TEST(Preprocess, PublishedColours) {
  struct Colour {
    AVColorSpace matrix;
    int y, u, v;
    float r, g, b;
  };
  for (const Colour& c : std::initializer_list<Colour>{{AVCOL_SPC_UNSPECIFIED, 81, 90, 240, 1, 0, 0},
                                                       {AVCOL_SPC_UNSPECIFIED, 145, 54, 34, 0, 1, 0},
                                                       {AVCOL_SPC_UNSPECIFIED, 41, 240, 110, 0, 0, 1},
                                                       {AVCOL_SPC_SMPTE170M, 235, 128, 128, 1, 1, 1},
                                                       {AVCOL_SPC_BT470BG, 16, 128, 128, 0, 0, 0},
                                                       {AVCOL_SPC_BT709, 63, 102, 240, 1, 0, 0},
                                                       {AVCOL_SPC_BT709, 173, 42, 26, 0, 1, 0},
                                                       {AVCOL_SPC_BT709, 32, 240, 118, 0, 0, 1}}) {
    const Frame frame = make_test_frame(AV_PIX_FMT_YUV420P, 8, 8, [&](int component, int, int) {
      return component == 0 ? c.y : component == 1 ? c.u : c.v;
    });
    const_cast<AVFrame*>(frame.picture.get())->colorspace = c.matrix;
    const auto values = sampled(frame, {.width = 2, .height = 2});
    EXPECT_NEAR(values[0], c.r, 0.012);
    EXPECT_NEAR(values[4], c.g, 0.012);
    EXPECT_NEAR(values[8], c.b, 0.012);
  }
}

TEST(Preprocess, ChromaLiesWhereTheStreamSays) {
  const auto ramp = [](int c, int x, int) { return c == 0 ? 100 : c == 1 ? 100 + 4 * x : 128; };
  const Frame frame = make_test_frame(AV_PIX_FMT_YUV420P, 32, 8, ramp);
  auto* const picture = const_cast<AVFrame*>(frame.picture.get());
  picture->color_range = AVCOL_RANGE_JPEG;
  const auto blue_at_10 = [&](AVChromaLocation location) {
    picture->chroma_location = location;
    return sampled(frame, {.width = 32, .height = 8, .scale = 1})[(2 * 8 + 4) * 32 + 10];
  };
  EXPECT_NEAR(blue_at_10(AVCHROMA_LOC_LEFT), 100 + 1.772 * (100 + 4 * 5.0 - 128), 0.1);
  EXPECT_NEAR(blue_at_10(AVCHROMA_LOC_CENTER), 100 + 1.772 * (100 + 4 * 4.75 - 128), 0.1);
  EXPECT_NEAR(blue_at_10(AVCHROMA_LOC_UNSPECIFIED), 100 + 1.772 * (100 + 4 * 4.75 - 128), 0.1) << "full range: JPEG";
  picture->color_range = AVCOL_RANGE_MPEG;
  EXPECT_NEAR(blue_at_10(AVCHROMA_LOC_UNSPECIFIED), (100 - 16) * 255 / 219.0 + 1.772 * 255 / 224 * (120 - 128), 0.1);
}

TEST(Preprocess, OtherFormatsGoThroughAConversion) {
  const Frame eight = make_test_frame(AV_PIX_FMT_YUV420P, 32, 32,
                                      [](int c, int x, int y) { return c == 0 ? 40 + 2 * x + 3 * y : 100 + x + y; });
  AVFrame* ten = av_frame_alloc();
  ten->format = AV_PIX_FMT_YUV420P10LE;
  ten->width = ten->height = 32;
  ASSERT_EQ(av_frame_get_buffer(ten, 0), 0);
  for (int plane = 0; plane < 3; ++plane) {
    const int side = plane == 0 ? 32 : 16;
    for (int y = 0; y < side; ++y) {
      auto* const line = reinterpret_cast<uint16_t*>(ten->data[plane] + y * ten->linesize[plane]);
      for (int x = 0; x < side; ++x) {
        line[x] = static_cast<uint16_t>(4 * eight.picture->data[plane][y * eight.picture->linesize[plane] + x]);
      }
    }
  }
  const Frame deep = wrap(ten);
  const auto a = sampled(eight, {.width = 16, .height = 16});
  const auto b = sampled(deep, {.width = 16, .height = 16});
  for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 0.02) << i;
}

TEST(Preprocess, NormalisesChannelByChannel) {
  const Frame frame = make_test_frame(AV_PIX_FMT_RGB24, 4, 4, [](int c, int, int) { return 50 * (c + 1); });
  InputFormat format = {.width = 2, .height = 2, .mean = {0.1F, 0.2F, 0.3F}, .deviation = {0.5F, 0.25F, 2}};
  const auto rgb = sampled(frame, format);
  EXPECT_NEAR(rgb[0], (50 / 255.0 - 0.1) / 0.5, 1e-5);
  EXPECT_NEAR(rgb[4], (100 / 255.0 - 0.2) / 0.25, 1e-5);
  EXPECT_NEAR(rgb[8], (150 / 255.0 - 0.3) / 2, 1e-5);
  format.bgr = true;  // means stay with their channels
  EXPECT_NEAR(sampled(frame, format)[0], (150 / 255.0 - 0.1) / 0.5, 1e-5);
}

TEST(Preprocess, LetterboxPadsWithGrey) {
  const Frame frame = make_test_frame(AV_PIX_FMT_RGB24, 80, 40, [](int, int, int) { return 255; });
  const InputFormat format = {.width = 40, .height = 40, .letterbox = true};
  const auto values = sampled(frame, format);
  for (size_t c = 0; c < 3; ++c) {
    for (size_t y = 0; y < 40; ++y) {
      for (size_t x = 0; x < 40; ++x) {
        ASSERT_NEAR(values[(c * 40 + y) * 40 + x], y >= 10 && y < 30 ? 1 : 0.5, 1e-5) << x << " " << y;
      }
    }
  }
}

TEST(Place, AsDarknetLetterboxes) {
  const auto expect = [](const Placement& p, float x, float y, float width, float height) {
    EXPECT_EQ(p.x, x);
    EXPECT_EQ(p.y, y);
    EXPECT_EQ(p.width, width);
    EXPECT_EQ(p.height, height);
  };
  expect(place(768, 576, {.width = 416, .height = 416, .letterbox = true}), 0, 52, 416, 312);
  expect(place(576, 768, {.width = 416, .height = 416, .letterbox = true}), 52, 0, 312, 416);
  expect(place(773, 512, {.width = 416, .height = 416, .letterbox = true}), 0, 70, 416, 275);
  expect(place(640, 480, {.width = 608, .height = 352, .letterbox = true}), 69, 0, 469, 352);
  expect(place(10000, 1, {.width = 416, .height = 416, .letterbox = true}), 0, 207, 416, 1);
  expect(place(768, 576, {.width = 416, .height = 320}), 0, 0, 416, 320);
}

TEST(Preprocess, AlternatingSizesDoNotMix) {
  const Frame a = make_test_frame(AV_PIX_FMT_YUV420P, 40, 30, scrambled);
  const Frame b = make_test_frame(AV_PIX_FMT_RGB24, 90, 20, scrambled);
  const auto first_a = sampled(a, {.width = 16, .height = 16});
  const auto first_b = sampled(b, {.width = 24, .height = 8});
  EXPECT_EQ(sampled(a, {.width = 16, .height = 16}), first_a);
  EXPECT_EQ(sampled(b, {.width = 24, .height = 8}), first_b);
}

}  // namespace
}  // namespace strobe::media
