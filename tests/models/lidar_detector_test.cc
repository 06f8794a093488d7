#include "models/lidar_detector.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>

#include "base/file.h"
#include "models/cost.h"
#include "models/fusion_detector.h"
#include "models/lidar_networks.h"
#include "models/monocular3d.h"
#include "models/rotated_iou.h"
#include "support/test_data.h"

namespace strobe::models {
namespace {

using testing::HasSubstr;

Camera front_camera() {
  Camera camera;
  camera.width = 1600;
  camera.height = 900;
  camera.intrinsic = {1266, 0, 816, 0, 1266, 491, 0, 0, 1};
  camera.to_vehicle = {0, 0, 1, 1.7F, -1, 0, 0, 0, 0, -1, 0, -0.3F};
  return camera;
}

TEST(LidarDetectors, HaveTheShapesOfTheirPapers) {
  const auto described = [](const char* name) {
    const auto detector = LidarDetector::open(name, {});
    if (!detector) return detector.error().to_string();
    std::string text;
    for (const auto& part : (*detector)->parts()) {
      EXPECT_TRUE(validate(*part));
      text += part->input_shape().to_string() + " ->";
      for (const LayerId id : part->outputs) text += " " + part->layer(id).output.to_string();
      text += "; ";
    }
    EXPECT_FALSE((*detector)->trained());
    return text;
  };
  EXPECT_EQ(described("pointpillars"), "9x32x12000 -> 64x1x12000; 64x496x432 -> 18x248x216 42x248x216 12x248x216; ");
  EXPECT_EQ(described("pointpillars-nuscenes"),
            "9x20x30000 -> 64x1x30000; 64x400x400 -> 140x200x200 126x200x200 28x200x200; ");
  EXPECT_EQ(
      described("centerpoint-pillar"),
      "9x20x30000 -> 64x1x30000; 64x512x512 -> 11x128x128 12x128x128 12x128x128 11x128x128 12x128x128 12x128x128; ");
  // Published: 4.83 M. By hand: 704 of the pillar net, 4,207,616 of blocks, 598,784 of upsampling, 27,720 of the head.
  const auto detector = LidarDetector::open("pointpillars", {});
  int64_t parameters = 0;
  for (const auto& part : (*detector)->parts()) parameters += graph_cost(*part).parameters;
  EXPECT_EQ(parameters, 4'834'824);
}

TEST(LidarDetectors, RunFromPointsToBoxesWithWhatNetworksMightSay) {
  for (const std::string& name : lidar_detector_names()) {
    LidarOptions options;
    options.max_pillars = 500;
    const auto detector = LidarDetector::open(name, options);
    ASSERT_TRUE(detector) << name;
    LidarDetector::Work work = (*detector)->make_work();
    std::mt19937 random(1);
    std::vector<float> points;
    for (int i = 0; i < 5000; ++i) points.push_back(std::uniform_real_distribution<float>(-2, 40)(random));
    (*detector)->voxelize(points, 4, work);
    EXPECT_GT(work.pillars.count(), 0);
    for (float& value : work.pillar_features) value = 1;
    (*detector)->scatter(work);
    const auto drawn = std::count(work.canvas.begin(), work.canvas.end(), 1.0F);
    EXPECT_EQ(drawn, work.pillars.count() * (*detector)->parts()[1]->input_shape().channels);
    for (auto& output : work.outputs)
      for (float& value : output) value = std::uniform_real_distribution<float>(-6, 3)(random);
    const auto boxes = (*detector)->decode(work);
    EXPECT_FALSE(boxes.empty());
    EXPECT_LE(boxes.size(), 500U);
    for (size_t i = 0; i < boxes.size(); ++i) {
      EXPECT_LT(static_cast<size_t>(boxes[i].class_id), (*detector)->labels().size());
      EXPECT_GT(boxes[i].length, 0);
      EXPECT_GE(boxes[i > 0 ? i - 1 : 0].score, boxes[i].score);
    }
  }
}

TEST(LidarDetectors, WeightsOfBothPartsInOneFile) {
  const test::ScratchFolder folder;
  LidarOptions options;
  options.seed = 5;
  const auto first = LidarDetector::open("pointpillars-small", options);
  ASSERT_TRUE(first);
  Safetensors weights = weights_of_parts((*first)->parts());
  ASSERT_TRUE(write_file(folder / "weights.safetensors", write_safetensors(weights)));
  options.weights = folder / "weights.safetensors";
  const auto second = LidarDetector::open("pointpillars-small", options);
  ASSERT_TRUE(second) << second.error().to_string();
  EXPECT_TRUE((*second)->trained());
  EXPECT_EQ(write_safetensors(weights_of_parts((*second)->parts())), write_safetensors(weights));

  weights.tensors["backbone.block9.0.weight"] = {{1}, {0}};
  ASSERT_TRUE(write_file(folder / "weights.safetensors", write_safetensors(weights)));
  const auto odd = LidarDetector::open("pointpillars-small", options);
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().to_string(), HasSubstr("'backbone.block9.0.weight' is none of"));
  const auto other = LidarDetector::open("centerpoint-small", options);
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error().to_string(), HasSubstr("weights.safetensors"));
}

