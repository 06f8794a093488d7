#include "media/sink.h"

#include <gmock/gmock.h>
#include <sys/resource.h>

#include <cmath>
#include <csignal>

#include "media/media_test.h"

namespace strobe::media {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

size_t files_in(const fs::path& folder) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

// Peak signal to noise of the luma planes, in dB.
double luma_psnr(const AVFrame& a, const AVFrame& b) {
  double sum = 0;
  const int width = std::min(a.width, b.width);
  const int height = std::min(a.height, b.height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const int d = a.data[0][y * a.linesize[0] + x] - b.data[0][y * b.linesize[0] + x];
      sum += d * d;
    }
  }
  return 10 * std::log10(255.0 * 255.0 * width * height / std::max(sum, 1e-9));
}

// A smooth picture; any codec keeps it well.
Frame smooth_frame(int index, int width, int height, AVPixelFormat format = AV_PIX_FMT_YUV420P) {
  return make_test_frame(
      format, width, height,
      [&](int c, int x, int y) { return c == 0 ? 60 + (x + y + 2 * index) / 3 % 120 : 110 + 15 * c; }, index);
}

Played read_all(const fs::path& video) {
  auto source = open_source(video.string(), {});
  EXPECT_TRUE(source) << source.error().to_string();
  return source ? play(**source) : Played{};
}

std::string probe(const fs::path& video, const std::string& entries) {
  std::string text;
  for (const auto& line :
       output_of("ffprobe -v quiet -count_frames -select_streams v:0 -of csv=p=0 -show_entries stream=" + entries +
                 " " + video.string())) {
    text += line;
  }
  while (!text.empty() && (text.back() == '\n' || text.back() == ',')) text.pop_back();
  return text;
}

TEST(VideoWriter, EveryCodecKeepsThePictures) {
  const test::ScratchFolder folder;
  for (const std::string codec : {"h264", "mpeg4", "mjpeg"}) {
    SCOPED_TRACE(codec);
    WriterOptions options;
    options.codec = codec;
    options.fps = 12.5;
    options.threads = 2;
    const fs::path path = folder / (codec + ".mp4");
    auto writer = open_video_writer(path, 160, 120, options);
    ASSERT_TRUE(writer) << writer.error().to_string();
    for (int i = 0; i < 25; ++i) ASSERT_TRUE((*writer)->write(smooth_frame(i, 160, 120)));
    EXPECT_FALSE(fs::exists(path)) << "named before it is complete";
    const auto finished = (*writer)->finish();
    ASSERT_TRUE(finished) << finished.error().to_string();
    const Played played = read_all(path);
    EXPECT_TRUE(played.error.empty()) << played.error;
    ASSERT_EQ(played.frames.size(), 25U);
    EXPECT_NEAR(played.frames[10].time_s, 0.8, 1e-3);
    // JPEG's full range moves every level.
    if (codec != "mjpeg") {
      EXPECT_GT(luma_psnr(*played.frames[10].picture, *smooth_frame(10, 160, 120).picture), 36);
    }
    EXPECT_EQ(files_in(folder.path()), 1U) << "nothing else is left";
    fs::remove(path);
  }
}

TEST(VideoWriter, WhatFfprobeAndBrowsersSee) {
  if (!has_command("ffprobe")) GTEST_SKIP() << "no ffprobe command";
  const test::ScratchFolder folder;
  WriterOptions options;
  options.fps = 30000.0 / 1001;
  write_test_video(folder / "v.mp4", 10, 96, 64, options);
  EXPECT_EQ(probe(folder / "v.mp4", "codec_name,width,height,pix_fmt,r_frame_rate,nb_read_frames"),
            "h264,96,64,yuv420p,30000/1001,10");
  const std::string bytes = read_text(folder / "v.mp4");
  EXPECT_LT(bytes.find("moov"), bytes.find("mdat")) << "the index comes first";
}

