#include "tenants/stream_frames.h"

#include <fmt/format.h>

namespace strobe::tenants {

namespace {

constexpr size_t kMostBytes = size_t{2} << 30;  // of a stream in memory

class SensorStream : public FrameStream {
 public:
  SensorStream(std::vector<SensorFrame> frames, std::vector<std::string> notes)
      : frames_(std::move(frames)), notes_(std::move(notes)) {
    if (frames_.size() == 1) notes_.emplace_back("one real frame, given again and again: a synthetic stream");
  }
  int64_t size() const override { return static_cast<int64_t>(frames_.size()); }
  SensorFrame frame(int64_t index) const override { return frames_[static_cast<size_t>(index) % frames_.size()]; }
  std::vector<std::string> notes() const override { return notes_; }

 private:
  std::vector<SensorFrame> frames_;
  std::vector<std::string> notes_;
};

}  // namespace

Result<void> StreamWeather::fall_on(PointCloud& cloud, uint64_t frame) {
  if (source_.weather.empty()) return {};
  sensors::PointSweep sweep{cloud.values, cloud.columns, cloud.full_intensity};
  if (!weather_) STROBE_TRY(create(sweep));
  std::vector<sensors::PointFate> fates(sweep.count());
  STROBE_ASSIGN(const sensors::WeatherSummary summary, weather_->apply(sweep, frame, 2, fates));
  (void)summary;
  cloud.values.resize(sensors::remove_lost(sweep, fates));
  return {};
}

std::vector<std::string> StreamWeather::notes() const {
  if (source_.weather.empty()) return {};
  return {fmt::format("{} of {:g} mm/h is computed (docs/weather.md), in clear air nothing is lost", source_.weather,
                      source_.weather_rate)};
}

Result<void> StreamWeather::create(const sensors::PointSweep& sweep) {
  sensors::WeatherOptions options;
  options.kind = source_.weather == "snow"  ? sensors::WeatherKind::kSnow
                 : source_.weather == "fog" ? sensors::WeatherKind::kFog
                                            : sensors::WeatherKind::kRain;
  options.rate_mm_h = source_.weather_rate;
  options.rules = sensors::WeatherRules::kPhysical;
  options.density = sensors::Density::kLiterature;
  if (options.kind == sensors::WeatherKind::kFog) options.mode = sensors::WeatherMode::kMean;
  options.seed = seed_;
  STROBE_ASSIGN(options, sensors::calibrated(options, sweep));
  STROBE_ASSIGN(sensors::Weather made, sensors::Weather::create(options));
  weather_.emplace(std::move(made));
  return {};
}

Result<void> FrameList::add(SensorFrame frame) {
  if (frame.points) bytes_ += frame.points->values.size() * sizeof(float);
  for (const auto& picture : frame.pictures) bytes_ += picture->bytes.size();
  if (bytes_ > kMostBytes)
    return usage_error(fmt::format("more than {} GiB of frames: say how many with `frames:`", kMostBytes >> 30))
        .at(source_.path);
  frames_.push_back(std::move(frame));
  return {};
}

Result<std::unique_ptr<FrameStream>> FrameList::stream(std::vector<std::string> notes) {
  if (frames_.empty()) return not_found("no frame that the model could take").at(source_.path);
  return std::unique_ptr<FrameStream>(std::make_unique<SensorStream>(std::move(frames_), std::move(notes)));
}

models::Camera camera_at(const sensors::Matrix3& intrinsic, int width, int height, const sensors::Pose& place) {
  models::Camera camera;
  const sensors::Matrix3 turn = place.rotation.matrix();
  const double translation[3] = {place.translation.x, place.translation.y, place.translation.z};
  for (size_t row = 0; row < 3; ++row) {
    for (size_t column = 0; column < 3; ++column) {
      camera.intrinsic[3 * row + column] = static_cast<float>(intrinsic[row][column]);
      camera.to_vehicle[4 * row + column] = static_cast<float>(turn[row][column]);
    }
    camera.to_vehicle[4 * row + 3] = static_cast<float>(translation[row]);
  }
  camera.width = width;
  camera.height = height;
  return camera;
}

}  // namespace strobe::tenants
