// The whole chain of a LiDAR detector on real KITTI sweeps: labels into the LiDAR's frame, training, weights in a file,
// two engines that find the labelled objects with them.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <numbers>
#include <random>

#include "base/file.h"
#include "engines/engine_case.h"
#include "engines/loader.h"
#include "models/lidar_detector.h"
#include "models/lidar_kitti.h"
#include "models/lidar_networks.h"
#include "models/rotated_iou.h"
#include "support/test_data.h"

namespace strobe::engines {
namespace {

using models::Box3d;
using models::LidarDetector;

struct Sweep {
  std::vector<float> points;  // x, y, z, intensity
  std::vector<Box3d> boxes;
};

Result<std::vector<float>> read_points(const std::filesystem::path& path) {
  STROBE_ASSIGN(const std::string bytes, read_file(path));
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(float));
  return values;
}

// The labelled objects of the detector's classes whose centre is in its range.
std::vector<Box3d> labelled_boxes(const LidarDetector& detector, const std::vector<models::KittiLabel>& labels,
                                  const models::KittiCalibration& calibration) {
  std::vector<Box3d> boxes;
  for (const models::KittiLabel& label : labels) {
    const auto found = std::find(detector.labels().begin(), detector.labels().end(), label.type);
    if (found == detector.labels().end()) continue;
    Box3d box = models::lidar_box(label, calibration);
    box.class_id = static_cast<int>(found - detector.labels().begin());
    const models::PillarRule& rule = detector.pillars();
    if (box.x >= rule.low[0] && box.x < rule.high[0] && box.y >= rule.low[1] && box.y < rule.high[1])
      boxes.push_back(box);
  }
  return boxes;
}

// Mirrored, turned and grown as a whole, as SECOND does: the labels stay true.
Sweep changed(const Sweep& sweep, std::mt19937& random) {
  const auto uniform = [&](float low, float high) {
    return low + (high - low) * static_cast<float>(random()) / static_cast<float>(std::mt19937::max());
  };
  const float mirror = random() % 2 == 0 ? 1.0F : -1.0F, angle = uniform(-0.2F, 0.2F), scale = uniform(0.97F, 1.03F);
  const float c = std::cos(angle) * scale, s = std::sin(angle) * scale;
  const auto turn = [&](float& x, float& y) {
    const float from_x = x, from_y = mirror * y;
    x = c * from_x - s * from_y;
    y = s * from_x + c * from_y;
  };
  Sweep out = sweep;
  for (size_t i = 0; i + 3 < out.points.size(); i += 4) {
    turn(out.points[i], out.points[i + 1]);
    out.points[i + 2] *= scale;
  }
  for (Box3d& box : out.boxes) {
    turn(box.x, box.y);
    box.z *= scale;
    box.length *= scale;
    box.width *= scale;
    box.height *= scale;
    box.yaw = models::wrap_angle(mirror * box.yaw + angle);
  }
  return out;
}

constexpr const char* kName = "pointpillars-small";

// One session a part; what joins them runs between.
Result<std::vector<Box3d>> detect(Engine& engine, const LidarDetector& detector, std::span<const float> points) {
  LidarDetector::Work work = detector.make_work();
  detector.voxelize(points, 4, work);
  const auto run = [&](size_t part, const float* input, std::vector<float*> outputs) -> Result<void> {
    STROBE_ASSIGN(const auto network, engine.load(detector.parts()[part], {.threads_per_session = 1}));
    STROBE_ASSIGN(const auto session, network->create_session());
    return session->run(std::span(&input, 1), outputs);
  };
  STROBE_TRY(run(0, work.pillars.features().data(), {work.pillar_features.data()}));
  detector.scatter(work);
  std::vector<float*> outputs;
  for (auto& output : work.outputs) outputs.push_back(output.data());
  STROBE_TRY(run(1, work.canvas.data(), outputs));
  return detector.decode(work);
}

struct Judged {
  int found = 0;
  std::string missed;
  int extra = 0;
};
// An object is found by a box of its class with an overlap in space of at least one half.
Judged judge(const LidarDetector& detector, const std::vector<Box3d>& boxes, const std::vector<Box3d>& truth) {
  Judged judged;
  std::vector<bool> used(boxes.size());
  for (const Box3d& object : truth) {
    float best = 0;
    size_t at = 0;
    for (size_t i = 0; i < boxes.size(); ++i) {
      const float overlap = boxes[i].class_id == object.class_id && !used[i] ? models::iou_3d(boxes[i], object) : 0;
      if (overlap > best) best = overlap, at = i;
    }
    if (best >= 0.5F) {
      used[at] = true;
      ++judged.found;
    } else {
      judged.missed += detector.labels()[static_cast<size_t>(object.class_id)] + " at " + std::to_string(object.x) +
                       ", " + std::to_string(object.y) + " (best overlap " + std::to_string(best) + "); ";
    }
  }
  judged.extra = static_cast<int>(std::count(used.begin(), used.end(), false));
  return judged;
}

TEST(LidarTraining, FindsTheLabelledObjectsOfARealSweep) {
  auto opened = open_engine("torch");
  if (!opened) GTEST_SKIP() << "engine torch is not built";
  const auto points_file = test::shared_data("samples/kitti_000134.bin");
  STROBE_REQUIRE_DATA(points_file);
  auto untrained = LidarDetector::open(kName, {.seed = 3});
  ASSERT_TRUE(untrained) << untrained.error().to_string();
  EXPECT_FALSE((*untrained)->trained());
  const LidarDetector& start = **untrained;
  const auto labels = models::parse_kitti_labels(*read_file(test::shared_data("samples/kitti_000134_gt.txt")));
  const auto calibration =
      models::parse_kitti_calibration(*read_file(test::shared_data("samples/kitti_000134_calib.txt")));
  ASSERT_TRUE(labels && calibration);
  const Sweep sweep{*read_points(points_file), labelled_boxes(start, *labels, *calibration)};
  ASSERT_EQ(sweep.boxes.size(), 15U) << "every Car, Pedestrian and Cyclist of the file";

  TrainOptions options;
  options.batch = 2;
  options.threads = 1;
  options.weight_decay = 0;
  options.pillar_net = start.parts()[0];
  auto trainer = (*opened)->train(start.parts()[1], options);
  ASSERT_TRUE(trainer) << trainer.error().to_string();
  LidarDetector::Work work = start.make_work();
  std::mt19937 random(1);
  constexpr int kSteps = 140, kLastAugmented = 90;
  double first = 0, last = 0;
  for (int step = 0; step < kSteps; ++step) {
    std::vector<float> input;
    std::vector<Target> targets;
    // The sweep as it is, beside one that is changed; at the end only as it is.
    for (int item = 0; item < (step < kLastAugmented ? 2 : 1); ++item) {
      const Sweep shown = item == 0 ? sweep : changed(sweep, random);
      start.voxelize(shown.points, 4, work);
      input.insert(input.end(), work.pillars.features().begin(), work.pillars.features().end());
      Target target;
      target.cells.assign(work.pillars.cells().begin(), work.pillars.cells().end());
      target.anchors = models::assign_anchors(*start.anchors(), shown.boxes);
      targets.push_back(std::move(target));
    }
    const auto loss = (*trainer)->forward(input, targets);
    ASSERT_TRUE(loss) << loss.error().to_string();
    if (step == 0) first = *loss;
    last = *loss;
    ASSERT_TRUE((*trainer)->backward());
    const double part = static_cast<double>(step) / kSteps;
    const double warm = std::min(1.0, 10 * part + 0.1);
    ASSERT_TRUE((*trainer)->update(3e-3 * warm * (0.5 + 0.5 * std::cos(part * std::numbers::pi))));
  }
  EXPECT_LT(last, first / 10);

  const auto networks = (*trainer)->graphs();
  ASSERT_TRUE(networks);
  ASSERT_EQ(networks->size(), 2U);
  std::vector<std::shared_ptr<const models::Graph>> parts;
  for (const models::Graph& graph : *networks) parts.push_back(std::make_shared<const models::Graph>(graph));
  const test::ScratchFolder folder;
  ASSERT_TRUE(write_file(folder / "weights.safetensors", write_safetensors(models::weights_of_parts(parts))));
  const auto detector =
      LidarDetector::open(kName, {.weights = folder / "weights.safetensors", .score_threshold = 0.3F});
  ASSERT_TRUE(detector) << detector.error().to_string();
  EXPECT_TRUE((*detector)->trained());
  for (const char* spec : {"torch", "openvino"}) {
    auto engine = open_engine(spec);
    if (!engine) continue;
    const auto boxes = detect(**engine, **detector, sweep.points);
    ASSERT_TRUE(boxes) << boxes.error().to_string();
    const Judged judged = judge(**detector, *boxes, sweep.boxes);
    EXPECT_EQ(judged.found, 15) << spec << " missed: " << judged.missed;
    EXPECT_LE(judged.extra, 2) << spec;
    RecordProperty(std::string(spec) + "_found", judged.found);
  }
}

}  // namespace
}  // namespace strobe::engines
