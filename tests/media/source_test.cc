#include "media/source.h"

extern "C" {
#include <libavutil/md5.h>
}

#include <gmock/gmock.h>

#include <chrono>
#include <set>
#include <thread>

#include "media/media_test.h"
#include "media/preprocess.h"

namespace strobe::media {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string md5(const std::string& bytes) {
  std::array<uint8_t, 16> digest{};
  av_md5_sum(digest.data(), reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
  std::string text;
  for (const uint8_t byte : digest) {
    char hex[3];
    std::snprintf(hex, sizeof hex, "%02x", byte);
    text += hex;
  }
  return text;
}

// The MD5 of every frame's pixels as FFmpeg's command line decodes them.
std::vector<std::string> frame_sums(const fs::path& video) {
  std::vector<std::string> sums;
  for (const auto& line : output_of("ffmpeg -v quiet -threads 1 -i 'file:" + video.string() +
                                    "' -map 0:v:0 -vsync passthrough -f framemd5 -")) {
    if (line.starts_with("#")) continue;
    const size_t comma = line.rfind(", ");
    sums.push_back(line.substr(comma + 2, 32));
  }
  return sums;
}

void expect_as_ffmpeg(const fs::path& video, int threads) {
  const auto expected = frame_sums(video);
  ASSERT_FALSE(expected.empty());
  SourceOptions options;
  options.decode_threads = threads;
  auto source = open_source(video.string(), options);
  ASSERT_TRUE(source) << source.error().to_string();
  size_t count = 0;
  double last = -1;
  for (;; ++count) {
    auto frame = (*source)->next();
    ASSERT_TRUE(frame) << frame.error().to_string();
    if (!*frame) break;
    ASSERT_LT(count, expected.size());
    EXPECT_EQ((*frame)->index, static_cast<int64_t>(count));
    EXPECT_GT((*frame)->time_s, last);
    last = (*frame)->time_s;
    EXPECT_EQ(md5(raw_pixels(*(*frame)->picture)), expected[count]) << "frame " << count;
  }
  EXPECT_EQ(count, expected.size());
  EXPECT_EQ((*source)->damaged(), 0);
}

Error open_failure(const std::string& input, const SourceOptions& options = {}) {
  auto source = open_source(input, options);
  if (source) return internal_error("it opened");
  EXPECT_EQ(source.error().to_string().find('\n'), std::string::npos) << "one line";
  return source.error();
}

TEST(FileSource, DecodesRealVideosAsFfmpegDoes) {
  const fs::path vtest = test::shared_data("video/vtest.avi");
  STROBE_REQUIRE_DATA(vtest);
  if (!has_command("ffmpeg")) GTEST_SKIP() << "no ffmpeg command to compare with";
  expect_as_ffmpeg(vtest, 2);
  expect_as_ffmpeg(test::shared_data("video/test-lowres.mp4"), 1);
}

TEST(FileSource, KnowsWhatItHolds) {
  const fs::path vtest = test::shared_data("video/vtest.avi");
  STROBE_REQUIRE_DATA(vtest);
  auto source = open_source(vtest.string(), {});
  ASSERT_TRUE(source) << source.error().to_string();
  const SourceInfo& info = (*source)->info();
  EXPECT_EQ(info.width, 768);
  EXPECT_EQ(info.height, 576);
  EXPECT_EQ(info.frames, 795);
  EXPECT_DOUBLE_EQ(info.fps, 10);
  EXPECT_EQ(info.codec, "msmpeg4v3");
  EXPECT_EQ(info.pixel_format, "yuv420p");
  EXPECT_EQ(info.kind, "file");
  EXPECT_FALSE(info.live);
}

TEST(FileSource, DecodesWhatFfmpegMade) {
  if (!has_command("ffmpeg")) GTEST_SKIP() << "no ffmpeg command to make videos with";
  const test::ScratchFolder folder;
  for (const std::string name : {"a.mkv", "b.mov", "c:d.mp4", "e 100%.avi"}) {
    const fs::path video = folder / name;
    ASSERT_EQ(std::system(("ffmpeg -v quiet -f lavfi -i testsrc2=d=1:r=25:s=161x121 -pix_fmt yuv420p 'file:" +
                           video.string() + "'")
                              .c_str()),
              0);
    SCOPED_TRACE(name);
    expect_as_ffmpeg(video, 1);
  }
}

// Frames stay in the decoder's pooled buffers: a few of them serve a whole video, and preprocessing takes none.
TEST(FileSource, FramesAreNeverCopied) {
  const test::ScratchFolder folder;
  write_test_video(folder / "v.mp4", 60, 128, 96);
  auto source = open_source((folder / "v.mp4").string(), {});
  ASSERT_TRUE(source) << source.error().to_string();
  std::set<const uint8_t*> buffers;
  std::vector<float> input(3 * 64 * 64);
  int frames = 0;
  for (;; ++frames) {
    auto frame = (*source)->next();
    ASSERT_TRUE(frame) << frame.error().to_string();
    if (!*frame) break;
    const AVFrame* const before = (*frame)->picture.get();
    const uint8_t* const pixels = before->data[0];
    ASSERT_NE(before->buf[0], nullptr);
    const int references = av_buffer_get_ref_count(before->buf[0]);
    const auto holders = (*frame)->picture.use_count();
    const auto sampled = preprocess(**frame, {.width = 64, .height = 64}, input.data());
    ASSERT_TRUE(sampled) << sampled.error().to_string();
    EXPECT_EQ((*frame)->picture.get(), before);
    EXPECT_EQ((*frame)->picture->data[0], pixels);
    EXPECT_EQ(av_buffer_get_ref_count(before->buf[0]), references);
    EXPECT_EQ((*frame)->picture.use_count(), holders);
    buffers.insert(pixels);
  }
  EXPECT_EQ(frames, 60);
  EXPECT_LE(buffers.size(), 8U);
}

TEST(FileSource, FramesOutliveTheirSource) {
  const test::ScratchFolder folder;
  write_test_video(folder / "v.mp4", 5, 64, 48);
  auto source = open_source((folder / "v.mp4").string(), {});
  ASSERT_TRUE(source) << source.error().to_string();
  const Played played = play(**source);
  ASSERT_EQ(played.frames.size(), 5U);
  const std::string before = raw_pixels(*played.frames[4].picture);
  source->reset();
  EXPECT_EQ(raw_pixels(*played.frames[4].picture), before);
}

TEST(FileSource, StopEndsTheStream) {
  const test::ScratchFolder folder;
  write_test_video(folder / "v.mp4", 30, 64, 48);
  std::atomic<bool> stop = false;
  SourceOptions options;
  options.stop = &stop;
  auto source = open_source((folder / "v.mp4").string(), options);
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_EQ(play(**source, 3).frames.size(), 3U);
  stop = true;
  const Played rest = play(**source);
  EXPECT_TRUE(rest.error.empty()) << rest.error;
  EXPECT_LT(rest.frames.size(), 5U);  // what the decoder had at hand
}

void write_grey(const fs::path& path, int width, int height, int level) {
  const auto written =
      write_picture(path, make_test_frame(AV_PIX_FMT_RGB24, width, height, [&](int, int, int) { return level; }));
  ASSERT_TRUE(written) << written.error().to_string();
}

TEST(PictureSource, OnePictureIsAVideoOfOneFrame) {
  const test::ScratchFolder folder;
  const std::string path = (folder / "a%02d:b.png").string();
  write_grey(path, 31, 17, 90);
  auto source = open_source(path, {});
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_EQ((*source)->info().kind, "picture");
  EXPECT_EQ((*source)->info().frames, 1);
  EXPECT_EQ((*source)->info().width, 31);
  EXPECT_EQ((*source)->info().height, 17);
  EXPECT_EQ((*source)->info().pixel_format, "rgb24");
  const Played played = play(**source);
  EXPECT_TRUE(played.error.empty()) << played.error;
  ASSERT_EQ(played.frames.size(), 1U);
  EXPECT_EQ(played.frames[0].picture->data[0][0], 90);
}

TEST(PictureSource, RealPictures) {
  const fs::path samples = test::shared_data("samples");
  STROBE_REQUIRE_DATA(samples / "dog.jpg");
  for (const auto& [name, width, height] : {std::tuple("dog.jpg", 768, 576), {"giraffe.jpg", 500, 500}}) {
    auto source = open_source((samples / name).string(), {});
    ASSERT_TRUE(source) << source.error().to_string();
    const Played played = play(**source);
    ASSERT_EQ(played.frames.size(), 1U);
    EXPECT_EQ(played.frames[0].width, width);
    EXPECT_EQ(played.frames[0].height, height);
    EXPECT_EQ((*source)->damaged(), 0);
  }
}

TEST(PictureSource, FoldersAreReadInNaturalOrder) {
  const test::ScratchFolder folder;
  int level = 10;
  for (const std::string name : {"f1.png", "f2.png", "f9.png", "f10.png", "f11.png"}) {
    write_grey(folder / name, 16, 8, level);
    level += 10;
  }
  write_text(folder / "notes.txt", "not a picture");
  write_text(folder / ".f3.png", "hidden");
  SourceOptions options;
  options.picture_fps = 20;
  auto source = open_source(folder.path().string(), options);
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_EQ((*source)->info().kind, "folder");
  EXPECT_EQ((*source)->info().frames, 5);
  EXPECT_DOUBLE_EQ((*source)->info().fps, 20);
  const Played played = play(**source);
  EXPECT_TRUE(played.error.empty()) << played.error;
  ASSERT_EQ(played.frames.size(), 5U);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(played.frames[i].picture->data[0][0], 10 * (i + 1));
    EXPECT_DOUBLE_EQ(played.frames[i].time_s, static_cast<double>(i) / 20);
  }
  EXPECT_EQ((*source)->damaged(), 0);
}

TEST(PictureSource, ADamagedPictureIsCountedAndPassed) {
  const test::ScratchFolder folder;
  write_text(folder / "f0.png", "no picture");
  write_grey(folder / "f1.png", 16, 8, 10);
  write_text(folder / "f2.png", "no picture either");
  write_grey(folder / "f3.png", 16, 8, 30);
  auto source = open_source(folder.path().string(), {});
  ASSERT_TRUE(source) << source.error().to_string();
  EXPECT_EQ(play(**source).frames.size(), 2U);
  EXPECT_EQ((*source)->damaged(), 2);

  const test::ScratchFolder hopeless;
  write_text(hopeless / "f0.png", "no picture");
  write_text(hopeless / "f1.png", "no picture");
  const Error error = open_failure(hopeless.path().string());
  EXPECT_EQ(error.kind(), ErrorKind::kBadData);
  EXPECT_EQ(error.to_string(), hopeless.path().string() + ": none of its 2 pictures can be decoded");
}

TEST(PictureSource, PicturesOfAFolderMayDifferInSize) {
  const test::ScratchFolder folder;
  write_grey(folder / "f1.png", 16, 8, 10);
  write_grey(folder / "f2.png", 16, 10, 10);
  auto source = open_source(folder.path().string(), {});
  ASSERT_TRUE(source) << source.error().to_string();
  const Played played = play(**source);
  EXPECT_EQ(played.error, "");
  ASSERT_EQ(played.frames.size(), 2U);
  EXPECT_EQ(std::pair(played.frames[0].width, played.frames[0].height), std::pair(16, 8));
  EXPECT_EQ(std::pair(played.frames[1].width, played.frames[1].height), std::pair(16, 10));
  EXPECT_EQ(std::pair((*source)->info().width, (*source)->info().height), std::pair(16, 8)) << "the first one's";
}

TEST(BadInput, EachGetsOneClearLine) {
  const test::ScratchFolder folder;
  const std::string missing = (folder / "none.mp4").string();
  EXPECT_EQ(open_failure(missing).to_string(), missing + ": no such file");
  EXPECT_EQ(open_failure(missing).kind(), ErrorKind::kNotFound);

  const std::string text = "the quick brown fox jumps over the lazy dog\n";
  for (const std::string name : {"text.mp4", "text.txt", "text.avi", "text", "text.mkv", "text.srt"}) {
    write_text(folder / name, text + text + text);
    const Error error = open_failure((folder / name).string());
    EXPECT_EQ(error.kind(), ErrorKind::kBadData) << name;
    EXPECT_EQ(error.to_string(), (folder / name).string() + ": not a video: it holds text");
  }
  write_text(folder / "text.jpg", text);
  EXPECT_EQ(open_failure((folder / "text.jpg").string()).to_string(),
            (folder / "text.jpg").string() + ": not a picture: it holds text");

  for (const std::string name : {"empty.mp4", "empty.jpg"}) {
    write_text(folder / name, "");
    const Error error = open_failure((folder / name).string());
    EXPECT_EQ(error.kind(), ErrorKind::kBadData);
    EXPECT_THAT(error.to_string(), HasSubstr("the file is empty"));
  }

  fs::create_directory(folder / "pictures");
  EXPECT_EQ(open_failure((folder / "pictures").string()).kind(), ErrorKind::kNotFound);
  EXPECT_THAT(open_failure((folder / "pictures").string()).to_string(), HasSubstr("no pictures in this folder"));
}

TEST(BadInput, NoiseIsNotAVideo) {
  const test::ScratchFolder folder;
  std::string noise;
  uint32_t state = 1;
  for (int i = 0; i < 100000; ++i) noise.push_back(static_cast<char>((state = state * 1664525 + 1013904223) >> 24));
  for (const std::string name : {"noise.mp4", "noise.bin", "noise.png", "noise.avi"}) {
    write_text(folder / name, noise);
    const Error error = open_failure((folder / name).string());
    EXPECT_EQ(error.kind(), ErrorKind::kBadData) << error.to_string();
    EXPECT_THAT(error.to_string(), StartsWith((folder / name).string() + ": not a "));
  }
}

TEST(BadInput, AudioHasNoVideo) {
  if (!has_command("ffmpeg")) GTEST_SKIP() << "no ffmpeg command to make a sound with";
  const test::ScratchFolder folder;
  const fs::path sound = folder / "sound.wav";
  ASSERT_EQ(std::system(("ffmpeg -v quiet -f lavfi -i sine=d=0.2 " + sound.string()).c_str()), 0);
  const Error error = open_failure(sound.string());
  EXPECT_EQ(error.kind(), ErrorKind::kBadData);
  EXPECT_EQ(error.to_string(), sound.string() + ": no video in it, only 1 stream(s) of another kind (audio)");
}

TEST(BadInput, UnknownCodecIsNamed) {
  const test::ScratchFolder folder;
  WriterOptions options;
  options.codec = "mpeg4";
  write_test_video(folder / "v.avi", 5, 64, 48, options);
  std::string bytes = read_text(folder / "v.avi");
  for (size_t at; (at = bytes.find("FMP4")) != std::string::npos;) bytes.replace(at, 4, "Zq9X");
  write_text(folder / "odd.avi", bytes);
  const Error error = open_failure((folder / "odd.avi").string());
  EXPECT_EQ(error.kind(), ErrorKind::kUnsupported);
  EXPECT_EQ(error.to_string(), (folder / "odd.avi").string() + ": unknown video codec 'Zq9X'");
}

TEST(BadInput, Mp4WithoutItsIndex) {
  const test::ScratchFolder folder;
  if (!has_command("ffmpeg")) GTEST_SKIP() << "no ffmpeg command to make a video with its index at the end";
  const fs::path whole = folder / "v.mp4";
  ASSERT_EQ(std::system(("ffmpeg -v quiet -f lavfi -i testsrc2=d=2:s=320x240 " + whole.string()).c_str()), 0);
  const std::string bytes = read_text(whole);
  write_text(folder / "cut.mp4", bytes.substr(0, bytes.size() / 2));
  const Error error = open_failure((folder / "cut.mp4").string());
  EXPECT_EQ(error.kind(), ErrorKind::kBadData);
  EXPECT_EQ(error.to_string(), (folder / "cut.mp4").string() +
                                   ": not a video: Invalid data found when processing input (moov atom not found)");
}

// The writer puts the index first, so that a file that is cut off still opens; it gives what it has, then says so.
TEST(BadInput, CutOffFilesGiveWhatTheyHave) {
  const test::ScratchFolder folder;
  for (const std::string name : {"v.mp4", "v.avi", "v.mkv"}) {
    SCOPED_TRACE(name);
    WriterOptions options;
    options.codec = name == "v.avi" ? "mpeg4" : "h264";
    write_test_video(folder / name, 50, 160, 120, options);
    const std::string bytes = read_text(folder / name);
    const std::string cut = (folder / ("cut-" + name)).string();
    write_text(cut, bytes.substr(0, bytes.size() * 6 / 10));
    auto source = open_source(cut, {});
    ASSERT_TRUE(source) << source.error().to_string();
    const Played played = play(**source);
    EXPECT_GT(played.frames.size(), 10U);
    EXPECT_LT(played.frames.size(), 45U);
    EXPECT_EQ(played.kind, ErrorKind::kBadData);
    EXPECT_THAT(played.error,
                StartsWith(cut + ": after frame " + std::to_string(played.frames.size()) + ": the file is cut off"));
  }
}

TEST(BadInput, RealVideoCutOff) {
  const fs::path vtest = test::shared_data("video/vtest.avi");
  STROBE_REQUIRE_DATA(vtest);
  const test::ScratchFolder folder;
  const std::string cut = (folder / "cut.avi").string();
  write_text(cut, read_text(vtest).substr(0, 2000000));
  auto source = open_source(cut, {});
  ASSERT_TRUE(source) << source.error().to_string();
  const Played played = play(**source, SIZE_MAX, false);
  EXPECT_GT(played.frames.size(), 100U);
  EXPECT_THAT(played.error, HasSubstr("the file is cut off: it promises"));
}

TEST(BadInput, DamageInTheMiddleIsCountedAndPassed) {
  const test::ScratchFolder folder;
  write_test_video(folder / "v.mp4", 60, 160, 120);
  std::string bytes = read_text(folder / "v.mp4");
  const size_t middle = bytes.find("mdat") + (bytes.size() - bytes.find("mdat")) / 2;
  for (size_t i = 0; i < 2000; ++i) bytes[middle + i] = static_cast<char>(i * 37);
  write_text(folder / "bad.mp4", bytes);
  auto source = open_source((folder / "bad.mp4").string(), {});
  ASSERT_TRUE(source) << source.error().to_string();
  const Played played = play(**source);
  EXPECT_TRUE(played.error.empty()) << played.error;
  EXPECT_GT(played.frames.size(), 40U);
  EXPECT_GT((*source)->damaged(), 0);
}

TEST(BadInput, NoCameraThere) {
  const Error error = open_failure("/dev/video99");
  EXPECT_EQ(error.kind(), ErrorKind::kNotFound);
  EXPECT_THAT(error.to_string(), StartsWith("/dev/video99: no such camera; this machine has: "));
}

}  // namespace
}  // namespace strobe::media
