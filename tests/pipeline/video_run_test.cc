// The main job with a fake engine whose boxes are known, through the real media room.
#include "pipeline/video_run.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>
#include <sstream>

#include "analyze/pipeline.h"
#include "models/model.h"
#include "pipeline/square_finder.h"
#include "strobe/record/annotate.h"
#include "support/test_data.h"
#include "trace/spool_import.h"

namespace strobe::pipeline {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kWidth = 128, kHeight = 64, kSide = 16;

// A folder of pictures: black, with a white square that moves 8 pixels to the right from frame to frame.
void write_pictures(const fs::path& folder, int count) {
  fs::create_directories(folder);
  for (int i = 0; i < count; ++i) {
    std::string pixels(static_cast<size_t>(3 * kWidth * kHeight), '\0');
    for (int y = 24; y < 24 + kSide; ++y)
      for (int x = 8 * (i % 14); x < 8 * (i % 14) + kSide; ++x)
        for (int c = 0; c < 3; ++c) pixels[static_cast<size_t>(3 * (y * kWidth + x) + c)] = '\xff';
    std::ofstream(folder / fmt::format("{}.ppm", i), std::ios::binary) << "P6\n"
                                                                       << kWidth << " " << kHeight << "\n255\n"
                                                                       << pixels;
  }
}

class VideoRun : public testing::Test {
 protected:
  void SetUp() override {
    write_pictures(folder_ / "in", 10);
    std::ofstream(folder_ / "net.cfg") << "[net]\nwidth=64\nheight=32\nchannels=3\n"
                                          "[convolutional]\nfilters=6\nsize=8\nstride=8\nactivation=linear\n"
                                          "[yolo]\nmask=0\nanchors=8,8\nclasses=1\nnum=1\n";
    std::ofstream(folder_ / "names") << "square\n";
    models::OpenOptions open;
    open.labels = folder_ / "names";
    auto graph = models::open_graph((folder_ / "net.cfg").string(), open);
    ASSERT_TRUE(graph) << graph.error().to_string();
    graph_ = std::make_shared<models::Graph>(std::move(*graph));
    graph_->trained = true;
    options_.input = (folder_ / "in").string();
    options_.video = folder_ / "out.mp4";
    options_.writer.codec = "mpeg4";
    options_.load.sessions = 2;
    options_.load.threads_per_session = 1;
    options_.alone_seconds = 0;
    options_.profiled_runs = 0;
    options_.warmup = 0;
  }

  Result<VideoRunResult> run() {
    SquareFinder engine(state_);
    return run_video(engine, engines::ModelSource(std::shared_ptr<const models::Graph>(graph_)), options_);
  }

  // Frames of the written video.
  int64_t written_frames() const {
    auto source = media::open_source(options_.video.string(), {});
    if (!source) return -1;
    EXPECT_EQ((*source)->info().width, kWidth);
    EXPECT_EQ((*source)->info().height, kHeight);
    for (int64_t count = 0;; ++count) {
      auto frame = (*source)->next();
      if (!frame || !*frame) return frame ? count : -1;
    }
  }

  static void expect_square(const FrameDetections& found) {
    ASSERT_THAT(found.boxes, SizeIs(1)) << "frame " << found.frame;
    EXPECT_NEAR(found.boxes[0].x, 8.0 * static_cast<double>(found.frame), 1.01);
    EXPECT_NEAR(found.boxes[0].y, 24, 1.01);
    EXPECT_NEAR(found.boxes[0].width, kSide, 0.1);
    EXPECT_NEAR(found.boxes[0].height, kSide, 0.1);
    EXPECT_GT(found.boxes[0].score, 0.99);
    EXPECT_NEAR(found.time_s, static_cast<double>(found.frame) / 30, 1e-6);
  }