TEST(LidarDetectors, SayWhatIsWrong) {
  const auto refusal = [](const std::string& name, const LidarOptions& options) {
    const auto detector = LidarDetector::open(name, options);
    return detector ? "accepted" : detector.error().to_string();
  };
  EXPECT_THAT(refusal("pointpillar", {}), HasSubstr("no LiDAR detector 'pointpillar'; there are pointpillars, "));
  LidarOptions options;
  options.max_pillars = -1;
  EXPECT_THAT(refusal("pointpillars-small", options), HasSubstr("-1 pillars: expected 1 to 65536"));
  options.max_pillars = 0;
  options.score_threshold = 1;
  EXPECT_THAT(refusal("pointpillars-small", options), HasSubstr("a score threshold of 1"));
  options.score_threshold = 0;
  options.weights = "/nowhere/at/all.safetensors";
  EXPECT_THAT(refusal("pointpillars-small", options), HasSubstr("/nowhere/at/all.safetensors"));
}

TEST(Monocular, DecodesTheBoxThatItsMapsSay) {
  const auto detector = Monocular3d::open("monocular3d-resnet18", {});
  ASSERT_TRUE(detector) << detector.error().to_string();
  EXPECT_FALSE((*detector)->trained());
  Monocular3d::Work work = (*detector)->make_work();
  const Graph& graph = *(*detector)->part();
  ASSERT_TRUE(validate(graph));
  const Shape map = graph.layer(graph.outputs.front()).output;
  EXPECT_EQ(map.to_string(), "18x64x176");
  const Camera camera = front_camera();
  std::mt19937 random(3);
  const auto uniform = [&](float low, float high) { return std::uniform_real_distribution<float>(low, high)(random); };
  for (int round = 0; round < 50; ++round) {
    Box3d box;
    box.x = uniform(8, 60);
    box.y = uniform(-0.5F, 0.5F) * box.x;
    box.z = uniform(-1.5F, 0);
    box.length = uniform(1, 6);
    box.width = uniform(0.5F, 2.5F);
    box.height = uniform(1, 3);
    box.yaw = uniform(-3.1F, 3.1F);
    box.class_id = round % 10;
    const auto pixel = project(camera, {box.x, box.y, box.z});
    ASSERT_TRUE(pixel);
    const float column = pixel->u / 1600 * 176, row = pixel->v / 900 * 64;
    std::fill(work.output.begin(), work.output.end(), -9.0F);
    const size_t at = static_cast<size_t>(row) * 176 + static_cast<size_t>(column), cells = 64 * 176;
    // In the camera's frame x is right (-y), z ahead (x): the heading's angle from x about the axis that points down.
    const float rotation = -box.yaw - 1.5707964F, ray = std::atan2(-box.y, box.x - 1.7F);
    const float values[] = {column - std::floor(column), row - std::floor(row),   (pixel->depth - 28.01F) / 16.32F,
                            std::log(box.length),        std::log(box.width),     std::log(box.height),
                            std::sin(rotation - ray),    std::cos(rotation - ray)};
    for (size_t c = 0; c < 8; ++c) work.output[c * cells + at] = values[c];
    work.output[(8 + static_cast<size_t>(box.class_id)) * cells + at] = 2;
    const auto found = (*detector)->decode(work, camera);
    ASSERT_EQ(found.size(), 1U);
    EXPECT_GT(iou_3d(found[0], box), 0.99F) << round;
    EXPECT_NEAR(wrap_angle(found[0].yaw - box.yaw), 0, 1e-3);
    EXPECT_EQ(found[0].class_id, box.class_id);
  }
  EXPECT_THAT(Monocular3d::open("smoke", {}).error().to_string(), HasSubstr("there is monocular3d-resnet18"));
  MonocularOptions odd;
  odd.width = 700;
  EXPECT_THAT(Monocular3d::open("monocular3d-resnet18", odd).error().to_string(), HasSubstr("multiples of 32"));
}

