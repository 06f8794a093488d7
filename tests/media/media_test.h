// What the tests of this room share: pictures made by hand, and FFmpeg's own command line as an independent judge.
#pragma once

extern "C" {
#include <libavutil/frame.h>
#include <libavutil/imgutils.h>
#include <libavutil/pixdesc.h>
}

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "media/frame.h"
#include "media/sink.h"
#include "media/source.h"
#include "support/test_data.h"

namespace strobe::media {

inline Frame wrap(AVFrame* picture, int64_t index = 0) {
  Frame frame;
  frame.index = index;
  frame.width = picture->width;
  frame.height = picture->height;
  frame.picture = std::shared_ptr<const AVFrame>(picture, [](const AVFrame* held) {
    auto* mutable_held = const_cast<AVFrame*>(held);
    av_frame_free(&mutable_held);
  });
  return frame;
}

// A picture whose component c at sample (x, y) of its plane is value(c, x, y).
inline Frame make_test_frame(AVPixelFormat format, int width, int height,
                             const std::function<int(int, int, int)>& value, int64_t index = 0) {
  AVFrame* picture = av_frame_alloc();
  picture->format = format;
  picture->width = width;
  picture->height = height;
  EXPECT_EQ(av_frame_get_buffer(picture, 0), 0);
  const AVPixFmtDescriptor* description = av_pix_fmt_desc_get(format);
  for (int c = 0; c < description->nb_components; ++c) {
    const bool chroma = (c == 1 || c == 2) && (description->flags & AV_PIX_FMT_FLAG_RGB) == 0;
    const int w = chroma ? AV_CEIL_RSHIFT(width, description->log2_chroma_w) : width;
    const int h = chroma ? AV_CEIL_RSHIFT(height, description->log2_chroma_h) : height;
    const AVComponentDescriptor& at = description->comp[c];
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        picture->data[at.plane][y * picture->linesize[at.plane] + x * at.step + at.offset] =
            static_cast<uint8_t>(value(c, x, y));
      }
    }
  }
  return wrap(picture, index);
}

// A moving pattern, so that every frame of a test video differs.
inline Frame pattern_frame(int index, int width, int height, AVPixelFormat format = AV_PIX_FMT_YUV420P) {
  return make_test_frame(
      format, width, height,
      [&](int c, int x, int y) {
        if (c == 0) return 16 + (x * 3 + y * 2 + index * 5) % 200;
        return 128 + ((c == 1 ? x : y) + index) % 40 - 20;
      },
      index);
}

inline void write_test_video(const std::filesystem::path& path, int frames, int width, int height,
                             const WriterOptions& options = {}) {
  auto writer = open_video_writer(path, width, height, options);
  ASSERT_TRUE(writer) << writer.error().to_string();
  for (int i = 0; i < frames; ++i) {
    auto written = (*writer)->write(pattern_frame(i, width, height));
    ASSERT_TRUE(written) << written.error().to_string();
  }
  auto finished = (*writer)->finish();
  ASSERT_TRUE(finished) << finished.error().to_string();
}

// What a source gives until it ends or fails.
struct Played {
  std::vector<Frame> frames;
  std::string error;
  ErrorKind kind = ErrorKind::kInternal;
};

inline Played play(Source& source, size_t limit = SIZE_MAX, bool keep = true) {
  Played played;
  while (played.frames.size() < limit) {
    auto frame = source.next();
    if (!frame) {
      played.error = frame.error().to_string();
      played.kind = frame.error().kind();
      break;
    }
    if (!*frame) break;
    if (!keep) (*frame)->picture.reset();
    played.frames.push_back(std::move(**frame));
  }
  return played;
}

// Lines that a command prints; empty where it cannot be run.
inline std::vector<std::string> output_of(const std::string& command) {
  std::vector<std::string> lines;
  FILE* pipe = ::popen((command + " 2>/dev/null").c_str(), "r");
  if (pipe == nullptr) return lines;
  std::array<char, 4096> line;
  while (std::fgets(line.data(), line.size(), pipe) != nullptr) lines.emplace_back(line.data());
  ::pclose(pipe);
  return lines;
}

inline bool has_command(const std::string& name) {
  return !output_of("command -v " + name).empty();
}

// The pixels without padding, plane after plane, as `ffmpeg -f rawvideo` writes them.
inline std::string raw_pixels(const AVFrame& picture) {
  const auto format = static_cast<AVPixelFormat>(picture.format);
  std::string pixels(static_cast<size_t>(av_image_get_buffer_size(format, picture.width, picture.height, 1)), '\0');
  av_image_copy_to_buffer(reinterpret_cast<uint8_t*>(pixels.data()), static_cast<int>(pixels.size()), picture.data,
                          picture.linesize, format, picture.width, picture.height, 1);
  return pixels;
}

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string read_text(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace strobe::media