  test::ScratchFolder folder_;
  std::shared_ptr<models::Graph> graph_;
  std::shared_ptr<SquareFinderState> state_ = std::make_shared<SquareFinderState>();
  VideoRunOptions options_;
};

TEST_F(VideoRun, FindsTheSquareOfEveryFrameInOrderThoughBatchesOvertakeEachOther) {
  state_->uneven = true;
  for (const int64_t batch : {1, 3, 16}) {
    SCOPED_TRACE(batch);
    options_.load.batch = batch;
    auto done = run();
    ASSERT_TRUE(done) << done.error().to_string();
    ASSERT_TRUE(done->run.ended) << done->run.ended.error().to_string();
    EXPECT_EQ(done->run.read, 10);
    EXPECT_EQ(done->run.finished, 10);
    EXPECT_EQ(done->run.dropped, 0);
    EXPECT_THAT(done->notes, IsEmpty());
    ASSERT_THAT(done->detections, SizeIs(10));
    for (int64_t i = 0; i < 10; ++i) {
      EXPECT_EQ(done->detections[static_cast<size_t>(i)].frame, i);
      expect_square(done->detections[static_cast<size_t>(i)]);
    }
    EXPECT_EQ(written_frames(), 10);
  }
}

TEST_F(VideoRun, DrawsTheBoxOntoThePicture) {
  options_.input = (folder_ / "in" / "3.ppm").string();
  options_.picture = folder_ / "out.png";
  auto done = run();
  ASSERT_TRUE(done) << done.error().to_string();
  ASSERT_TRUE(done->run.ended) << done->run.ended.error().to_string();
  EXPECT_EQ(written_frames(), 1);
  // Found again in the annotated picture: the box's rim and label have been added, so its centre has moved.
  ASSERT_TRUE(fs::exists(options_.picture));
  ASSERT_THAT(done->detections, SizeIs(1));
  options_.input = options_.picture.string();
  options_.picture.clear();
  auto again = run();
  ASSERT_TRUE(again) << again.error().to_string();
  ASSERT_THAT(again->detections[0].boxes, SizeIs(1));
  EXPECT_NE(again->detections[0].boxes[0].y, done->detections[0].boxes[0].y);
}

TEST_F(VideoRun, StopsAtTheAskedFrameAndWarmsEverySession) {
  options_.max_frames = 4;
  options_.warmup = 3;
  auto done = run();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(done->run.finished, 4);
  EXPECT_EQ(state_->inferences, 4 + 2 * 3);
  EXPECT_EQ(written_frames(), 4);
}

TEST_F(VideoRun, WithoutVideoNothingIsDrawnOrWritten) {
  options_.no_video = true;
  auto done = run();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_THAT(done->detections, SizeIs(10));
  EXPECT_FALSE(fs::exists(options_.video));
}

TEST_F(VideoRun, AFailedInferenceEndsTheRunAndKeepsWhatWasDone) {
  state_->fail_at = 5;
  options_.load.sessions = 1;
  auto done = run();
  ASSERT_TRUE(done) << done.error().to_string();
  ASSERT_FALSE(done->run.ended);
  EXPECT_THAT(done->run.ended.error().to_string(), HasSubstr("inference 5 failed as asked"));
  EXPECT_LE(done->run.finished, 5);
  EXPECT_LE(done->detections.size(), 5U);
  EXPECT_FALSE(fs::exists(options_.video)) << "half a video must not look like a whole one";
}

TEST_F(VideoRun, AStopFinishesWhatIsUnderWayAndTheVideoPlays) {
  write_pictures(folder_ / "in", 100);  // more than the queues hold
  std::atomic<bool> stop{false};
  options_.stop = &stop;
  options_.on_progress = [&](int64_t finished, int64_t of) {
    EXPECT_EQ(of, 100);
    if (finished == 2) stop = true;
  };
  state_->takes = std::chrono::milliseconds(5);
  auto done = run();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_TRUE(done->run.stopped);
  EXPECT_TRUE(done->run.ended);
  EXPECT_EQ(done->run.finished, done->run.read);
  EXPECT_GE(done->run.finished, 2);
  EXPECT_LT(done->run.finished, 100);
  EXPECT_EQ(written_frames(), done->run.finished);
}

TEST_F(VideoRun, SeededWeightsGiveNoBoxesAndANoteSaysWhy) {
  graph_->trained = false;
  auto done = run();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_THAT(done->notes, ElementsAre(HasSubstr("seeded weights")));
  for (const FrameDetections& frame : done->detections) EXPECT_THAT(frame.boxes, IsEmpty());
}

TEST_F(VideoRun, ANetworkThatTakesNoPictureIsRefused) {
  state_->input = {1, 32, 64};
  auto done = run();
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().to_string(), HasSubstr("not one picture"));
}

