#include "tenants/prediction_file.h"

#include <nlohmann/json.hpp>

#include "tenants/board.h"

namespace strobe::tenants {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kFlush_ns = 1'000'000'000;

Json on_picture(const PictureBox& box) {
  return {{"label", box.label}, {"score", box.score}, {"x", box.x}, {"y", box.y}, {"w", box.width}, {"h", box.height}};
}

Json in_space(const SpaceBox& box, const sensors::Pose& sensor) {
  const sensors::Pose pose = sensor * box.pose;
  const sensors::Vector3 velocity = sensor.rotation.rotate({box.velocity[0], box.velocity[1], 0});
  const sensors::Quaternion turn = pose.rotation.normalised();
  return {{"label", box.label},
          {"score", box.score},
          {"translation", {pose.translation.x, pose.translation.y, pose.translation.z}},
          {"size", {box.width, box.length, box.height}},
          {"rotation", {turn.w, turn.x, turn.y, turn.z}},
          {"velocity", {velocity.x, velocity.y}}};
}

}  // namespace

Result<PredictionFile> PredictionFile::create(const std::filesystem::path& path, std::string model_type) {
  PredictionFile made;
  made.path_ = path;
  made.model_type_ = std::move(model_type);
  made.file_.reset(std::fopen(path.c_str(), "we"));
  if (!made.file_) return io_error_errno(path.string());
  return made;
}

Result<void> PredictionFile::add(int64_t frame, const SensorFrame& input, const Prediction& prediction) {
  Json line = {{"frame", frame}, {"token", input.token}, {"model_type", model_type_}};
  line["picture_boxes"] = Json::array();
  for (const PictureBox& box : prediction.picture_boxes) line["picture_boxes"].push_back(on_picture(box));
  line["space_boxes"] = Json::array();
  for (const SpaceBox& box : prediction.space_boxes)
    line["space_boxes"].push_back(in_space(box, input.pose.value_or(sensors::Pose{})));
  line["frame_of_reference"] = input.pose ? "global" : "sensor";
  const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) return io_error_errno(path_.string());
  if (const int64_t now = monotonic_ns(); now - flushed_ns_ > kFlush_ns) {
    flushed_ns_ = now;
    if (std::fflush(file_.get()) != 0) return io_error_errno(path_.string());
  }
  return {};
}

Result<void> PredictionFile::close() {
  if (std::fclose(file_.release()) != 0) return io_error_errno(path_.string());
  return {};
}

}  // namespace strobe::tenants
