#include "media/ffmpeg/sources.h"
#include "media/ffmpeg/video_input.h"

namespace strobe::media {
namespace {

class FileSource : public Source {
 public:
  explicit FileSource(std::unique_ptr<VideoInput> input) : input_(std::move(input)), info_(input_->info()) {}

  const SourceInfo& info() const override { return info_; }
  int64_t damaged() const override { return input_->damaged(); }

  Result<std::optional<Frame>> next() override {
    STROBE_ASSIGN(AVFramePtr picture, input_->next());
    if (!picture) return std::optional<Frame>();
    const double by_rate = info_.fps > 0 ? static_cast<double>(index_) / info_.fps : 0;
    const std::optional<double> stamp = input_->seconds(*picture);
    if (index_ == 0) first_stamp_ = stamp.value_or(0);
    return std::optional(make_frame(std::move(picture), index_++, stamp ? *stamp - first_stamp_ : by_rate));
  }

 private:
  std::unique_ptr<VideoInput> input_;
  SourceInfo info_;
  int64_t index_ = 0;
  double first_stamp_ = 0;
};

}  // namespace

Result<std::unique_ptr<Source>> open_file_source(const std::string& input, const SourceOptions& options) {
  STROBE_ASSIGN(auto opened, VideoInput::open(input, InputKind::kFile, options));
  return std::unique_ptr<Source>(std::make_unique<FileSource>(std::move(opened)));
}

}  // namespace strobe::media