TEST_F(VideoRun, InputsAndOutputsThatCannotBeOpenedAreErrorsBeforeTheRun) {
  options_.input = (folder_ / "nothing.mp4").string();
  EXPECT_FALSE(run());
  options_.input = (folder_ / "in").string();
  options_.video = folder_ / "no" / "such" / "folder.mp4";
  EXPECT_FALSE(run());
  EXPECT_EQ(state_->inferences, 0);
}

TEST_F(VideoRun, KeepsRawOutputsAndLayerTimes) {
  options_.kept_outputs = 2;
  options_.profiled_runs = 4;
  auto done = run();
  ASSERT_TRUE(done) << done.error().to_string();
  ASSERT_THAT(done->outputs, SizeIs(1));
  ASSERT_THAT(done->outputs[0], SizeIs(2));
  EXPECT_THAT(done->outputs[0][0], SizeIs(6 * 4 * 8));
  EXPECT_NE(done->outputs[0][0], done->outputs[0][1]);
  ASSERT_THAT(done->layers.kernels, SizeIs(2));
  EXPECT_THAT(done->layers.duration_ns, ElementsAre(ElementsAre(1000, 1000, 1000, 1000), SizeIs(4)));
}

// What the analyses read must be what happened.
TEST_F(VideoRun, TheRecordingTellsTheWholeRun) {
  options_.alone_seconds = 0.02;
  options_.load.batch = 3;
  state_->takes = std::chrono::milliseconds(100);  // long beside the threads' start and end
  ASSERT_TRUE(record::start({.folder = folder_ / "spool", .process_name = "test"}));
  record::fact("cores", "2");
  auto done = run();
  ASSERT_TRUE(record::stop());
  ASSERT_TRUE(done) << done.error().to_string();
  auto timeline = trace::import_spool(folder_ / "spool");
  ASSERT_TRUE(timeline) << timeline.error().to_string();

  const Table whole = analyze::throughput(*timeline);
  ASSERT_EQ(whole.row_count(), 1U);
  EXPECT_THAT(whole.notes, testing::Each(HasSubstr("of the 2 cores"))) << "others may be busy, nothing else is wrong";
  EXPECT_EQ(*whole.number(0, "frames"), 10);
  EXPECT_NEAR(*whole.number(0, "end_to_end_fps"), 10 / done->run.seconds, 0.05 * 10 / done->run.seconds);
  EXPECT_GT(*whole.number(0, "limit_fps"), 0);
  EXPECT_GT(*whole.number(0, "cpu_ms_per_frame"), 0);

  const Table stages = analyze::stage_latency(*timeline);
  EXPECT_THAT(stages.notes, IsEmpty());
  std::vector<std::string> names;
  for (size_t row = 0; row < stages.row_count(); ++row) {
    names.push_back(stages.text(row, "stage"));
    EXPECT_EQ(*stages.number(row, "count"), 10) << names.back();
  }
  EXPECT_THAT(names, ElementsAre("read", "prep", "infer", "post", "draw", "write", "total"));
  EXPECT_GE(*stages.number(2, "p50_ms"), 100);

  const Table alone = analyze::stage_limits(*timeline);
  EXPECT_EQ(alone.row_count(), 6U);
  EXPECT_THAT(done->notes, IsEmpty());
}

TEST_F(VideoRun, AModelFileOfUnknownOutputsRunsWithoutBoxesAndANoteSaysWhy) {
  SquareFinder engine(state_);
  auto done = run_video(engine, engines::ModelSource(fs::path("any.square")), options_);
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(done->run.finished, 10);
  EXPECT_THAT(done->notes, ElementsAre(HasSubstr("no boxes are decoded")));
}

}  // namespace
}  // namespace strobe::pipeline