TEST(VideoWriter, CarriesRangeAndMatrix) {
  const test::ScratchFolder folder;
  for (const bool full : {false, true}) {
    const fs::path path = folder / (full ? "full.mp4" : "limited.mp4");
    auto writer = open_video_writer(path, 64, 64, {});
    ASSERT_TRUE(writer) << writer.error().to_string();
    const Frame frame = smooth_frame(0, 64, 64, full ? AV_PIX_FMT_YUVJ420P : AV_PIX_FMT_YUV420P);
    const_cast<AVFrame*>(frame.picture.get())->colorspace = AVCOL_SPC_BT709;
    ASSERT_TRUE((*writer)->write(frame));
    ASSERT_TRUE((*writer)->finish());
    const Played played = read_all(path);
    ASSERT_EQ(played.frames.size(), 1U);
    EXPECT_EQ(played.frames[0].picture->colorspace, AVCOL_SPC_BT709);
    EXPECT_EQ(played.frames[0].picture->color_range, full ? AVCOL_RANGE_JPEG : AVCOL_RANGE_MPEG);
    EXPECT_GT(luma_psnr(*played.frames[0].picture, *frame.picture), 36);
  }
}

TEST(VideoWriter, ConvertsOtherFormatsAndCropsOddSizes) {
  const test::ScratchFolder folder;
  for (const AVPixelFormat format : {AV_PIX_FMT_RGB24, AV_PIX_FMT_YUV420P, AV_PIX_FMT_YUVJ440P, AV_PIX_FMT_GRAY8}) {
    SCOPED_TRACE(av_get_pix_fmt_name(format));
    const fs::path path = folder / "v.mp4";
    auto writer = open_video_writer(path, 67, 45, {});
    ASSERT_TRUE(writer) << writer.error().to_string();
    // Mid-grey everywhere: 128 in RGB, in full range and in grey; 126 in limited range.
    const Frame frame = make_test_frame(format, 67, 45, [](int, int, int) { return 128; });
    for (int i = 0; i < 3; ++i) {
      const auto written = (*writer)->write(frame);
      ASSERT_TRUE(written) << written.error().to_string();
    }
    ASSERT_TRUE((*writer)->finish());
    const Played played = read_all(path);
    ASSERT_EQ(played.frames.size(), 3U);
    EXPECT_EQ(played.frames[0].width, 66);
    EXPECT_EQ(played.frames[0].height, 44);
    const int expected = format == AV_PIX_FMT_YUV420P ? 128 : 126;
    EXPECT_NEAR(played.frames[0].picture->data[0][20 * played.frames[0].picture->linesize[0] + 30], expected, 2);
    EXPECT_NEAR(played.frames[0].picture->data[1][5], 128, 2);
  }
}

TEST(VideoWriter, NoPathOnlyEncodes) {
  auto writer = open_video_writer("", 64, 48, {});
  ASSERT_TRUE(writer) << writer.error().to_string();
  for (int i = 0; i < 5; ++i) EXPECT_TRUE((*writer)->write(pattern_frame(i, 64, 48)));
  EXPECT_TRUE((*writer)->finish());
}

TEST(VideoWriter, LeftUnfinishedLeavesNoFile) {
  const test::ScratchFolder folder;
  {
    auto writer = open_video_writer(folder / "v.mp4", 64, 48, {});
    ASSERT_TRUE(writer) << writer.error().to_string();
    EXPECT_TRUE((*writer)->write(pattern_frame(0, 64, 48)));
    EXPECT_EQ(files_in(folder.path()), 1U);
  }
  EXPECT_EQ(files_in(folder.path()), 0U);
}

TEST(VideoWriter, AnOldFileStaysUntilTheNewOneIsWhole) {
  const test::ScratchFolder folder;
  write_text(folder / "v.mp4", "old");
  { auto writer = open_video_writer(folder / "v.mp4", 64, 48, {}); }
  EXPECT_EQ(read_text(folder / "v.mp4"), "old");
}

