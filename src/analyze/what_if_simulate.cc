#include <algorithm>
#include <deque>
#include <limits>
#include <map>

#include "analyze/what_if_pipeline.h"

namespace strobe::analyze {

namespace {

constexpr size_t kNothing = std::numeric_limits<size_t>::max();

// Mirrors the runner: a worker takes a batch, works on its frames one by one, hands the batch on (waiting while the
// queue is full) and only then takes the next. Whatever starts does so at an end of other work, which is then its
// cause.
class Simulation {
 public:
  explicit Simulation(const PipelineModel& model) : model_(model) {
    const size_t frames = model.frames.size();
    outcome_.latency_ns.assign(frames, 0);
    outcome_.finished_ns.assign(frames, 0);
    read_ns_.assign(frames, 0);
    const auto batch = static_cast<size_t>(std::max<int64_t>(1, model.batch));
    for (size_t first = 0; first < frames; first += batch) batches_.push_back({first, std::min(frames, first + batch)});
    queues_.resize(model.stages.size());
    for (size_t stage = 0; stage < model.stages.size(); ++stage) {
      // The source has one thread.
      const int64_t workers = stage == 0 ? 1 : std::max<int64_t>(1, model.stages[stage].workers);
      for (int64_t i = 0; i < workers; ++i) workers_.emplace_back().stage = stage;
    }
  }

  PipelineOutcome run() {
    for (size_t i = 1; i < workers_.size(); ++i) queues_[workers_[i].stage].takers.push_back(i);
    if (!batches_.empty()) begin_read(0);
    while (step()) {
    }
    outcome_.duration_ns = now_ + model_.around_ns;
    find_path();
    return std::move(outcome_);
  }

 private:
  struct Batch {
    size_t first, behind;  // frames
  };
  struct Worker {
    size_t stage = 0;
    size_t batch = kNothing;
    size_t frame = 0;
    double delay_ns = 0;  // before the work: time that needs no core
    double left_ns = 0;
    bool busy = false;
    size_t piece = kNothing;         // its last one, in pieces_
    std::map<size_t, size_t> early;  // of an ordered stage: batches that came before their turn
  };
  struct Queue {
    std::deque<size_t> batches;
    std::deque<size_t> givers;  // workers that wait for room
    std::deque<size_t> takers;  // workers that wait for a batch
  };
  struct Piece {
    size_t stage;
    size_t cause;  // another piece
    double start_ns, end_ns;
  };

  const StageModel& stage(const Worker& worker) const { return model_.stages[worker.stage]; }

  void begin_read(size_t index) {
    Worker& worker = workers_[index];
    if (next_read_ == model_.frames.size()) return;
    worker.frame = next_read_++;
    worker.batch = worker.frame / static_cast<size_t>(std::max<int64_t>(1, model_.batch));
    begin(index, worker.frame);
    read_ns_[worker.frame] = now_ + worker.delay_ns;
    if (!model_.arrival_ns.empty()) {
      // A live source gives a frame when it comes.
      const double wait = model_.arrival_ns[worker.frame] - now_ - worker.left_ns;
      if (wait > 0) worker.delay_ns = wait;
    }
  }

  void begin(size_t index, size_t piece) {
    Worker& worker = workers_[index];
    const StageModel& model = stage(worker);
    worker.left_ns = model.work_ns[piece];
    worker.delay_ns = model.delay_ns.empty() ? 0 : model.delay_ns[piece];
    worker.busy = true;
    worker.piece = pieces_.size();
    pieces_.push_back({worker.stage, cause_, now_, now_});
  }

  void begin_batch(size_t index, size_t batch) {
    Worker& worker = workers_[index];
    worker.batch = batch;
    worker.frame = batches_[batch].first;
    begin(index, stage(worker).per_batch ? batch : worker.frame);
  }

  // Time passes until some work ends; false: none is left.
  bool step() {
    double demand = 0;
    bool any = false;
    for (const Worker& worker : workers_) {
      any |= worker.busy;
      if (worker.busy && worker.delay_ns <= 0) demand += stage(worker).cores;
    }
    if (!any) return false;
    const double rate = rate_at(model_, demand);
    double passes = std::numeric_limits<double>::max();
    for (const Worker& worker : workers_)
      if (worker.busy) passes = std::min(passes, worker.delay_ns > 0 ? worker.delay_ns : worker.left_ns / rate);
    now_ += passes;
    ended_.clear();
    constexpr double kRounding = 1e-3;
    for (size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      if (!worker.busy) continue;
      if (worker.delay_ns > 0) {
        worker.delay_ns -= passes;
        if (worker.delay_ns <= kRounding) worker.delay_ns = 0;
        if (worker.delay_ns > 0 || worker.left_ns > 0) continue;
      } else {
        worker.left_ns -= passes * rate;
        if (worker.left_ns > kRounding) continue;
      }
      ended_.push_back(i);
    }
    for (const size_t index : ended_) end(index);
    return true;
  }

