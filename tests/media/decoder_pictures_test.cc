// Pictures in memory of the program's own, against the same streams decoded by FFmpeg alone with its own memory.
extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include "media/draw.h"
#include "media/media_test.h"

namespace strobe::media {
namespace {

namespace fs = std::filesystem;

// Every picture of the video: size, format and pixels.
std::string described(const AVFrame& picture) {
  return std::to_string(picture.width) + "x" + std::to_string(picture.height) + " " +
         av_get_pix_fmt_name(static_cast<AVPixelFormat>(picture.format)) + " " + raw_pixels(picture);
}

std::vector<std::string> decoded_plainly(const fs::path& video) {
  std::vector<std::string> pictures;
  AVFormatContext* demuxer = nullptr;
  EXPECT_EQ(avformat_open_input(&demuxer, video.c_str(), nullptr, nullptr), 0);
  if (demuxer == nullptr) return pictures;
  EXPECT_GE(avformat_find_stream_info(demuxer, nullptr), 0);
  const AVCodec* codec = nullptr;
  const int index = av_find_best_stream(demuxer, AVMEDIA_TYPE_VIDEO, -1, -1, &codec, 0);
  AVCodecContext* decoder = avcodec_alloc_context3(codec);
  avcodec_parameters_to_context(decoder, demuxer->streams[index]->codecpar);
  decoder->thread_count = 1;
  EXPECT_EQ(avcodec_open2(decoder, codec, nullptr), 0);
  AVPacket* packet = av_packet_alloc();
  AVFrame* picture = av_frame_alloc();
  for (bool more = true; more;) {
    more = av_read_frame(demuxer, packet) >= 0;
    avcodec_send_packet(decoder, more ? packet : nullptr);
    av_packet_unref(packet);
    while (avcodec_receive_frame(decoder, picture) == 0) pictures.push_back(described(*picture));
  }
  av_frame_free(&picture);
  av_packet_free(&packet);
  avcodec_free_context(&decoder);
  avformat_close_input(&demuxer);
  return pictures;
}

void expect_same_pixels(const fs::path& video) {
  const std::vector<std::string> expected = decoded_plainly(video);
  ASSERT_FALSE(expected.empty());
  for (const int threads : {1, 4}) {
    for (const int in_flight : {0, 3, 24}) {
      SCOPED_TRACE(video.filename().string() + ", threads " + std::to_string(threads) + ", in flight " +
                   std::to_string(in_flight));
      SourceOptions options;
      options.decode_threads = threads;
      options.pictures_in_flight = in_flight;
      auto source = open_source(video.string(), options);
      ASSERT_TRUE(source) << source.error().to_string();
      const Played played = play(**source);  // every frame is held
      EXPECT_TRUE(played.error.empty()) << played.error;
      source->reset();
      ASSERT_EQ(played.frames.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) {
        ASSERT_TRUE(described(*played.frames[i].picture) == expected[i]) << "frame " << i;
      }
    }
  }
}

bool make(const std::string& arguments, const fs::path& video) {
  return std::system(("ffmpeg -v quiet -y -f lavfi " + arguments + " '" + video.string() + "'").c_str()) == 0;
}

TEST(DecoderPictures, PixelsAreFfmpegsOwn) {
  if (!has_command("ffmpeg")) GTEST_SKIP() << "no ffmpeg command to make videos with";
  const test::ScratchFolder folder;
  int made = 0;
  for (const auto& [name, arguments] : {
           std::pair("h264.mp4", "-i testsrc2=d=2:r=25:s=322x178 -c:v libx264 -pix_fmt yuv420p"),
           {"odd.mkv", "-i testsrc2=d=1:r=25:s=161x121 -c:v libx264 -pix_fmt yuv420p"},
           {"interlaced.mkv", "-i testsrc2=d=1:r=25:s=320x180 -c:v libx264 -flags +ildct+ilme -pix_fmt yuv420p"},
           {"deep.mkv", "-i testsrc2=d=1:r=25:s=322x178 -c:v libx264 -pix_fmt yuv420p10le"},
           {"hevc.mkv", "-i testsrc2=d=1:r=25:s=318x182 -c:v libx265 -x265-params log-level=none"},
           {"vp9.webm", "-i testsrc2=d=1:r=25:s=163x91 -c:v libvpx-vp9 -pix_fmt yuv420p"},
           {"mpeg4.avi", "-i testsrc2=d=1:r=25:s=161x121 -c:v mpeg4 -bf 2"},
           {"mpeg2.mpg", "-i testsrc2=d=1:r=25:s=352x288 -c:v mpeg2video -bf 2"},
           {"mjpeg.avi", "-i testsrc2=d=1:r=25:s=173x99 -c:v mjpeg -pix_fmt yuvj422p"},
           {"rgb.avi", "-i testsrc2=d=1:r=25:s=51x33 -c:v png -pix_fmt rgb24"},
           {"palette.gif", "-i testsrc2=d=1:r=10:s=71x43"},
           {"ffv1.mkv", "-i testsrc2=d=1:r=25:s=97x61 -c:v ffv1 -level 3 -slices 4 -pix_fmt yuv444p16le"},
           {"planes.mkv", "-i testsrc2=d=1:r=25:s=97x61 -c:v ffv1 -pix_fmt gbrp"},
       }) {
    if (!make(arguments, folder / name)) continue;  // this FFmpeg has no such encoder
    ++made;
    expect_same_pixels(folder / name);
  }
  EXPECT_GE(made, 6);
}

TEST(DecoderPictures, SizesMayChangeWithinAStream) {
  if (!has_command("ffmpeg")) GTEST_SKIP() << "no ffmpeg command to make videos with";
  const test::ScratchFolder folder;
  for (const auto& [kind, options] : {std::pair("h264", "-c:v libx264 -pix_fmt yuv420p"), {"mjpeg", "-c:v mjpeg"}}) {
    std::string joined;
    for (const char* const size : {"160x120", "640x480", "64x48", "322x178", "160x120"}) {
      const fs::path part = folder / (std::string("part-") + size + "." + kind);
      ASSERT_TRUE(make(std::string("-i testsrc2=d=0.4:r=25:s=") + size + " " + options, part));
      joined += read_text(part);
    }
    const fs::path video = folder / (std::string("joined.") + kind);
    write_text(video, joined);
    expect_same_pixels(video);
  }
}

TEST(DecoderPictures, RealVideoWithEveryFrameHeld) {
  const fs::path video = test::shared_data("video/test-lowres.mp4");
  STROBE_REQUIRE_DATA(video);
  const std::vector<std::string> expected = decoded_plainly(video);
  SourceOptions options;
  options.decode_threads = 2;
  auto source = open_source(video.string(), options);
  ASSERT_TRUE(source) << source.error().to_string();
  const Played played = play(**source);
  source->reset();
  ASSERT_EQ(played.frames.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(described(*played.frames[i].picture) == expected[i]) << "frame " << i;
  }
}

// Drawn frames lie in the same memory as decoded ones: it was touched for both.
TEST(DecoderPictures, DrawingUsesTheSameMemory) {
  const test::ScratchFolder folder;
  write_test_video(folder / "v.mp4", 30, 320, 240);
  auto source = open_source((folder / "v.mp4").string(), {});
  ASSERT_TRUE(source) << source.error().to_string();
  std::vector<Frame> drawn;
  const uint8_t* lowest = nullptr;
  const uint8_t* highest = nullptr;
  for (int i = 0; i < 10; ++i) {
    auto frame = (*source)->next();
    ASSERT_TRUE(frame && *frame);
    auto copy = draw(**frame, {{{10, 10, 50, 50, "", 0xff0000}}});
    ASSERT_TRUE(copy) << copy.error().to_string();
    for (const Frame& held : {**frame, *copy}) {
      const uint8_t* const at = held.picture->data[0];
      lowest = lowest == nullptr ? at : std::min(lowest, at);
      highest = std::max(highest, at);
    }
    drawn.push_back(*copy);
  }
  EXPECT_LT(highest - lowest, 30 * 320 * 320 * 3 / 2);
  const std::string before = raw_pixels(*drawn[3].picture);
  source->reset();
  EXPECT_EQ(raw_pixels(*drawn[3].picture), before);
}

}  // namespace
}  // namespace strobe::media
