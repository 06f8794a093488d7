#include "pipeline/stage_alone.h"

#include <chrono>
#include <latch>
#include <mutex>
#include <optional>
#include <string_view>
#include <thread>

#include "pipeline/cpu_clock.h"
#include "strobe/record/annotate.h"

namespace strobe::pipeline {

namespace {

using Clock = std::chrono::steady_clock;

bool stopped(const std::atomic<bool>* stop) {
  return stop && stop->load(std::memory_order_relaxed);
}

// The "alone" range of one stage.
class AloneRange {
 public:
  explicit AloneRange(std::string_view stage) : stage_(stage), range_(name()) {}
  void finish(int64_t frames) {
    static const record::Name kStage("stage"), kFrames("frames");
    range_.arg(kStage, stage_).arg(kFrames, frames);
    cpu_.finish(range_);
    range_.end();
  }

 private:
  static const record::Name& name() {
    static const record::Name kAlone("alone");
    return kAlone;
  }
  std::string_view stage_;
  CpuClock cpu_;
  record::Range range_;
};

Result<int64_t> work_over(const Stage& stage, Batch& batch, int worker) {
  const auto frames = static_cast<int64_t>(batch.frames.size());
  const size_t calls = stage.per_batch ? 1 : batch.frames.size();
  for (size_t i = 0; i < calls; ++i) STROBE_TRY(stage.work(batch, i, worker));
  return frames;
}

}  // namespace

Result<void> run_stage_alone(const Stage& stage, std::vector<BatchPtr>& samples, double seconds,
                             const std::atomic<bool>* stop) {
  const auto workers = static_cast<size_t>(stage.workers);
  if (samples.size() < workers) return internal_error("stage " + stage.name + ": fewer samples than workers");
  std::latch ready(stage.workers), go(1);
  Clock::time_point end;
  std::atomic<int64_t> frames{0};
  std::mutex error_mutex;
  std::optional<Error> error;
  const auto fail = [&](Error what) {
    const std::lock_guard lock(error_mutex);
    if (!error) error = std::move(what);
  };
  std::vector<std::thread> threads;
  for (size_t worker = 0; worker < workers; ++worker) {
    threads.emplace_back([&, worker] {
      const int id = static_cast<int>(worker);
      record::name_thread("alone " + stage.name + (workers > 1 ? " " + std::to_string(id) : ""));
      Result<void> started;
      if (stage.start) started = stage.start(id);
      ready.count_down();
      go.wait();
      if (!started) return fail(std::move(started).error());
      // Once over all, whatever it takes: the next stage needs what this one leaves in them.
      for (bool again = false; !stopped(stop); again = true) {
        for (size_t i = worker; i < samples.size() && !stopped(stop); i += workers) {
          if (again && Clock::now() >= end) return;
          auto done = work_over(stage, *samples[i], id);
          if (!done) return fail(std::move(done).error());
          frames += *done;
        }
        if (Clock::now() >= end) return;
      }
    });
  }
  ready.wait();
  {
    AloneRange range(stage.name);
    end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    go.count_down();
    for (std::thread& thread : threads) thread.join();
    range.finish(frames);
  }
  if (error) return std::move(*error);
  return {};
}

Result<void> run_read_alone(const std::string& name, const ReadFrame& read, double seconds,
                            const std::atomic<bool>* stop) {
  AloneRange range(name);
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
  int64_t frames = 0;
  while (!stopped(stop) && Clock::now() < end) {
    STROBE_ASSIGN(const std::optional<media::Frame> frame, read());
    if (!frame) break;
    ++frames;
  }
  range.finish(frames);
  return {};
}

}  // namespace strobe::pipeline
