#include "tenants/tenant_run.h"

#include <fmt/format.h>
#include <pthread.h>

#include <unistd.h>
#include <csignal>
#include <cstring>
#include <deque>
#include <new>
#include <thread>
#include <utility>

#include "base/tenant_words.h"
#include "collect/core_set.h"
#include "pipeline/bounded_queue.h"
#include "record/nvtx_ranges.h"
#include "strobe/record/annotate.h"
#include "tenants/device_turns.h"
#include "tenants/frame_stream.h"
#include "tenants/live_stream.h"
#include "tenants/prediction_file.h"
#include "tenants/task.h"
#include "tenants/thread_clock.h"
#include "tenants/thread_priority.h"

namespace strobe::tenants {
namespace {

namespace words = tenant_words;

constexpr int kMostFailures = 5;  // frames in a row, after which the tenant gives up

// A frame of the timeline on its way: as many of the sensor's as are inferred together.
struct Item {
  int64_t frame = 0;
  uint64_t id = 0;         // of its range
  uint64_t hand_over = 0;  // of the flow from the source
  int64_t stamp_ns = 0;    // when the first of them was due
  std::vector<SensorFrame> batch;
};
using Queue = pipeline::BoundedQueue<Item>;

struct FrameNames {
  explicit FrameNames(const std::string& tenant) : of_tenant(tenant, words::kTenantDomain), depth("queue:" + tenant) {}
  record::Category of_tenant;
  record::Name depth;
  record::Name frame{words::kFrame}, outcome{words::kOutcome}, comm{words::kCommNs}, blocked{words::kBlockedNs},
      deadline{words::kDeadlineNs}, token{words::kToken}, stamp{words::kStampNs}, drop{words::kDrop},
      reason{words::kReason}, not_sent{words::kNotSent}, publish{"publish"}, hand_over{"hand-over"}, cpu{words::kCpuNs},
      runnable{words::kRunnableNs};
};

// A repeatable number from 0 to 1 (splitmix64).
double uniform(uint64_t seed, uint64_t stream, uint64_t index) {
  uint64_t x = seed * 0x9e3779b97f4a7c15ULL + stream * 0xd1b54a32d192ed03ULL + index;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1.0p-53;
}

class TenantRun {
 public:
  explicit TenantRun(const TenantPlace& place)
      : place_(place),
        spec_(place.spec()),
        status_(place.status()),
        names_(spec_.name),
        queue_(static_cast<size_t>(spec_.queue)) {}

  Result<void> load() {
    name_thread("tenant " + spec_.name);
    if (!spec_.cores.empty()) STROBE_TRY(collect::bind_to_cores(spec_.cores));
    prioritize();
    STROBE_ASSIGN(const StreamNeeds needs, needs_of(spec_.model));
    STROBE_ASSIGN(stream_, open_stream(spec_.source, needs, place_.cell->seed));
    STROBE_ASSIGN(task_, open_task(spec_, stream_->frame(0)));
    if (spec_.memory_limit > 0 && place_.cell->isolation == Isolation::kThreads)
      note(spec_.name + ": memory_limit is not watched among threads; it is that of a process (isolation: processes)");
    for (const std::string& text : stream_->notes()) note(text);
    for (const std::string& text : task_->notes()) note(text);
    record_facts();
    return {};
  }

  Result<void> run() {
    const int64_t begin = place_.board->begin_ns.load();
    // However the work ends, by an exception of an engine, too, the source's thread ends with it.
    struct Source {
      std::thread thread;
      Queue& queue;
      ~Source() {
        queue.cancel();
        thread.join();
      }
    } source{std::thread([this, begin] { send_all(begin); }), queue_};
    return take_all();
  }

 private:
  void note(const std::string& text) {
    notes_ += text + "\n";
    write_text(status_.notes, notes_);
  }

  static void name_thread(const std::string& name) {
    record::name_thread(name);
    ::pthread_setname_np(::pthread_self(), name.substr(0, 15).c_str());
  }

  // Where the system refuses, the run goes on without, and says so.
  void prioritize() {
    if (auto set = set_thread_priority(spec_.nice, spec_.realtime); !set)
      note(spec_.name + ": " + set.error().message());
  }

  void record_facts() const {
    const std::string prefix = words::kTenantFact + spec_.name + ".";
    record::fact(prefix + "model_type", task_->model_type());
    record::fact(prefix + "model_name", task_->model_name());
    record::fact(prefix + "pid", std::to_string(::getpid()));
  }

