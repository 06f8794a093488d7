// Preprocessing by the engine instead of the media room: the same boxes and outputs, in the run and in the passes after
// it. The engine's device is the CPU here.
#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>

#include "engines/loader.h"
#include "models/model.h"
#include "pipeline/video_run.h"
#include "support/test_data.h"

namespace strobe::pipeline {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

class DevicePrep : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    auto engine = engines::open_engine(GetParam());
    if (!engine) GTEST_SKIP() << engine.error().to_string();
    engine_ = *engine;
    models::OpenOptions open;
    open.width = 192;
    open.height = 160;
    auto graph = models::open_graph("person-tiny", open);
    ASSERT_TRUE(graph) << graph.error().to_string();
    graph_ = std::make_shared<const models::Graph>(std::move(*graph));
    const auto people = test::shared_data("video/vtest.avi");
    shows_people_ = std::filesystem::exists(people);
    options_.input = shows_people_ ? people.string() : "synthetic://160x90@30/7";
    options_.max_frames = 7;
    options_.no_video = true;
    options_.load.sessions = 2;
    options_.load.threads_per_session = 1;
    options_.load.batch = 2;  // the last one is short
    options_.detect.score_threshold = 0.02F;
    options_.warmup = 1;
    options_.alone_seconds = 0.05;
    options_.profiled_runs = 2;
    options_.kept_outputs = 3;
  }

  VideoRunResult run(bool on_device) {
    options_.prep_on_device = on_device;
    auto ran = run_video(*engine_, engines::ModelSource(graph_), options_);
    EXPECT_TRUE(ran) << ran.error().to_string();
    EXPECT_TRUE(ran->run.ended) << ran->run.ended.error().to_string();
    EXPECT_THAT(ran->notes, IsEmpty());
    return std::move(*ran);
  }

  std::shared_ptr<engines::Engine> engine_;
  std::shared_ptr<const models::Graph> graph_;
  VideoRunOptions options_;
  bool shows_people_ = false;
};

TEST_P(DevicePrep, GivesWhatTheCpuGives) {
  const VideoRunResult here = run(false), there = run(true);
  EXPECT_EQ(there.run.finished, 7);
  ASSERT_EQ(there.outputs.size(), here.outputs.size());
  for (size_t o = 0; o < here.outputs.size(); ++o) {
    ASSERT_THAT(there.outputs[o], SizeIs(3));
    for (size_t f = 0; f < 3; ++f)
      for (size_t i = 0; i < here.outputs[o][f].size(); ++i)
        ASSERT_NEAR(there.outputs[o][f][i], here.outputs[o][f][i], 1e-3 * (1 + std::abs(here.outputs[o][f][i])));
  }
  EXPECT_FALSE(there.layers.kernels.empty());
  ASSERT_EQ(there.detections.size(), here.detections.size());
  size_t boxes = 0;
  for (size_t f = 0; f < here.detections.size(); ++f) {
    ASSERT_EQ(there.detections[f].boxes.size(), here.detections[f].boxes.size()) << "frame " << f;
    for (size_t b = 0; b < here.detections[f].boxes.size(); ++b, ++boxes) {
      EXPECT_NEAR(there.detections[f].boxes[b].x, here.detections[f].boxes[b].x, 0.05);
      EXPECT_NEAR(there.detections[f].boxes[b].width, here.detections[f].boxes[b].width, 0.05);
    }
  }
  if (shows_people_) {
    EXPECT_GT(boxes, 0U);
  }
}

INSTANTIATE_TEST_SUITE_P(Torch, DevicePrep, testing::Values("torch", "torch:script"));

TEST(DevicePrepRefused, OfAnEngineThatCannot) {
  const auto engine = engines::open_engine("opencv");
  if (!engine) GTEST_SKIP() << engine.error().to_string();
  auto graph = models::open_graph("person-tiny", {});
  ASSERT_TRUE(graph);
  VideoRunOptions options;
  options.input = "synthetic://160x90@30/7";
  options.no_video = options.prep_on_device = true;
  const auto ran =
      run_video(**engine, engines::ModelSource(std::make_shared<const models::Graph>(std::move(*graph))), options);
  ASSERT_FALSE(ran);
  EXPECT_EQ(ran.error().kind(), ErrorKind::kUnsupported);
  EXPECT_THAT(ran.error().to_string(), testing::HasSubstr("torch does"));
}

}  // namespace
}  // namespace strobe::pipeline
