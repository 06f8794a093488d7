#include "media/plain/sources.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/file.h"
#include "media/common/input_kind.h"
#include "media/common/picture_files.h"
#include "media/common/synthetic.h"

namespace strobe::media {
namespace {

Result<std::shared_ptr<const RgbPicture>> read_ppm(const std::string& path) {
  auto bytes = read_file(path);
  if (!bytes) return std::move(bytes).error();
  auto picture = parse_ppm(*bytes);
  if (!picture) return std::move(picture).error().at(path);
  return std::shared_ptr<const RgbPicture>(std::make_shared<RgbPicture>(std::move(*picture)));
}

class PaintedSource : public SyntheticSource {
 public:
  using SyntheticSource::SyntheticSource;

 protected:
  Result<Frame> painted(int64_t index, double time_s) override {
    auto picture = std::make_shared<RgbPicture>();
    picture->width = info().width;
    picture->height = info().height;
    picture->rgb.resize(picture->stride() * static_cast<size_t>(picture->height));
    paint_synthetic(index, picture->width, picture->height, picture->rgb.data(), picture->stride());
    return frame_of(std::move(picture), index, time_s);
  }
};

// One file, or those of a folder; a damaged one of several is counted and left out.
class PpmSource : public Source {
 public:
  PpmSource(std::vector<std::string> paths, SourceInfo info, const std::atomic<bool>* stop)
      : paths_(std::move(paths)), info_(std::move(info)), stop_(stop) {}

  const SourceInfo& info() const override { return info_; }
  int64_t damaged() const override { return damaged_; }

  // Reads the first one, so that info() knows the size.
  Result<void> start() {
    while (!waiting_ && position_ < paths_.size()) {
      auto picture = read_ppm(paths_[position_++]);
      if (!picture && paths_.size() == 1) return std::move(picture).error();
      if (!picture) {
        ++damaged_;
        continue;
      }
      waiting_ = std::move(*picture);
    }
    if (!waiting_) return bad_data("none of its " + std::to_string(paths_.size()) + " pictures can be read");
    info_.width = waiting_->width;
    info_.height = waiting_->height;
    return {};
  }

  Result<std::optional<Frame>> next() override {
    std::shared_ptr<const RgbPicture> picture = std::move(waiting_);
    waiting_.reset();
    while (!picture && position_ < paths_.size()) {
      if (stop_ && stop_->load()) return std::optional<Frame>();
      auto read = read_ppm(paths_[position_++]);
      if (read)
        picture = std::move(*read);
      else
        ++damaged_;
    }
    if (!picture) return std::optional<Frame>();
    const double time_s = info_.fps > 0 ? static_cast<double>(index_) / info_.fps : 0;
    return std::optional(frame_of(std::move(picture), index_++, time_s));
  }

 private:
  std::vector<std::string> paths_;
  SourceInfo info_;
  const std::atomic<bool>* stop_;
  std::shared_ptr<const RgbPicture> waiting_;
  size_t position_ = 0;
  int64_t index_ = 0, damaged_ = 0;
};

// Of "file:///folder/a.ppm" the path.
std::string as_path(const std::string& input) {
  constexpr std::string_view kFile = "file://";
  return input.starts_with(kFile) ? input.substr(kFile.size()) : input;
}

bool is_ppm(const std::string& path) {
  return path.ends_with(".ppm") || path.ends_with(".PPM");
}

Result<std::unique_ptr<Source>> open_ppm(std::vector<std::string> paths, const std::string& kind, double fps,
                                         const SourceOptions& options) {
  SourceInfo info;
  info.kind = kind;
  info.codec = "ppm";
  info.pixel_format = "rgb24";
  info.fps = fps;
  info.frames = static_cast<int64_t>(paths.size());
  auto source = std::make_unique<PpmSource>(std::move(paths), std::move(info), options.stop);
  STROBE_TRY(source->start());
  return std::unique_ptr<Source>(std::move(source));
}

}  // namespace

Error needs_ffmpeg(const std::string& what) {
  return unsupported(what +
                     " needs FFmpeg, which is not built in: install libavformat-dev libavcodec-dev libavutil-dev "
                     "libswscale-dev libavdevice-dev libfreetype-dev and build again");
}

Result<std::unique_ptr<Source>> open_plain_source(const std::string& input, const SourceOptions& options) {
  switch (input_kind(input)) {
    case InputKind::kSynthetic: {
      STROBE_ASSIGN(SourceInfo info, parse_synthetic(input));
      return std::unique_ptr<Source>(std::make_unique<PaintedSource>(std::move(info), options.stop));
    }
    case InputKind::kFolder: {
      STROBE_ASSIGN(std::vector<std::string> paths, list_pictures(as_path(input)));
      std::erase_if(paths, [](const std::string& path) { return !is_ppm(path); });
      if (paths.empty()) return needs_ffmpeg(input + ": a folder without .ppm pictures");
      auto source = open_ppm(std::move(paths), "folder", options.picture_fps, options);
      if (!source) return std::move(source).error().at(input);
      return source;
    }
    case InputKind::kPicture:
      if (is_ppm(input)) return open_ppm({as_path(input)}, "picture", 0, options);
      [[fallthrough]];
    default: {
      std::error_code ignored;
      if (!is_live(input_kind(input)) && input.find("://") == std::string::npos &&
          !std::filesystem::exists(input, ignored))
        return not_found("no such file").at(input);
      return needs_ffmpeg(input + ": reading this");
    }
  }
}

}  // namespace strobe::media
