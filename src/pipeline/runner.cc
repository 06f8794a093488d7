#include "pipeline/runner.h"

#include <pthread.h>

#include <chrono>
#include <latch>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

#include "pipeline/bounded_queue.h"
#include "pipeline/cpu_clock.h"
#include "record/nvtx_ranges.h"
#include "strobe/record/annotate.h"

namespace strobe::pipeline {

namespace {

using Queue = BoundedQueue<BatchPtr>;

constexpr size_t kMostReserved = 64;  // batches made before the run

// Finished batches, to be filled again.
class BatchPool {
 public:
  explicit BatchPool(const PrepareBatch& prepare) : prepare_(prepare) {}
  // Makes batches ahead, so that their memory is touched before the clock starts.
  void reserve(size_t count) {
    std::vector<BatchPtr> made(count);
    for (BatchPtr& batch : made) batch = take();
    for (BatchPtr& batch : made) give_back(std::move(batch));
  }
  BatchPtr take() {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        BatchPtr batch = std::move(free_.back());
        free_.pop_back();
        return batch;
      }
    }
    auto batch = std::make_unique<Batch>();
    prepare_(*batch);
    return batch;
  }
  void give_back(BatchPtr batch) {
    batch->frames.clear();
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(batch));
  }

 private:
  const PrepareBatch& prepare_;
  std::mutex mutex_;
  std::vector<BatchPtr> free_;
};

// The names under which one stage records; interned once.
struct StageNames {
  explicit StageNames(const std::string& stage) : text(stage), range(stage), queue("queue:" + stage) {}
  std::string text;
  record::Name range;
  record::Name queue;  // flow into the stage and depth of the queue before it
};

// A stage at work: a range of our own, and one for whatever other tool watches the process.
class StageRange {
 public:
  StageRange(const StageNames& names, int64_t frame) : range_(names.range, frame) {
    record::nvtx_push(domain(), names.text.c_str(), 0, {});
  }
  ~StageRange() { record::nvtx_pop(domain()); }
  StageRange(const StageRange&) = delete;
  StageRange& operator=(const StageRange&) = delete;
  record::Range& range() { return range_; }

 private:
  static record::NvtxDomain domain() {
    static const record::NvtxDomain made = record::nvtx_domain("strobe");
    return made;
  }
  record::Range range_;
};

// In the trace, and for top, gdb and perf, which show 15 characters.
void name_this_thread(const std::string& name) {
  record::name_thread("stage " + name);
  ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
}

class Run {
 public:
  Run(const std::string& first_stage, const ReadFrame& read, const PrepareBatch& prepare,
      const std::vector<Stage>& stages, const RunnerOptions& options)
      : read_(read),
        stages_(stages),
        options_(options),
        pool_(prepare),
        read_names_(first_stage),
        thread_count_(static_cast<size_t>(1 + worker_count(stages))),
        ready_(static_cast<std::ptrdiff_t>(thread_count_)),
        go_(1) {
    for (const Stage& stage : stages) {
      queues_.push_back(std::make_unique<Queue>(options.queue_capacity));
      names_.emplace_back(stage.name);
      running_workers_.push_back(std::make_unique<std::atomic<int>>(stage.workers));
    }
  }

  RunnerResult execute(const std::function<Result<void>()>& finish) {
    // One in each worker's hands, one being read, and the queues before and behind the first stage, which fill up while
    // a later one is the slowest.
    pool_.reserve(std::min(kMostReserved, thread_count_ + 2 * options_.queue_capacity));
    std::vector<std::thread> threads;
    threads.emplace_back([this] { read_all(); });
    for (size_t i = 0; i < stages_.size(); ++i)
      for (int worker = 0; worker < stages_[i].workers; ++worker)
        threads.emplace_back([this, i, worker] { work(i, worker); });
    ready_.wait();
    RunnerResult result;
    {
      static const record::Name kRun("run");
      const CpuClock cpu;  // before the range: reading /proc is none of the run's work
      record::Range range(kRun);
      const auto begin = std::chrono::steady_clock::now();
      go_.count_down();
      for (std::thread& thread : threads) thread.join();
      if (finish && !cancelled_) {
        if (auto done = finish(); !done) fail(std::move(done).error());
      }
      result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      cpu.finish(range);
    }
    result.read = frames_read_;
    result.finished = frames_finished_;
    result.dropped = frames_dropped_;
    result.stopped = stopped_;
    if (error_) result.ended = std::move(*error_);
    return result;
  }