TEST(VideoWriter, BadRequests) {
  const test::ScratchFolder folder;
  WriterOptions odd;
  odd.codec = "theora42";
  auto no_codec = open_video_writer(folder / "v.mp4", 64, 48, odd);
  ASSERT_FALSE(no_codec);
  EXPECT_EQ(no_codec.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(no_codec.error().to_string(), StartsWith("this FFmpeg has no video encoder 'theora42'; it has h264, "));

  auto no_folder = open_video_writer(folder / "none" / "v.mp4", 64, 48, {});
  ASSERT_FALSE(no_folder);
  EXPECT_EQ(no_folder.error().kind(), ErrorKind::kIo);
  EXPECT_EQ(no_folder.error().to_string(),
            (folder / "none" / "v.mp4").string() + ": cannot be written: No such file or directory");

  WriterOptions still;
  still.fps = 0;
  EXPECT_EQ(open_video_writer(folder / "v.mp4", 64, 48, still).error().kind(), ErrorKind::kUsage);
  EXPECT_EQ(files_in(folder.path()), 0U);
}

// Folders hold pictures of many sizes, and streams change theirs.
TEST(VideoWriter, FitsFramesOfAnotherSizeIntoTheVideo) {
  const test::ScratchFolder folder;
  auto writer = open_video_writer(folder / "v.mp4", 64, 48, {});
  ASSERT_TRUE(writer);
  ASSERT_TRUE((*writer)->write(pattern_frame(0, 64, 48)));
  const auto white = [](int c, int, int) { return c == 0 ? 235 : 128; };
  for (const auto& [format, width, height] : {std::tuple{AV_PIX_FMT_YUV420P, 32, 48},
                                              {AV_PIX_FMT_YUV444P, 33, 11},
                                              {AV_PIX_FMT_YUV420P, 1, 480},
                                              {AV_PIX_FMT_YUV420P, 999, 7}}) {
    const auto written = (*writer)->write(make_test_frame(format, width, height, white));
    ASSERT_TRUE(written) << written.error().to_string();
  }
  ASSERT_TRUE((*writer)->finish());

  auto source = open_source((folder / "v.mp4").string(), {});
  ASSERT_TRUE(source);
  std::vector<Frame> frames;
  for (auto frame = (*source)->next(); frame && *frame; frame = (*source)->next()) frames.push_back(**frame);
  ASSERT_EQ(frames.size(), 5U);
  const auto luma = [&](size_t frame, int x, int y) {
    const AVFrame& picture = *frames[frame].picture;
    return int{picture.data[0][y * picture.linesize[0] + x]};
  };
  for (const Frame& frame : frames) EXPECT_EQ(std::pair(frame.width, frame.height), std::pair(64, 48));
  EXPECT_GT(luma(1, 32, 24), 200);  // 32x48 stands in columns 16 to 47
  EXPECT_GT(luma(1, 20, 2), 200);
  EXPECT_LT(luma(1, 8, 24), 40);
  EXPECT_LT(luma(1, 56, 24), 40);
  EXPECT_GT(luma(2, 4, 24), 200);  // 33x11 becomes 64x20, in rows 14 to 33
  EXPECT_LT(luma(2, 32, 6), 40);
  EXPECT_LT(luma(2, 32, 42), 40);
}

TEST(VideoWriter, AFailedVideoIsNotGivenItsName) {
  const test::ScratchFolder folder;
  auto writer = open_video_writer(folder / "v.mp4", 64, 48, {});
  ASSERT_TRUE(writer);
  EXPECT_TRUE((*writer)->write(pattern_frame(0, 64, 48)));
  EXPECT_FALSE((*writer)->write(Frame()));
  EXPECT_FALSE((*writer)->finish());
  EXPECT_EQ(files_in(folder.path()), 0U);
}

// A full disk, as far as a process can make one for itself: files may not grow beyond 20 kB.
void fill_disk(const fs::path& folder) {
  ::signal(SIGXFSZ, SIG_IGN);
  const rlimit limit = {20000, 20000};
  if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) std::_Exit(2);
  auto writer = open_video_writer(folder / "v.mp4", 320, 240, {});
  if (!writer) std::_Exit(3);
  Result<void> done;
  for (int i = 0; i < 200 && done; ++i) done = (*writer)->write(pattern_frame(i, 320, 240));
  if (done) done = (*writer)->finish();
  if (done) std::_Exit(4);
  std::fprintf(stderr, "%s\n", done.error().to_string().c_str());
  if ((*writer)->finish()) std::_Exit(5);
  std::_Exit(done.error().kind() == ErrorKind::kIo && files_in(folder) == 0 ? 0 : 6);
}