TEST(Fusion, JoinsBothSensorsOnOneMap) {
  FusionOptions options;
  options.cameras = {front_camera(), front_camera()};
  options.cameras[1].to_vehicle = {0, 0, -1, -0.5F, 1, 0, 0, 0, 0, -1, 0, -0.3F};  // looks back
  const auto opened = FusionDetector::open("bevfusion-small", options);
  ASSERT_TRUE(opened) << opened.error().to_string();
  const FusionDetector& detector = **opened;
  EXPECT_FALSE(detector.trained());
  for (const auto& part : detector.parts()) EXPECT_TRUE(validate(*part));
  FusionDetector::Work work = detector.make_work();
  EXPECT_EQ(work.depth.size(), 2U * 32 * 8 * 22);
  // The first camera sees ones at every depth, the second nothing.
  std::fill(work.depth.begin(), work.depth.begin() + 32 * 8 * 22, 1.0F / 32);
  std::fill(work.context.begin(), work.context.end(), 1.0F);
  detector.voxelize(std::vector<float>{-10.1F, 0.1F, 0, 1, 0}, 5, work);
  ASSERT_EQ(work.pillars.count(), 1);
  std::fill(work.pillar_features.begin(), work.pillar_features.end(), 7.0F);
  detector.fuse(work);
  const size_t plane = 128 * 128;
  float ahead = 0, behind = 0;
  for (size_t row = 0; row < 128; ++row)
    for (size_t column = 0; column < 128; ++column) (column >= 64 ? ahead : behind) += work.map[row * 128 + column];
  EXPECT_GT(ahead, 50) << "most of 176 rays stay within the map's heights";
  EXPECT_EQ(behind, 0);
  const size_t cell = 64 * 128 + 51;  // x -10.1: (51.2 - 10.1) / 0.8; y 0.1
  EXPECT_EQ(work.map[32 * plane + cell], 7);
  EXPECT_EQ(std::count(work.map.begin() + 32 * plane, work.map.end(), 7.0F), 32);
  for (auto& output : work.outputs) std::fill(output.begin(), output.end(), -9.0F);
  EXPECT_TRUE(detector.decode(work).empty());
  work.outputs[0][10 * 64 * 64 + 40 * 64 + 20] = 2;
  const auto boxes = detector.decode(work);
  ASSERT_EQ(boxes.size(), 1U);
  EXPECT_FLOAT_EQ(boxes[0].x, -51.2F + (20 - 9) * 1.6F);

  // The cameras change places, and back: nothing stays of what rays do not reach any more.
  for (const bool swapped : {true, false}) {
    const std::vector<Camera> cameras = {options.cameras[swapped ? 1 : 0], options.cameras[swapped ? 0 : 1]};
    for (int i = 0; i < 2; ++i) ASSERT_TRUE(detector.lay_out(cameras, work));
    detector.fuse(work);
    ahead = behind = 0;
    for (size_t row = 0; row < 128; ++row)
      for (size_t column = 0; column < 128; ++column) (column >= 64 ? ahead : behind) += work.map[row * 128 + column];
    EXPECT_GT(swapped ? behind : ahead, 50);
    EXPECT_EQ(swapped ? ahead : behind, 0);
    EXPECT_EQ(work.map[32 * plane + cell], 7);
  }
  EXPECT_THAT(detector.lay_out(std::span(options.cameras).first(1), work).error().to_string(),
              HasSubstr("1 cameras: bevfusion-small was opened for 2"));

  options.cameras.clear();
  EXPECT_THAT(FusionDetector::open("bevfusion-small", options).error().to_string(), HasSubstr("0 cameras"));
  options.cameras.resize(1);
  EXPECT_THAT(FusionDetector::open("bevfusion-small", options).error().to_string(),
              HasSubstr("camera 0: a picture of 0x0"));
}

}  // namespace
}  // namespace strobe::models
