// Every part of the detectors in space on every engine: they agree, and the boxes that follow are the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "engines/engine_case.h"
#include "engines/loader.h"
#include "models/cost.h"
#include "models/fusion_detector.h"
#include "models/lidar_detector.h"
#include "models/monocular3d.h"

namespace strobe::engines {
namespace {

using test::GraphPtr;
using test::Values;

struct Part {
  std::string name;
  GraphPtr graph;
  int64_t batch = 1;
};

std::vector<Part> all_parts() {
  std::vector<Part> parts;
  for (const std::string& name : models::lidar_detector_names()) {
    models::LidarOptions options;
    options.max_pillars = 1000;
    const auto detector = models::LidarDetector::open(name, options);
    if (!detector) return {};
    for (const auto& part : (*detector)->parts()) parts.push_back({part->name, part});
  }
  models::MonocularOptions monocular;
  monocular.width = 352;
  monocular.height = 128;
  parts.push_back({"monocular", (*models::Monocular3d::open("monocular3d-resnet18", monocular))->part()});
  models::FusionOptions fusion;
  fusion.max_pillars = 1000;
  fusion.cameras.resize(2);
  for (models::Camera& camera : fusion.cameras) {
    camera.width = 1600;
    camera.height = 900;
    camera.intrinsic = {1266, 0, 816, 0, 1266, 491, 0, 0, 1};
    camera.to_vehicle = {0, 0, 1, 0, -1, 0, 0, 0, 0, -1, 0, 0};
  }
  const auto detector = models::FusionDetector::open("bevfusion-small", fusion);
  for (const auto& part : (*detector)->parts())
    parts.push_back({part->name, part, part == (*detector)->parts()[0] ? 2 : 1});
  return parts;
}

TEST(EachOther, EnginesAgreeOnEveryPartOfTheDetectorsInSpace) {
  const auto parts = all_parts();
  ASSERT_EQ(parts.size(), 5 * 2 + 1 + 3U);
  for (const Part& part : parts) {
    SCOPED_TRACE(part.name);
    const auto input = test::random_values(part.batch * part.graph->input_shape().elements(), 11);
    std::string first;
    std::vector<Values> expected;
    // The full sizes take seconds: on two engines only.
    const bool large = models::graph_cost(*part.graph).flop > 10'000'000'000;
    for (const auto& spec : large ? std::vector<std::string>{"torch:eager", "openvino"} : test::engine_specs()) {
      const auto engine = open_engine(spec);
      if (!engine) continue;
      LoadOptions options;
      options.batch = part.batch;
      const auto network = (*engine)->load(part.graph, options);
      ASSERT_TRUE(network) << spec << ": " << network.error().to_string();
      auto outputs = test::run_once(**network, input);
      ASSERT_TRUE(outputs) << spec << ": " << outputs.error().to_string();
      if (first.empty()) {
        first = spec;
        expected = *std::move(outputs);
        continue;
      }
      EXPECT_LE(test::difference(*outputs, expected), 1e-4) << spec << " against " << first;
    }
    if (first.empty()) GTEST_SKIP() << "no engine is built";
  }
}

// A seeded detector says that it is one; its outputs are rare boxes, as a trained one's.
TEST(EachOther, SeededDetectorsFindNextToNothing) {
  const auto engine = open_engine("torch");
  if (!engine) GTEST_SKIP() << "engine torch is not built";
  for (const char* name : {"pointpillars-small", "centerpoint-small"}) {
    const auto detector = models::LidarDetector::open(name, {});
    ASSERT_TRUE(detector);
    EXPECT_FALSE((*detector)->trained());
    models::LidarDetector::Work work = (*detector)->make_work();
    const auto points = test::random_values(80'000, 3);
    std::vector<float> spread(points);
    for (size_t i = 0; i < spread.size(); ++i) spread[i] *= i % 4 < 2 ? 40.0F : 1.0F;
    (*detector)->voxelize(spread, 4, work);
    const auto run = [&](size_t part, const Values& input) {
      const auto network = (*engine)->load((*detector)->parts()[part], {});
      auto outputs = test::run_once(**network, input);
      return outputs ? *outputs : std::vector<Values>{};
    };
    work.pillar_features = run(0, work.pillars.features()).at(0);
    (*detector)->scatter(work);
    work.outputs = run(1, work.canvas);
    EXPECT_LT((*detector)->decode(work).size(), 50U) << name;
  }
}

}  // namespace
}  // namespace strobe::engines