TEST(VideoWriterDeathTest, FullDiskIsOneClearLine) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const test::ScratchFolder folder;
  EXPECT_EXIT(fill_disk(folder.path()), ::testing::ExitedWithCode(0), "v.mp4: cannot be written: File too large");
}

TEST(WritePicture, PngIsExact) {
  const test::ScratchFolder folder;
  const Frame frame =
      make_test_frame(AV_PIX_FMT_RGB24, 33, 21, [](int c, int x, int y) { return (7 * x + 13 * y + 80 * c) % 256; });
  const auto written = write_picture(folder / "p.png", frame);
  ASSERT_TRUE(written) << written.error().to_string();
  const Played played = read_all(folder / "p.png");
  ASSERT_EQ(played.frames.size(), 1U);
  EXPECT_EQ(raw_pixels(*played.frames[0].picture), raw_pixels(*frame.picture));
}

TEST(WritePicture, JpegIsClose) {
  const test::ScratchFolder folder;
  const Frame frame = smooth_frame(0, 64, 48, AV_PIX_FMT_YUVJ420P);
  ASSERT_TRUE(write_picture(folder / "p.jpeg", frame));
  const Played played = read_all(folder / "p.jpeg");
  ASSERT_EQ(played.frames.size(), 1U);
  EXPECT_GT(luma_psnr(*played.frames[0].picture, *frame.picture), 40);
}

TEST(WritePicture, AWorseJpegIsSmaller) {
  const test::ScratchFolder folder;
  const Frame frame = pattern_frame(0, 320, 240);
  uintmax_t before = 0;
  for (const int quality : {1, 50, 100}) {
    ASSERT_TRUE(write_picture(folder / "p.jpg", frame, {.quality = quality}));
    EXPECT_GT(std::filesystem::file_size(folder / "p.jpg"), before);
    before = std::filesystem::file_size(folder / "p.jpg");
  }
}

TEST(WritePicture, IsScaled) {
  const test::ScratchFolder folder;
  const Frame frame = smooth_frame(0, 64, 48, AV_PIX_FMT_YUVJ420P);
  const Frame half = smooth_frame(0, 32, 24, AV_PIX_FMT_YUVJ420P);
  const auto size_of = [&](const PictureOptions& options) {
    EXPECT_TRUE(write_picture(folder / "p.jpg", frame, options));
    const Played played = read_all(folder / "p.jpg");
    return std::pair(played.frames.at(0).width, played.frames.at(0).height);
  };
  EXPECT_EQ(size_of({.width = 20, .height = 31}), std::pair(20, 31));
  EXPECT_EQ(size_of({.width = 0, .height = 24}), std::pair(32, 24));
  EXPECT_EQ(size_of({.width = 32, .height = 0}), std::pair(32, 24));
  const Played played = read_all(folder / "p.jpg");
  EXPECT_GT(luma_psnr(*played.frames[0].picture, *half.picture), 25);
}

TEST(WritePicture, BadRequests) {
  const test::ScratchFolder folder;
  const Frame frame = pattern_frame(0, 32, 32);
  EXPECT_EQ(write_picture(folder / "p.xyz", frame).error().kind(), ErrorKind::kUnsupported);
  const auto no_folder = write_picture(folder / "none" / "p.png", frame);
  ASSERT_FALSE(no_folder);
  EXPECT_EQ(no_folder.error().kind(), ErrorKind::kIo);
}

}  // namespace
}  // namespace strobe::media
