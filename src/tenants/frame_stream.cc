#include "tenants/frame_stream.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>

#include "base/file.h"
#include "media/common/input_kind.h"
#include "media/common/picture_files.h"
#include "media/source.h"
#include "tenants/bag_stream.h"
#include "tenants/live_stream.h"
#include "tenants/sensor_stream.h"

namespace strobe::tenants {

namespace {

// Frames without content, for work that needs none.
class SyntheticStream : public FrameStream {
 public:
  int64_t size() const override { return 1; }
  SensorFrame frame(int64_t index) const override {
    SensorFrame frame;
    frame.token = fmt::format("synthetic-{}", index);
    return frame;
  }
};

// Pictures, read before the run begins.
class PictureStream : public FrameStream {
 public:
  explicit PictureStream(std::vector<SensorFrame> frames) : frames_(std::move(frames)) {}
  int64_t size() const override { return static_cast<int64_t>(frames_.size()); }
  SensorFrame frame(int64_t index) const override { return frames_[static_cast<size_t>(index) % frames_.size()]; }
  std::vector<std::string> notes() const override {
    if (frames_.size() > 1) return {};
    return {"one real picture, given again and again: a synthetic stream"};
  }

 private:
  std::vector<SensorFrame> frames_;
};

class VideoStream : public FrameStream {
 public:
  class Video : public LoopedVideo {
   public:
    explicit Video(std::string path) : path_(std::move(path)) {}
    Result<void> open() {
      STROBE_ASSIGN(source_, media::open_source(path_, {}));
      return {};
    }
    Result<media::Frame> next() override {
      for (int tries = 0; tries < 2; ++tries) {
        STROBE_ASSIGN(auto frame, source_->next());
        if (frame) return std::move(*frame);
        STROBE_TRY(open());
      }
      return bad_data("no frame can be decoded").at(path_);
    }
    media::SourceInfo info() const { return source_->info(); }

   private:
    std::string path_;
    std::unique_ptr<media::Source> source_;
  };

  explicit VideoStream(std::shared_ptr<Video> video, std::string name)
      : video_(std::move(video)), name_(std::move(name)) {}
  int64_t size() const override { return std::max<int64_t>(1, video_->info().frames); }
  SensorFrame frame(int64_t index) const override {
    SensorFrame frame;
    frame.token = fmt::format("{}-{}", name_, index);
    frame.video = video_;
    return frame;
  }

 private:
  std::shared_ptr<Video> video_;
  std::string name_;
};

Result<SensorFrame> read_picture(const std::string& path) {
  STROBE_ASSIGN(const std::string bytes, read_file(path));
  auto picture = std::make_shared<EncodedPicture>();
  picture->bytes.assign(bytes.begin(), bytes.end());
  SensorFrame frame;
  frame.token = std::filesystem::path(path).stem().string();
  frame.pictures.push_back(std::move(picture));
  return frame;
}

Result<std::unique_ptr<FrameStream>> open_media(const SourceSpec& source) {
  const media::InputKind kind = media::input_kind(source.path);
  if (kind == media::InputKind::kPicture || kind == media::InputKind::kFolder) {
    std::vector<std::string> paths = {source.path};
    if (kind == media::InputKind::kFolder) {
      STROBE_ASSIGN(paths, media::list_pictures(source.path));
    }
    if (source.most_frames > 0 && paths.size() > static_cast<size_t>(source.most_frames))
      paths.resize(static_cast<size_t>(source.most_frames));
    std::vector<SensorFrame> frames;
    for (const std::string& path : paths) {
      STROBE_ASSIGN(frames.emplace_back(), read_picture(path));
    }
    return std::unique_ptr<FrameStream>(std::make_unique<PictureStream>(std::move(frames)));
  }
  auto video = std::make_shared<VideoStream::Video>(source.path);
  STROBE_TRY(video->open());
  return std::unique_ptr<FrameStream>(
      std::make_unique<VideoStream>(std::move(video), std::filesystem::path(source.path).stem().string()));
}

// What the kind of the source alone tells.
Result<void> check_kind(const SourceSpec& source, const StreamNeeds& needs) {
  if (!source.weather.empty() && !needs.points)
    return usage_error("weather falls on LiDAR sweeps, which this tenant's model does not take");
  switch (source.kind) {
    case SourceSpec::Kind::kSynthetic:
      if (needs.pictures || needs.points) return usage_error("a synthetic source has no pictures and no sweeps");
      return {};
    case SourceSpec::Kind::kMedia:
      if (needs.points) return unsupported("no LiDAR sweeps in it").at(source.path);
      return {};
    case SourceSpec::Kind::kSweeps:
      if (needs.pictures) return unsupported("only LiDAR sweeps, and no pictures, in it").at(source.path);
      return {};
    case SourceSpec::Kind::kRos2:
      if (!source.weather.empty())
        return usage_error("weather falls before the run begins: not on a topic").at(source.path);
      return {};
    case SourceSpec::Kind::kNuscenes:
    case SourceSpec::Kind::kMcap:
      return {};
  }
  return internal_error("a source of no kind");
}

}  // namespace

Result<void> check_source(const SourceSpec& source, const StreamNeeds& needs) {
  const bool is_file = source.kind != SourceSpec::Kind::kSynthetic && source.kind != SourceSpec::Kind::kRos2 &&
                       source.path.find("://") == std::string::npos;
  std::error_code ignored;
  if (is_file && !std::filesystem::exists(source.path, ignored)) return not_found("no such file").at(source.path);
  STROBE_TRY(check_kind(source, needs));
  // What is opened at once is; not a camera or a server, which may be there later and for one reader alone.
  const media::InputKind kind = media::input_kind(source.path);
  if (source.kind == SourceSpec::Kind::kMedia &&
      ((is_file && kind == media::InputKind::kFile) || kind == media::InputKind::kSynthetic))
    STROBE_TRY(VideoStream::Video(source.path).open());
  if (source.kind == SourceSpec::Kind::kNuscenes && (needs.points || needs.pictures))
    return check_nuscenes(source, needs);
  return {};
}

Result<std::unique_ptr<FrameStream>> open_stream(const SourceSpec& source, const StreamNeeds& needs, uint64_t seed) {
  STROBE_TRY(check_kind(source, needs));
  switch (source.kind) {
    case SourceSpec::Kind::kSynthetic:
      return std::unique_ptr<FrameStream>(std::make_unique<SyntheticStream>());
    case SourceSpec::Kind::kMedia:
      return open_media(source);
    case SourceSpec::Kind::kSweeps:
      return open_sweeps(source, seed);
    case SourceSpec::Kind::kNuscenes:
      return open_nuscenes(source, needs, seed);
    case SourceSpec::Kind::kMcap:
      return open_bag(source, needs, seed);
    case SourceSpec::Kind::kRos2: {
      constexpr std::chrono::seconds kFirst(20);
      return LiveStream::open(source, needs, kFirst);
    }
  }
  return internal_error("a source of no kind");
}

}  // namespace strobe::tenants
