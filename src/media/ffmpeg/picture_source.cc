#include <vector>

#include "media/common/picture_files.h"
#include "media/ffmpeg/sources.h"
#include "media/ffmpeg/video_input.h"

namespace strobe::media {
namespace {

struct Picture {
  AVFramePtr pixels;
  SourceInfo info;
  int64_t damaged = 0;
};

Result<Picture> read_picture(const std::string& path, const SourceOptions& options) {
  SourceOptions alone = options;
  alone.decode_threads = 1;  // a second picture to work on at the same time never comes
  alone.pictures_in_flight = 0;
  STROBE_ASSIGN(auto input, VideoInput::open(path, InputKind::kPicture, alone));
  STROBE_ASSIGN(AVFramePtr pixels, input->next());
  if (!pixels) return bad_data("not a picture: nothing in it can be decoded").at(path);
  return Picture{std::move(pixels), input->info(), input->damaged()};
}

class PictureSource : public Source {
 public:
  PictureSource(std::vector<std::string> paths, SourceInfo info, const SourceOptions& options)
      : paths_(std::move(paths)), info_(std::move(info)), options_(options) {}

  const SourceInfo& info() const override { return info_; }
  int64_t damaged() const override { return damaged_; }

  // Reads the first picture that can be read, so that info() knows its size.
  Result<void> start() {
    while (!waiting_ && position_ < paths_.size()) {
      auto picture = read_picture(paths_[position_], options_);
      if (!picture && paths_.size() == 1) return std::move(picture).error();
      ++position_;
      if (!picture) {
        ++damaged_;
        continue;
      }
      info_.width = picture->pixels->width;
      info_.height = picture->pixels->height;
      info_.codec = picture->info.codec;
      info_.pixel_format = picture->info.pixel_format;
      damaged_ += picture->damaged;
      waiting_ = std::move(picture->pixels);
    }
    if (!waiting_) return bad_data("none of its " + std::to_string(paths_.size()) + " pictures can be decoded");
    return {};
  }

  Result<std::optional<Frame>> next() override {
    AVFramePtr pixels = std::move(waiting_);
    while (!pixels && position_ < paths_.size()) {
      if (options_.stop != nullptr && options_.stop->load()) return std::optional<Frame>();
      const std::string& path = paths_[position_++];
      auto picture = read_picture(path, options_);
      if (!picture) {
        ++damaged_;
        continue;
      }
      damaged_ += picture->damaged;
      pixels = std::move(picture->pixels);
    }
    if (!pixels) return std::optional<Frame>();
    const double time_s = info_.fps > 0 ? static_cast<double>(index_) / info_.fps : 0;
    return std::optional(make_frame(std::move(pixels), index_++, time_s));
  }

 private:
  std::vector<std::string> paths_;
  SourceInfo info_;
  SourceOptions options_;
  AVFramePtr waiting_;
  size_t position_ = 0;
  int64_t index_ = 0;
  int64_t damaged_ = 0;
};

}  // namespace

Result<std::unique_ptr<Source>> open_picture_source(const std::string& input, InputKind kind,
                                                    const SourceOptions& options) {
  std::vector<std::string> paths = {input};
  SourceInfo info;
  info.kind = "picture";
  if (kind == InputKind::kFolder) {
    STROBE_ASSIGN(paths, list_pictures(input));
    info.kind = "folder";
    info.fps = options.picture_fps;
  }
  info.frames = static_cast<int64_t>(paths.size());
  auto source = std::make_unique<PictureSource>(std::move(paths), std::move(info), options);
  if (auto started = source->start(); !started) {
    if (kind == InputKind::kFolder) return std::move(started).error().at(input);
    return std::move(started).error();
  }
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace strobe::media
