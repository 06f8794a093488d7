#include "bench/gpu_watch.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <utility>

#include "bench/figures.h"
#include "bench/gpu_meter.h"

namespace strobe::bench {
namespace {

using Time = std::chrono::steady_clock::time_point;

class Mean {
 public:
  void add(std::optional<double> value) {
    if (!value) return;
    sum_ += *value;
    ++count_;
  }
  Json json() const { return count_ == 0 ? Json() : Json(round_ms(sum_ / static_cast<double>(count_))); }

 private:
  double sum_ = 0;
  int64_t count_ = 0;
};

class Gpu {
 public:
  explicit Gpu(int id) : id_(id) {}
  int id() const { return id_; }
  bool seen() const { return samples_ > 0; }
  void add(GpuReading reading, Time now) {
    if (samples_++ > 0) add_energy(reading, std::chrono::duration<double>(now - time_).count());
    graphics_.add(reading.graphics_mhz);
    memory_.add(reading.memory_mhz);
    watts_.add(reading.watts);
    if (reading.throttled) throttled_.add(*reading.throttled ? 1 : 0);
    last_ = std::move(reading);
    time_ = now;
  }
  Json json() const {
    const bool by_counter = counted_ && (seconds_ >= kLeastCounted_s || !integral_);
    const std::optional<double>& joules = by_counter ? counted_ : integral_;
    return {{"id", id_},
            {"name", last_.name},
            {"graphics_mhz", graphics_.json()},
            {"memory_mhz", memory_.json()},
            {"watts", watts_.json()},
            {"energy_joules", joules ? Json(round_ms(*joules)) : Json()},
            {"energy_from", !joules ? Json() : Json(by_counter ? "counter" : "power")},
            {"throttled_share", throttled_.json()}};
  }

 private:
  // Counters move each 20 to 100 ms: what is shorter than some of that would be nothing, or twice as much.
  static constexpr double kLeastCounted_s = 0.5;

  void add_energy(GpuReading& reading, double seconds) {
    seconds_ += seconds;
    // Less than before: the driver was loaded anew. One that was not told once is told by the next.
    if (reading.joules && last_.joules)
      counted_ = counted_.value_or(0) + std::max(*reading.joules - *last_.joules, 0.0);
    if (!reading.joules) reading.joules = last_.joules;
    if (reading.watts && last_.watts) integral_ = integral_.value_or(0) + (*reading.watts + *last_.watts) / 2 * seconds;
  }

  int id_;
  int64_t samples_ = 0;
  double seconds_ = 0;
  GpuReading last_;
  Time time_;
  Mean graphics_, memory_, watts_, throttled_;
  std::optional<double> counted_, integral_;
};

}  // namespace

class GpuWatch::Work {
 public:
  explicit Work(const std::vector<int>& gpus) {
    for (const int id : gpus) gpus_.emplace_back(id);
  }

  void run() {
    auto meter = gpu_meter();
    std::unique_lock lock(mutex_);
    if (!meter) why_none_ = meter.error().to_string();
    for (bool first = true, last = !meter; !last; first = false) {
      // Before the look: one that was under way when the work ended tells nothing of its end. One alone has no energy.
      last = stop_ && !first;
      lock.unlock();
      bool any = false;
      for (Gpu& gpu : gpus_) {
        auto reading = (*meter)->read(gpu.id());
        if (!reading) continue;
        any = true;
        const std::lock_guard one(mutex_);
        gpu.add(std::move(*reading), std::chrono::steady_clock::now());
      }
      lock.lock();
      if (!any) break;
      if (!last) wake_.wait_for(lock, (*meter)->period(), [this] { return stop_; });
    }
    has_ended_ = true;
    wake_.notify_all();
  }

  // False: the thread has not come to its end in time.
  bool stop(std::chrono::milliseconds timeout) {
    std::unique_lock lock(mutex_);
    stop_ = true;
    wake_.notify_all();
    return wake_.wait_for(lock, timeout, [this] { return has_ended_; });
  }

  Seen seen() {
    const std::lock_guard lock(mutex_);
    Seen all{Json::array(), why_none_};
    for (const Gpu& gpu : gpus_) {
      if (gpu.seen())
        all.gpus.push_back(gpu.json());
      else if (why_none_.empty())
        all.missing += (all.missing.empty() ? "" : "; ") + ("GPU " + std::to_string(gpu.id()) + " does not answer");
    }
    return all;
  }

 private:
  std::mutex mutex_;  // of all below
  std::condition_variable wake_;
  std::vector<Gpu> gpus_;
  std::string why_none_;
  bool stop_ = false, has_ended_ = false;
};

GpuWatch::GpuWatch(const std::vector<int>& gpus, std::chrono::milliseconds timeout)
    : work_(std::make_shared<Work>(gpus)), timeout_(timeout), thread_([work = work_] { work->run(); }) {}

GpuWatch::~GpuWatch() {
  if (thread_.joinable()) (void)finish();
}

GpuWatch::Seen GpuWatch::finish() {
  if (work_->stop(timeout_)) {
    thread_.join();
    return work_->seen();
  }
  thread_.detach();
  Seen seen = work_->seen();
  seen.missing = "the driver did not answer at the end";
  return seen;
}

}  // namespace strobe::bench
