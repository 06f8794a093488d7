#include <chrono>
#include <thread>

#include "media/ffmpeg/sources.h"
#include "media/ffmpeg/video_input.h"

namespace strobe::media {
namespace {

using Clock = std::chrono::steady_clock;

class LiveSource : public Source {
 public:
  LiveSource(std::string name, InputKind kind, const SourceOptions& options, std::unique_ptr<VideoInput> input)
      : name_(std::move(name)), kind_(kind), options_(options), input_(std::move(input)), info_(input_->info()) {}

  const SourceInfo& info() const override { return info_; }
  int64_t damaged() const override { return damaged_before_ + (input_ ? input_->damaged() : 0); }
  int64_t reconnected() const override { return reconnected_; }

  Result<std::optional<Frame>> next() override {
    while (!stopped()) {
      auto picture = input_->next();
      if (picture && *picture) {
        attempts_ = 0;
        const auto now = Clock::now();
        if (index_ == 0) first_arrival_ = now;
        return std::optional(make_frame(std::move(*picture), index_++, seconds_between(first_arrival_, now)));
      }
      if (picture && (stopped() || input_->has_known_end())) break;
      Error why = picture ? io_error("the stream ended").at(name_) : std::move(picture).error();
      STROBE_TRY(reconnect(std::move(why)));
    }
    return std::optional<Frame>();
  }

 private:
  static double seconds_between(Clock::time_point from, Clock::time_point to) {
    return std::chrono::duration<double>(to - from).count();
  }
  bool stopped() const { return options_.stop != nullptr && options_.stop->load(); }

  // Opens the source again, as often as the options allow since the last frame; fails with the last reason.
  Result<void> reconnect(Error why) {
    damaged_before_ += input_->damaged();
    input_.reset();
    while (!stopped()) {
      if (attempts_ >= options_.reconnects) {
        const std::string tries = attempts_ == 0 ? "" : " and " + std::to_string(attempts_) + " tries to connect again";
        return io_error("lost after " + std::to_string(index_) + " frames" + tries + ": " + why.message()).at(name_);
      }
      pause(reconnect_pause_s(++attempts_));
      auto opened = VideoInput::open(name_, kind_, options_);
      if (opened) {
        input_ = std::move(*opened);
        ++reconnected_;
        return {};
      }
      why = std::move(opened).error();
    }
    return {};
  }

  void pause(double seconds) const {
    const auto start = Clock::now();
    while (!stopped() && seconds_between(start, Clock::now()) < seconds) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }

  std::string name_;
  InputKind kind_;
  SourceOptions options_;
  std::unique_ptr<VideoInput> input_;  // null only once stopped or lost
  SourceInfo info_;
  Clock::time_point first_arrival_;
  int64_t index_ = 0;
  int64_t damaged_before_ = 0;
  int64_t reconnected_ = 0;
  int attempts_ = 0;  // in a row, without a frame
};

}  // namespace

Result<std::unique_ptr<Source>> open_live_source(const std::string& input, InputKind kind,
                                                 const SourceOptions& options) {
  STROBE_ASSIGN(auto opened, VideoInput::open(input, kind, options));
  return std::unique_ptr<Source>(std::make_unique<LiveSource>(input, kind, options, std::move(opened)));
}

}  // namespace strobe::media
