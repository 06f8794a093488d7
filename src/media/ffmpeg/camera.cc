#include "media/ffmpeg/camera.h"

extern "C" {
#include <libavdevice/avdevice.h>
#include <libavutil/macros.h>
}

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "media/common/natural_order.h"

namespace strobe::media {
namespace {

constexpr const char* kDeviceLibrary = "libavdevice.so." AV_STRINGIFY(LIBAVDEVICE_VERSION_MAJOR);

std::string known_cameras() {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator it("/dev", failed), end; !failed && it != end; it.increment(failed)) {
    if (it->path().filename().string().starts_with("video")) names.push_back(it->path().string());
  }
  std::sort(names.begin(), names.end(), natural_less);
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

}  // namespace

Result<const AVInputFormat*> camera_format(const std::string& device) {
  std::error_code ignored;
  if (!std::filesystem::exists(device, ignored)) {
    return not_found("no such camera; this machine has: " + known_cameras());
  }
  static void* const library = ::dlopen(kDeviceLibrary, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return unsupported(std::string("cameras need ") + kDeviceLibrary + " (apt install ffmpeg)");
  using RegisterAll = void (*)();
  if (auto register_all = reinterpret_cast<RegisterAll>(::dlsym(library, "avdevice_register_all"))) register_all();
  const AVInputFormat* format = av_find_input_format("v4l2");
  if (format == nullptr) return unsupported("this FFmpeg was built without V4L2 cameras");
  return format;
}

Error camera_error(int code) {
  if (code == AVERROR(EACCES) || code == AVERROR(EPERM)) {
    return io_error("no permission for this camera (is the user in the group video?)");
  }
  if (code == AVERROR(EBUSY)) return io_error("the camera is in use by another program");
  return bad_data("not a camera that gives pictures: " + error_text(code));
}

}  // namespace strobe::media