  // The source's thread.
  void send_all(int64_t begin) {
    name_thread("source " + spec_.name);
    prioritize();
    const double period = 1e9 / spec_.rate_hz;
    const auto end = begin + static_cast<int64_t>((place_.cell->warmup_s + place_.cell->duration_s) * 1e9);
    if (LiveStream* live = stream_->live()) {
      pass_on(*live, begin, end, period);
      finish_sending();
      return;
    }
    for (int64_t k = 0;; ++k) {
      const double jitter = 1e6 * spec_.jitter_ms * uniform(place_.cell->seed, place_.index, static_cast<uint64_t>(k));
      const int64_t due =
          begin + static_cast<int64_t>(1e6 * spec_.offset_ms + static_cast<double>(k) * period + jitter);
      if (due >= end || !sleep_until(due, place_.board->stop)) break;
      take_from_stream(k, due);
    }
    finish_sending();
  }

  // What is queued at the end is still worked on: a batch that is not full, too.
  void finish_sending() {
    if (!gathered_.empty()) send(sent_++, gathered_due_, std::exchange(gathered_, {}));
    queue_.close();
  }

  // Frames of a topic, as they come. Where none came although one was due by the tenant's rate, that is marked.
  void pass_on(LiveStream& live, int64_t begin, int64_t end, double period) {
    using std::chrono::milliseconds;
    if (!sleep_until(begin, place_.board->stop)) return;
    for (;;) {  // what came before the common start
      auto early = live.wait(milliseconds(0));
      if (!early || !*early) break;
    }
    constexpr milliseconds kLook(20);
    constexpr double kLate = 1.5;  // periods
    int64_t missing = 0;
    double last = static_cast<double>(begin);
    while (monotonic_ns() < end && !place_.board->stop) {
      auto came = live.wait(kLook);
      if (!came) {
        if (++unreadable_ == 1) unreadable_why_ = came.error().to_string();
        continue;
      }
      const int64_t now = monotonic_ns();
      for (const double until = static_cast<double>(*came ? now - (*came)->comm_ns : now);
           last + kLate * period < until; last += period)
        if (++missing % spec_.batch == 0) record::mark(names_.not_sent, sent_++, names_.of_tenant);
      if (!*came || now >= end) continue;
      last = static_cast<double>(now - (*came)->comm_ns);
      gather(now - (*came)->comm_ns, std::move((*came)->frame));
    }
  }

  void take_from_stream(int64_t index, int64_t due) {
    if (planted(FaultSpec::Kind::kSensorStops, index)) {
      if (index % spec_.batch == 0) record::mark(names_.not_sent, sent_++, names_.of_tenant);
      return;
    }
    const bool repeats = planted(FaultSpec::Kind::kSensorRepeats, index);
    gather(due, stream_->frame(repeats ? spec_.fault.after - 1 : index));
  }

  // Sends a batch when it is complete. Waiting for its later members is a part of the communication delay, which
  // counts from its first one.
  void gather(int64_t due, SensorFrame input) {
    if (gathered_.empty()) gathered_due_ = due;
    gathered_.push_back(std::move(input));
    if (static_cast<int64_t>(gathered_.size()) == spec_.batch)
      send(sent_++, gathered_due_, std::exchange(gathered_, {}));
  }

  void send(int64_t frame, int64_t due, std::vector<SensorFrame> batch) {
    Item item{.frame = frame,
              .id = record::new_id(),
              .hand_over = record::new_id(),
              .stamp_ns = due,
              .batch = std::move(batch)};
    const int64_t now = monotonic_ns();
    record::async_begin(names_.frame, item.id, frame, names_.of_tenant,
                        {{names_.comm, std::max<int64_t>(0, now - due)},
                         {names_.blocked, blocked_since(due)},
                         {names_.deadline, static_cast<int64_t>(1e6 * spec_.deadline_ms)},
                         {names_.token, std::string_view(item.batch[0].token)},
                         {names_.stamp, item.batch[0].stamp_ns}});
    const record::Range publish(names_.publish, frame);
    record::flow_out(names_.hand_over, item.hand_over);
    ++status_.sent;
    if (spec_.drop == QueueDrop::kOldest) {
      if (auto displaced = queue_.push_or_displace(std::move(item)))
        drop(*displaced, spec_.queue == 1 ? words::kOverwritten : words::kDropped,
             spec_.queue == 1 ? words::kOverwritten : "oldest");
    } else if (spec_.drop == QueueDrop::kNewest) {
      if (!queue_.try_push(item)) drop(item, words::kDropped, "newest");
    } else {
      if (!queue_.push(std::move(item))) return;  // cancelled: the frame is lost with the tenant
      const int64_t end = monotonic_ns();
      blocked_.push_back({now, end, (blocked_.empty() ? 0 : blocked_.back().sum) + end - now});
    }
    record::counter(names_.depth, static_cast<int64_t>(queue_.size()));
  }