 private:
  static std::ptrdiff_t worker_count(const std::vector<Stage>& stages) {
    std::ptrdiff_t count = 0;
    for (const Stage& stage : stages) count += stage.workers;
    return count;
  }

  // The first failure counts. Of a stage: everything stops at once.
  void fail(Error error) {
    const std::lock_guard lock(error_mutex_);
    if (!error_) error_ = std::move(error);
  }
  void cancel(Error error) {
    fail(std::move(error));
    cancelled_ = true;
    for (auto& queue : queues_) queue->cancel();
  }

  bool stop_requested() const { return options_.stop && options_.stop->load(std::memory_order_relaxed); }
  bool enough() const { return options_.max_frames > 0 && frames_read_ >= options_.max_frames; }

  void read_all() {
    name_this_thread(read_names_.text);
    ready_.count_down();
    go_.wait();
    BatchPtr batch;
    while (!cancelled_ && !enough()) {
      if (stop_requested()) {
        stopped_ = true;
        break;
      }
      if (!batch) batch = pool_.take();
      auto more = read_into(*batch);
      if (!more) {
        fail(std::move(more).error());  // what was read before is still finished
        break;
      }
      if (!*more) {
        stopped_ = stop_requested();  // a blocked read ends so when the user stops it
        break;
      }
      if (full(*batch)) enqueue(std::move(batch));
    }
    if (batch && !batch->frames.empty()) {
      hand_over(*batch, 0);
      enqueue(std::move(batch));
    }
    if (!queues_.empty()) queues_.front()->close();
  }

  bool full(const Batch& batch) const { return static_cast<int64_t>(batch.frames.size()) == options_.batch_size; }

  // The next frame into the batch; false at the end of the source.
  Result<bool> read_into(Batch& batch) {
    static const record::Name kNoFrame("no_frame");
    StageRange stage(read_names_, frames_read_);
    STROBE_ASSIGN(std::optional<media::Frame> frame, read_());
    if (!frame) {
      stage.range().arg(kNoFrame, int64_t{1});
      return false;
    }
    frame->index = frames_read_++;
    batch.frames.push_back({.frame = std::move(*frame), .detections = {}, .drawn = {}});
    if (full(batch)) hand_over(batch, 0);
    return true;
  }

  // The arrow to the next stage; drawn while the range of this one is still open, so that it starts there.
  void hand_over(Batch& batch, size_t next_stage) {
    batch.hand_over = record::new_id();
    record::flow_out(names_[next_stage].queue, batch.hand_over);
  }

  void drop(BatchPtr batch) {
    static const record::Name kDrop("drop");
    for (const FrameWork& item : batch->frames) record::mark(kDrop, item.frame.index);
    frames_dropped_ += static_cast<int64_t>(batch->frames.size());
    pool_.give_back(std::move(batch));
  }

  void enqueue(BatchPtr batch) {
    Queue& queue = *queues_.front();
    switch (options_.drop) {
      case DropPolicy::kNever:
        push(0, std::move(batch));
        return;
      case DropPolicy::kOldest:
        if (auto displaced = queue.push_or_displace(std::move(batch))) drop(std::move(*displaced));
        break;
      case DropPolicy::kNewest:
        if (!queue.try_push(batch)) drop(std::move(batch));
        break;
    }
    record::counter(names_.front().queue, static_cast<double>(queue.size()));
  }

  // Into the queue before a stage; the time that a full one costs is a range of its own.
  void push(size_t stage, BatchPtr batch) {
    static const record::Name kBackPressure("back-pressure");
    Queue& queue = *queues_[stage];
    if (!queue.try_push(batch)) {
      const record::Range range(kBackPressure, batch->frames.front().frame.index);
      queue.push(std::move(batch));
    }
    record::counter(names_[stage].queue, static_cast<double>(queue.size()));
  }

