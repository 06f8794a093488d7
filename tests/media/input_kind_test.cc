#include "media/common/input_kind.h"

#include <gtest/gtest.h>

#include <map>

#include "support/test_data.h"

namespace strobe::media {
namespace {

std::map<std::string, std::string> options_of(InputKind kind, const SourceOptions& options = {}) {
  const auto pairs = demuxer_options(kind, options);
  return {pairs.begin(), pairs.end()};
}

TEST(InputKind, TellsWhatAnInputIs) {
  const test::ScratchFolder folder;
  EXPECT_EQ(input_kind("drive.mp4"), InputKind::kFile);
  EXPECT_EQ(input_kind("a:b.mp4"), InputKind::kFile);
  EXPECT_EQ(input_kind("dog.JPG"), InputKind::kPicture);
  EXPECT_EQ(input_kind("file:///data/dog.png"), InputKind::kPicture);
  EXPECT_EQ(input_kind(folder.path().string()), InputKind::kFolder);
  EXPECT_EQ(input_kind("/dev/video0"), InputKind::kCamera);
  EXPECT_EQ(input_kind("rtsp://camera/1"), InputKind::kRtsp);
  EXPECT_EQ(input_kind("RTSPS://camera/1"), InputKind::kRtsp);
  EXPECT_EQ(input_kind("https://host/v.mp4"), InputKind::kFile);
  EXPECT_EQ(input_kind("srt://host:9000"), InputKind::kStream);
  EXPECT_EQ(input_kind("synthetic://640x480"), InputKind::kSynthetic);
  EXPECT_FALSE(is_live(InputKind::kSynthetic));
  EXPECT_TRUE(is_live(InputKind::kCamera));
  EXPECT_FALSE(is_live(InputKind::kFolder));
}

TEST(InputKind, PathsReachFfmpegAsTheyAre) {
  EXPECT_EQ(as_url("a:b%03d.mp4"), "file:a:b%03d.mp4");
  EXPECT_EQ(as_url("file:///data/v.mp4"), "file:/data/v.mp4");
  EXPECT_EQ(as_url("rtsp://camera/1"), "rtsp://camera/1");
  EXPECT_EQ(as_url("/dev/video2"), "/dev/video2");
  EXPECT_EQ(options_of(InputKind::kPicture)["pattern_type"], "none");
}

TEST(InputKind, RtspOptions) {
  SourceOptions options;
  options.timeout_s = 2.5;
  EXPECT_EQ(options_of(InputKind::kRtsp, options)["rtsp_transport"], "tcp");
  EXPECT_EQ(options_of(InputKind::kRtsp, options)["timeout"], "2500000");
  EXPECT_EQ(options_of(InputKind::kRtsp, options)["allowed_media_types"], "video");
  options.rtsp_transport = SourceOptions::RtspTransport::kUdp;
  EXPECT_EQ(options_of(InputKind::kRtsp, options)["rtsp_transport"], "udp");
  EXPECT_TRUE(options_of(InputKind::kFile, options).empty());
}

TEST(InputKind, ReconnectPausesGrowToALimit) {
  EXPECT_DOUBLE_EQ(reconnect_pause_s(1), 0.25);
  EXPECT_DOUBLE_EQ(reconnect_pause_s(2), 0.5);
  EXPECT_DOUBLE_EQ(reconnect_pause_s(5), 4);
  EXPECT_DOUBLE_EQ(reconnect_pause_s(6), 8);
  EXPECT_DOUBLE_EQ(reconnect_pause_s(1000), 8);
}

}  // namespace
}  // namespace strobe::media
