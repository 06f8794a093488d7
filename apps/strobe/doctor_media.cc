#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "base/file.h"
#include "base/plugin.h"
#include "doctor_checks.h"
#include "doctor_folder.h"
#include "in_child.h"
#include "media/backend.h"

namespace strobe::app {

namespace fs = std::filesystem;

namespace {

constexpr int kTimeout_s = 60;
constexpr int kWidth = 160, kHeight = 120;

Result<media::Frame> test_picture(const fs::path& folder) {
  std::string pixels = "P6\n" + std::to_string(kWidth) + " " + std::to_string(kHeight) + "\n255\n";
  for (int i = 0; i < kWidth * kHeight; ++i) pixels += {static_cast<char>(i % kWidth), static_cast<char>(96), '@'};
  STROBE_TRY(write_file(folder / "picture.ppm", pixels));
  STROBE_ASSIGN(const auto source, media::open_source((folder / "picture.ppm").string(), {}));
  STROBE_ASSIGN(auto frame, source->next());
  if (!frame) return bad_data("the test picture has no frame");
  return *frame;
}

Result<void> encode_and_decode(const fs::path& folder) {
  constexpr int kFrames = 5;
  STROBE_ASSIGN(media::Frame frame, test_picture(folder));
  STROBE_ASSIGN(const auto writer, media::open_video_writer(folder / "video.mp4", kWidth, kHeight, {}));
  for (int i = 0; i < kFrames; ++i) {
    frame.index = i;
    frame.time_s = i / 30.0;
    STROBE_TRY(writer->write(frame));
  }
  STROBE_TRY(writer->finish());
  STROBE_ASSIGN(const auto source, media::open_source((folder / "video.mp4").string(), {}));
  int frames = 0;
  for (;; ++frames) {
    STROBE_ASSIGN(const auto next, source->next());
    if (!next) break;
  }
  if (frames != kFrames)
    return engine_error("a video of " + std::to_string(kFrames) + " frames came back with " + std::to_string(frames));
  return {};
}

// Whether a label changes the picture.
Result<bool> draws_text(const fs::path& folder) {
  STROBE_ASSIGN(const media::Frame frame, test_picture(folder));
  std::string pictures[2];
  for (const bool with_text : {false, true}) {
    const media::Annotation box{40, 40, 80, 50, with_text ? "Ag" : "", 0x2050c0};
    STROBE_ASSIGN(const media::Frame drawn, media::draw(frame, std::span(&box, 1)));
    const fs::path path = folder / (with_text ? "text.png" : "box.png");
    STROBE_TRY(media::write_picture(path, drawn));
    STROBE_ASSIGN(pictures[with_text ? 1 : 0], read_file(path));
  }
  return pictures[0] != pictures[1];
}

constexpr const char* kRemedy =
    "apt install libavformat-dev libavcodec-dev libswscale-dev libavdevice-dev and build again";

// Whether FFmpeg was left out of the build, and what stands in for it is there.
bool is_plain() {
  bool ffmpeg = false, plain = false;
  for (const fs::path& place : plugin_folders()) {
    std::error_code ignored;
    ffmpeg = ffmpeg || fs::exists(place / "libstrobe_media.so", ignored);
    plain = plain || fs::exists(place / "libstrobe_media_plain.so", ignored);
  }
  return plain && !ffmpeg;
}

// A synthetic picture is read, drawn on and brought into a network's form.
Result<void> try_plain() {
  STROBE_ASSIGN(const auto source, media::open_source("synthetic://160x120/1", {}));
  STROBE_ASSIGN(const auto frame, source->next());
  if (!frame) return engine_error("a synthetic source has no frame");
  const media::Annotation box{40, 40, 80, 50, "", 0x2050c0};
  STROBE_ASSIGN(const media::Frame drawn, media::draw(*frame, std::span(&box, 1)));
  media::InputFormat format;
  format.width = format.height = 32;
  std::vector<float> input(3UL * 32 * 32, -1.0F);
  STROBE_TRY(media::preprocess(drawn, format, input.data()));
  for (const float value : input)
    if (!(value >= 0 && value <= 1)) return engine_error("a synthetic picture has values outside of 0 to 1");
  return {};
}

Check check_without_ffmpeg() {
  const auto answer = in_child(
      []() -> std::string {
        const auto works = try_plain();
        return works ? "+" : works.error().to_string();
      },
      kTimeout_s);
  if (answer && *answer == "+")
    return {"media", Health::kMissing, false, "built without FFmpeg: synthetic and PPM pictures only", kRemedy};
  return {"media", Health::kBroken, true, answer ? *answer : answer.error().to_string(), kRemedy};
}

Check check_plugin(const fs::path& folder) {
  Check check{"media", Health::kWorks, true, "", ""};
  const auto answer = in_child(
      [&folder]() -> std::string {
        const auto backend = media::backend();
        if (!backend) return "-" + backend.error().to_string();
        const auto works = encode_and_decode(folder);
        return works ? "+" + (*backend)->version() + " decodes and encodes a video" : "-" + works.error().to_string();
      },
      kTimeout_s);
  check.detail = answer ? answer->substr(1) : answer.error().to_string();
  if (answer && answer->front() == '+') return check;
  check.health = Health::kBroken;
  check.remedy = kRemedy;
  return check;
}

Check check_font(const fs::path& folder) {
  Check check{"label font", Health::kWorks, false, "labels are drawn beside boxes", ""};
  const auto answer = in_child(
      [&folder]() -> std::string {
        const auto text = draws_text(folder);
        return !text ? text.error().to_string() : *text ? "+" : "no font was found: boxes are drawn without labels";
      },
      kTimeout_s);
  if (answer && *answer == "+") return check;
  check.health = Health::kMissing;
  check.detail = answer ? *answer : answer.error().to_string();
  check.remedy = "apt install fonts-dejavu-core, or set STROBE_FONT to a .ttf file";
  return check;
}

Check check_cameras() {
  std::vector<std::string> readable, closed;
  for (int i = 0; i < 64; ++i) {
    const std::string device = "/dev/video" + std::to_string(i);
    if (::access(device.c_str(), F_OK) != 0) continue;
    (::access(device.c_str(), R_OK | W_OK) == 0 ? readable : closed).push_back(device);
  }
  const auto joined = [](const std::vector<std::string>& names) {
    std::string text;
    for (const auto& name : names) text.append(text.empty() ? "" : ", ").append(name);
    return text;
  };
  if (!closed.empty())
    return {"cameras", Health::kBroken, false, joined(closed) + ": no permission",
            "add the user to the group video: sudo usermod -aG video $USER, then log in again"};
  if (readable.empty())
    return {"cameras", Health::kMissing, false, "none at /dev/video*; only needed as a live source", ""};
  return {"cameras", Health::kWorks, false, joined(readable), ""};
}

}  // namespace

std::vector<Check> check_media() {
  if (is_plain()) return {check_without_ffmpeg(), check_cameras()};
  const auto folder = doctor_folder();
  std::vector<Check> checks{folder ? check_plugin((*folder)->path()) : untried("media", true, folder.error())};
  if (checks[0].health == Health::kWorks) checks.push_back(check_font((*folder)->path()));
  checks.push_back(check_cameras());
  return checks;
}

}  // namespace strobe::app
