// What an input string means, and which options FFmpeg's demuxer gets for it. Knows no FFmpeg, so that it can be tested
// without cameras and servers.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "media/source.h"

namespace strobe::media {

enum class InputKind {
  kFile,     // a local path, or http(s) and the like
  kPicture,  // a local path with the extension of a picture format
  kFolder,
  kCamera,  // /dev/videoN
  kRtsp,
  kStream,     // another live protocol: udp, rtp, srt, rtmp, ...
  kSynthetic,  // made by rule (synthetic.h)
};

InputKind input_kind(const std::string& input);
bool is_live(InputKind kind);
bool has_picture_extension(const std::string& path);

// A path as a URL that FFmpeg takes literally, even where it holds a colon; URLs stay as they are, "file://" is cut.
std::string as_url(const std::string& input);

// Options of FFmpeg's demuxers and protocols, by their FFmpeg 5 names.
std::vector<std::pair<std::string, std::string>> demuxer_options(InputKind kind, const SourceOptions& options);

// The pause before the n-th try (from 1) to open a live source again: 0.25 s, doubled each time, at most 8 s.
double reconnect_pause_s(int attempt);

}  // namespace strobe::media