  // How long the source has waited for room in the queue, with earlier frames, since this one was due.
  int64_t blocked_since(int64_t due) {
    const int64_t all = blocked_.empty() ? 0 : blocked_.back().sum;
    while (blocked_.size() > 1 && blocked_.front().to <= due) blocked_.pop_front();  // the last one has the sum
    const auto first =
        std::partition_point(blocked_.begin(), blocked_.end(), [due](const Blocked& wait) { return wait.to <= due; });
    if (first == blocked_.end()) return 0;
    return all - first->sum + first->to - std::max(first->from, due);
  }

  void drop(const Item& item, const char* outcome, const char* reason) {
    record::flow_in(names_.hand_over, item.hand_over);  // it ends here: nothing of it is lost
    record::mark(names_.drop, item.frame, names_.of_tenant, {{names_.reason, reason}});
    record::async_end(names_.frame, item.id, {{names_.outcome, outcome}});
    ++status_.dropped;
  }

  bool planted(FaultSpec::Kind kind, int64_t frame) const {
    return spec_.fault.kind == kind && frame >= spec_.fault.after && spec_.fault.after > 0;
  }

  // What the tenant's operations hold.
  std::string resource(bool turns) const {
    if (turns) return "device";
    return spec_.device == "cpu" ? cpu_resource(spec_) : spec_.device;
  }

  // The worker's own thread.
  Result<void> take_all() {
    ThreadClock clock;
    const bool turns = place_.arbiter->takes_turns();
    RecordedTurns device(place_, task_->pieces(), resource(turns), clock);
    STROBE_ASSIGN(auto file, PredictionFile::create(place_.predictions, task_->model_type()));
    int failures = 0;
    for (;;) {
      status_.waiting = true;
      status_.alive_ns = monotonic_ns();
      auto item = queue_.pop();
      if (!item) break;
      status_.alive_ns = monotonic_ns();
      status_.waiting = false;
      record::counter(names_.depth, static_cast<int64_t>(queue_.size()));
      break_if_planted(item->frame);
      auto predictions = work(*item, device, clock);
      device.release();
      if (predictions) {
        record::async_end(names_.frame, item->id, {{names_.outcome, words::kFinished}});
        ++status_.finished;
        failures = 0;
        for (size_t i = 0; i < predictions->size(); ++i)
          STROBE_TRY(file.add(item->frame, item->batch[i], (*predictions)[i]));
        continue;
      }
      record::mark(names_.drop, item->frame, names_.of_tenant, {{names_.reason, words::kFailed}});
      record::async_end(names_.frame, item->id, {{names_.outcome, words::kFailed}});
      ++status_.failed;
      if (failed_why_.empty()) {
        failed_why_ = fmt::format("frame {}: {}", item->frame, predictions.error().to_string());
        note(spec_.name + ": " + failed_why_);
      }
      if (++failures >= kMostFailures)
        return std::move(predictions).error().at(fmt::format("{} frames in a row failed", kMostFailures));
    }
    STROBE_TRY(file.close());
    return sum_up_failures();
  }

  // Some frames without a result are told; none with one is no success. The source's thread has ended.
  Result<void> sum_up_failures() {
    const int64_t failed = status_.failed, finished = status_.finished;
    if (finished == 0 && failed > 0)
      return bad_data(fmt::format("each of the {} frames failed, the first: {}", failed, failed_why_));
    if (finished == 0 && unreadable_ > 0)
      return bad_data(
          fmt::format("none of the {} messages could be read, the first: {}", unreadable_, unreadable_why_));
    if (failed > 0) note(fmt::format("{}: {} of {} frames failed", spec_.name, failed, status_.sent.load()));
    if (unreadable_ > 0)
      note(fmt::format("{}: {} messages could not be read, the first: {}", spec_.name, unreadable_, unreadable_why_));
    return {};
  }