 public:
  // How fast each piece of work goes while so many cores are asked for.
  static double rate_at(const PipelineModel& model, double demand) {
    const double share = demand > model.cores ? model.cores / demand : 1;
    const double others = std::min(demand, model.cores) - 1;
    const double most = std::max(1.0, model.cores - 1);
    return share / (1 + model.slowdown * std::max(0.0, others) / most);
  }

 private:
  void end(size_t index) {
    Worker& worker = workers_[index];
    worker.busy = false;
    cause_ = worker.piece;
    pieces_[worker.piece].end_ns = now_;
    const Batch& batch = batches_[worker.batch];
    const bool is_last = worker.stage + 1 == model_.stages.size();
    const auto finish = [&](size_t frame) {
      outcome_.finished_ns[frame] = now_;
      outcome_.latency_ns[frame] = now_ - read_ns_[frame];
      last_piece_ = worker.piece;
    };
    if (stage(worker).per_batch) {
      for (size_t frame = batch.first; is_last && frame < batch.behind; ++frame) finish(frame);
    } else {
      if (is_last) finish(worker.frame);
      if (worker.frame + 1 < batch.behind) {
        if (worker.stage == 0) return begin_read(index);
        ++worker.frame;
        return begin(index, worker.frame);
      }
    }
    if (is_last) return proceed(index);
    give(index);
  }

  void give(size_t index) {
    Worker& worker = workers_[index];
    Queue& queue = queues_[worker.stage + 1];
    if (static_cast<int64_t>(queue.batches.size()) >= model_.queue_capacity) {
      queue.givers.push_back(index);
      return;
    }
    queue.batches.push_back(worker.batch);
    if (!queue.takers.empty()) {
      const size_t taker = queue.takers.front();
      queue.takers.pop_front();
      take(taker);
    }
    proceed(index);
  }
  void proceed(size_t index) {
    if (workers_[index].stage == 0)
      begin_read(index);
    else
      take(index);
  }

  void take(size_t index) {
    Worker& worker = workers_[index];
    Queue& queue = queues_[worker.stage];
    for (;;) {
      if (stage(worker).ordered && !worker.early.empty() && worker.early.begin()->first == turn(worker)) {
        const size_t batch = worker.early.begin()->second;
        worker.early.erase(worker.early.begin());
        ++turn(worker);
        return begin_batch(index, batch);
      }
      if (queue.batches.empty()) {
        queue.takers.push_back(index);
        return;
      }
      const size_t batch = queue.batches.front();
      queue.batches.pop_front();
      if (!queue.givers.empty()) {
        const size_t giver = queue.givers.front();
        queue.givers.pop_front();
        queue.batches.push_back(workers_[giver].batch);
        proceed(giver);
      }
      if (!stage(worker).ordered) return begin_batch(index, batch);
      worker.early.emplace(batch, batch);
    }
  }
  size_t& turn(const Worker& worker) {
    if (turns_.empty()) turns_.assign(model_.stages.size(), 0);
    return turns_[worker.stage];
  }

  void find_path() {
    outcome_.path_ns.assign(model_.stages.size(), 0);
    for (size_t piece = last_piece_; piece != kNothing; piece = pieces_[piece].cause)
      outcome_.path_ns[pieces_[piece].stage] += pieces_[piece].end_ns - pieces_[piece].start_ns;
  }

  const PipelineModel& model_;
  PipelineOutcome outcome_;
  std::vector<Batch> batches_;
  std::vector<Worker> workers_;
  std::vector<Queue> queues_;  // before each stage
  std::vector<size_t> turns_;  // by stage: the batch that an ordered stage takes next
  std::vector<Piece> pieces_;
  std::vector<double> read_ns_;
  std::vector<size_t> ended_;
  size_t next_read_ = 0;
  size_t cause_ = kNothing, last_piece_ = kNothing;
  double now_ = 0;
};

}  // namespace

double work_rate(const PipelineModel& model, double demand) {
  return Simulation::rate_at(model, demand);
}

PipelineOutcome simulate(const PipelineModel& model) {
  return Simulation(model).run();
}

}  // namespace strobe::analyze