  Result<void> work_on(size_t index, Batch& batch, int worker) {
    static const record::Name kAlsoFrame("also_frame");
    const Stage& stage = stages_[index];
    const StageNames& names = names_[index];
    const bool last_stage = index + 1 == stages_.size();
    if (stage.per_batch) {
      StageRange at_work(names, batch.frames.front().frame.index);
      record::flow_in(names.queue, batch.hand_over);
      for (size_t i = 1; i < batch.frames.size(); ++i) at_work.range().arg(kAlsoFrame, batch.frames[i].frame.index);
      STROBE_TRY(stage.work(batch, 0, worker));
      if (!last_stage) hand_over(batch, index + 1);
      return {};
    }
    for (size_t i = 0; i < batch.frames.size(); ++i) {
      const StageRange at_work(names, batch.frames[i].frame.index);
      if (i == 0) record::flow_in(names.queue, batch.hand_over);
      STROBE_TRY(stage.work(batch, i, worker));
      if (!last_stage && i + 1 == batch.frames.size()) hand_over(batch, index + 1);
    }
    return {};
  }

  // Hands a batch on, or, after the last stage, takes it back.
  void pass_on(size_t stage, BatchPtr batch) {
    if (stage + 1 < stages_.size()) {
      push(stage + 1, std::move(batch));
      return;
    }
    frames_finished_ += static_cast<int64_t>(batch->frames.size());
    pool_.give_back(std::move(batch));
    if (options_.on_progress) options_.on_progress(frames_finished_);
  }

  void work(size_t index, int worker) {
    const Stage& stage = stages_[index];
    name_this_thread(stage.name + (stage.workers > 1 ? " " + std::to_string(worker) : ""));
    if (stage.start) {
      if (auto started = stage.start(worker); !started) cancel(std::move(started).error());
    }
    ready_.count_down();
    go_.wait();
    std::map<int64_t, BatchPtr> early;  // of an ordered stage: batches that overtook others
    int64_t next = 0;
    const auto number = [&](BatchPtr& batch) {
      if (index == 0) batch->sequence = next_sequence_++;
    };
    while (auto batch = queues_[index]->pop(number)) {
      early.emplace((*batch)->sequence, std::move(*batch));
      while (!early.empty() && (!stage.ordered || early.begin()->first == next)) {
        BatchPtr current = std::move(early.begin()->second);
        early.erase(early.begin());
        ++next;
        if (auto done = work_on(index, *current, worker); !done) {
          cancel(std::move(done).error());
          break;
        }
        pass_on(index, std::move(current));
      }
    }
    if (running_workers_[index]->fetch_sub(1) == 1 && index + 1 < stages_.size()) queues_[index + 1]->close();
  }

  const ReadFrame& read_;
  const std::vector<Stage>& stages_;
  const RunnerOptions& options_;
  BatchPool pool_;
  StageNames read_names_;
  std::vector<StageNames> names_;
  std::vector<std::unique_ptr<Queue>> queues_;
  std::vector<std::unique_ptr<std::atomic<int>>> running_workers_;
  size_t thread_count_;  // threads
  std::latch ready_, go_;
  int64_t next_sequence_ = 0;  // guarded by the first queue's lock
  std::atomic<bool> cancelled_{false}, stopped_{false};
  std::atomic<int64_t> frames_read_{0}, frames_finished_{0}, frames_dropped_{0};
  std::mutex error_mutex_;
  std::optional<Error> error_;
};

}  // namespace

RunnerResult run_pipeline(const std::string& first_stage, const ReadFrame& read, const PrepareBatch& prepare,
                          const std::vector<Stage>& stages, const std::function<Result<void>()>& finish,
                          const RunnerOptions& options) {
  return Run(first_stage, read, prepare, stages, options).execute(finish);
}

}  // namespace strobe::pipeline
