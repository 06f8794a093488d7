#include "media/common/input_kind.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>

namespace strobe::media {
namespace {

constexpr std::array kPictureExtensions = {".jpg", ".jpeg", ".png", ".bmp", ".tif", ".tiff", ".webp",
                                           ".ppm", ".pgm",  ".pnm", ".tga", ".jp2", ".exr"};

std::string lower(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

// "rtsp" of "rtsp://host/x", empty for a path.
std::string scheme(const std::string& input) {
  const size_t end = input.find("://");
  if (end == std::string::npos) return "";
  const std::string name = lower(input.substr(0, end));
  const bool valid = std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '+'; });
  return valid ? name : "";
}

}  // namespace

bool has_picture_extension(const std::string& path) {
  const std::string extension = lower(std::filesystem::path(path).extension().string());
  return std::find(kPictureExtensions.begin(), kPictureExtensions.end(), extension) != kPictureExtensions.end();
}

InputKind input_kind(const std::string& input) {
  const std::string protocol = scheme(input);
  if (protocol == "rtsp" || protocol == "rtsps") return InputKind::kRtsp;
  if (protocol == "http" || protocol == "https" || protocol == "ftp" || protocol == "sftp") return InputKind::kFile;
  if (protocol == "synthetic") return InputKind::kSynthetic;
  if (!protocol.empty() && protocol != "file") return InputKind::kStream;
  const std::string path = protocol.empty() ? input : input.substr(7);
  if (path.starts_with("/dev/video")) return InputKind::kCamera;
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return InputKind::kFolder;
  return has_picture_extension(path) ? InputKind::kPicture : InputKind::kFile;
}

bool is_live(InputKind kind) {
  return kind == InputKind::kCamera || kind == InputKind::kRtsp || kind == InputKind::kStream;
}

std::string as_url(const std::string& input) {
  const std::string protocol = scheme(input);
  if (protocol == "file") return "file:" + input.substr(7);
  if (!protocol.empty() || input.starts_with("/dev/video")) return input;
  return "file:" + input;
}

std::vector<std::pair<std::string, std::string>> demuxer_options(InputKind kind, const SourceOptions& options) {
  switch (kind) {
    case InputKind::kRtsp:
      // Only pictures are asked for; a reorder queue of UDP packets may hold them for at most 0.2 s.
      return {{"rtsp_transport", options.rtsp_transport == SourceOptions::RtspTransport::kTcp ? "tcp" : "udp"},
              {"allowed_media_types", "video"},
              {"max_delay", "200000"},
              {"timeout", std::to_string(std::llround(options.timeout_s * 1e6))}};
    case InputKind::kPicture:
      return {{"pattern_type", "none"}};  // a '%' in the name is a '%'
    case InputKind::kCamera:
    case InputKind::kStream:
    case InputKind::kFile:
    case InputKind::kFolder:
    case InputKind::kSynthetic:
      return {};
  }
  return {};
}

double reconnect_pause_s(int attempt) {
  return std::min(8.0, 0.25 * std::pow(2.0, attempt - 1));
}

}  // namespace strobe::media