  // A stage's range with what the thread had of the cores meanwhile; NVTX tools see it, too.
  template <typename Work>
  auto stage(const char* name, const record::Name& range_name, const Item& item, ThreadClock& clock,
             const Work& work_of_it) {
    static const record::NvtxDomain domain = record::nvtx_domain("strobe.tenant");
    record::nvtx_push(domain, name, 0, spec_.name);
    const ThreadTimes before = clock.read();
    record::Range range(range_name, item.frame, names_.of_tenant);
    if (item.hand_over != 0) record::flow_in(names_.hand_over, item.hand_over);
    auto result = work_of_it();
    const ThreadTimes after = clock.read();
    range.arg(names_.cpu, after.cpu_ns - before.cpu_ns).arg(names_.runnable, after.runnable_ns - before.runnable_ns);
    range.end();
    record::nvtx_pop(domain);
    status_.alive_ns = monotonic_ns();
    return result;
  }

  Result<std::vector<Prediction>> work(Item& item, RecordedTurns& device, ThreadClock& clock) {
    static const record::Name decode("decode"), prep("prep"), infer("infer"), post("post");
    STROBE_TRY(stage("decode", decode, item, clock, [&] { return task_->decode(item.batch); }));
    item.hand_over = 0;
    STROBE_TRY(stage("prep", prep, item, clock, [&] { return task_->prepare(); }));
    const auto deadline = static_cast<int64_t>(1e6 * spec_.deadline_ms);
    device.next_frame(item.frame, {spec_.priority, deadline > 0 ? item.stamp_ns + deadline : INT64_MAX});
    STROBE_TRY(stage("infer", infer, item, clock, [&] {
      auto done = task_->infer(device);
      device.release();
      return done;
    }));
    return stage("post", post, item, clock, [&] { return task_->finish(); });
  }

  void break_if_planted(int64_t frame) {
    if (planted(FaultSpec::Kind::kCrash, frame)) {
      ::signal(SIGSEGV, SIG_DFL);  // nobody is to catch it
      ::raise(SIGSEGV);
    }
    if (planted(FaultSpec::Kind::kExit, frame)) ::_exit(7);
    while (planted(FaultSpec::Kind::kHang, frame)) ::pause();
    if (planted(FaultSpec::Kind::kLeak, frame)) {
      constexpr size_t kLeak = size_t{32} << 20;
      leaked_.emplace_back(new char[kLeak]);
      std::memset(leaked_.back().get(), 1, kLeak);
    }
  }

  const TenantPlace& place_;
  const TenantSpec& spec_;
  TenantStatus& status_;
  const FrameNames names_;
  Queue queue_;
  std::unique_ptr<FrameStream> stream_;
  std::unique_ptr<Task> task_;
  std::string notes_, failed_why_;
  // Of the source's thread:
  int64_t unreadable_ = 0;  // messages of a topic
  std::string unreadable_why_;
  std::vector<SensorFrame> gathered_;  // of the next batch
  int64_t gathered_due_ = 0;
  int64_t sent_ = 0;  // the next frame's number
  struct Blocked {
    int64_t from, to;
    int64_t sum;  // of all until this one
  };
  std::deque<Blocked> blocked_;  // its waits for room in the queue that end after the next frame's due time
  std::vector<std::unique_ptr<char[]>> leaked_;
};

Result<void> load_and_run(const TenantPlace& place) {
  TenantStatus& status = place.status();
  TenantRun run(place);
  STROBE_TRY(run.load());
  status.alive_ns = monotonic_ns();
  status.phase = Phase::kReady;
  while (place.board->begin_ns == 0)
    if (!sleep_until(monotonic_ns() + 1'000'000, place.board->stop)) return {};
  status.phase = Phase::kRunning;
  return run.run();
}

}  // namespace

std::string cpu_resource(const TenantSpec& tenant) {
  return "cpu:" + (tenant.cores.empty() ? collect::allowed_core_list() : tenant.cores);
}

void run_tenant(const TenantPlace& place) {
  TenantStatus& status = place.status();
  status.pid = ::getpid();
  std::string fault;
  try {
    const auto ran = load_and_run(place);
    if (ran) {
      status.phase = Phase::kDone;
      return;
    }
    fault = ran.error().to_string();
  } catch (const std::bad_alloc&) {
    fault = "out of memory";
    if (place.spec().memory_limit > 0) fault += fmt::format(" (memory_limit: {} bytes)", place.spec().memory_limit);
  } catch (const std::exception& thrown) {
    fault = thrown.what();
  }
  write_text(status.message, fault);
  status.phase = Phase::kFailed;
}

}  // namespace strobe::tenants
