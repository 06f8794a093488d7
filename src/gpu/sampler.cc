#include "gpu/sampler.h"

#include <pthread.h>

#include <algorithm>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <list>
#include <mutex>
#include <utility>

#include "base/gpu_words.h"
#include "gpu/log_file.h"
#include "gpu/nvml.h"
#include "gpu/nvml_reader.h"
#include "record/gpu_collection.h"
#include "strobe/record/annotate.h"

namespace strobe::gpu {
namespace {

constexpr int64_t kFlush_ns = 1'000'000'000;
constexpr int64_t kLeastShare = 10;  // of a core: one in so many

int64_t now_ns(clockid_t clock = CLOCK_MONOTONIC) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string with_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

}  // namespace

class Sampler::Work {
 public:
  Work(Nvml nvml, Nvml::Devices devices, std::unique_ptr<LogWriter> log, const SamplerOptions& options)
      : options_(options),
        nvml_(std::move(nvml)),
        devices_(std::move(devices)),
        processes_(options.proc),
        log_(std::move(log)) {}
  void run();
  // False: the thread has not come to its end in time.
  bool stop();

 private:
  void describe();
  void look();
  void finish();

  const SamplerOptions options_;
  const Nvml nvml_;
  const Nvml::Devices devices_;
  ProcessNumbers processes_;
  std::list<NvmlReader> readers_;
  std::unique_ptr<LogWriter> log_;
  uint64_t looks_ = 0;
  int64_t busy_ns_ = 0, first_ns_ = 0, last_ns_ = 0, flushed_ns_ = 0;

  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  bool stop_ = false, has_ended_ = false;
};

void Sampler::Work::describe() {
  log_->add(Fact{"gpu.sampler", "nvml"});
  log_->add(Fact{"gpu.sampling", "on: NVML of driver " + nvml_.driver_version() + " (" + nvml_.path() + ")"});
  log_->add(Fact{"gpu.sampling.period_ms", std::to_string(options_.period.count())});
  if (!processes_.are_ours())
    log_->add(
        Fact{"gpu.process_numbers",
             "this is a pid namespace of its own: only processes with a number that is here, and an NVIDIA device "
             "open, are told apart; the others are summed up"});
  for (size_t i = 0; i < devices_.notes.size(); ++i)
    log_->add(Fact{"gpu.sampling.note." + std::to_string(i), devices_.notes[i]});
  for (const NvmlDevice& device : devices_.list) {
    readers_.emplace_back(nvml_, device, processes_);
    Device record;
    record.id = device.index;
    record.name = log_->intern(device.name);
    record.uuid = device.uuid_bytes();
    record.memory_bytes = readers_.back().memory_bytes();
    log_->add(record);
    const std::string prefix = "gpu." + std::to_string(device.index) + ".";
    if (!device.uuid.empty()) log_->add(Fact{prefix + "uuid", device.uuid});
    for (const NvmlInstance& one : device.instances) {
      const auto tell = [&](const std::string& name, const std::string& value) {
        if (!value.empty() && value != "0") log_->add(Fact{prefix + name, value});
      };
      const auto of_compute = [&](std::string_view name) {
        return gpu_words::of_instance(one.gpu_instance, one.compute_instance, name);
      };
      tell(of_compute("uuid"), one.uuid);
      tell(of_compute("name"), one.name);
      tell(of_compute("sm_count"), std::to_string(one.processors));
      tell(gpu_words::of_instance(one.gpu_instance, "memory_bytes"), std::to_string(one.memory_bytes));
    }
  }
}

void Sampler::Work::run() {
  // Signals are the program's main thread's.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ::pthread_setname_np(::pthread_self(), "strobe gpu");
  describe();
  std::unique_lock lock(mutex_);
  for (bool last = false; !last;) {
    last = stop_;  // before the look: one that was under way when the work ended tells nothing of its end
    lock.unlock();
    // The share is one of CPU time: waiting for a core costs none, and on a busy machine it would make samples few.
    const int64_t before = now_ns(), cpu_before = now_ns(CLOCK_THREAD_CPUTIME_ID);
    look();
    const int64_t took_ns = now_ns() - before, cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_before;
    lock.lock();
    const int64_t period_ns = std::chrono::nanoseconds(options_.period).count();
    // A driver that only makes us wait is left alone for as long as it took.
    const std::chrono::nanoseconds rest(std::max({period_ns - took_ns, (kLeastShare - 1) * cpu_ns, took_ns}));
    if (!last) wake_.wait_for(lock, rest, [this] { return stop_; });
  }
  finish();
  log_.reset();
  has_ended_ = true;
  ended_.notify_all();
}

bool Sampler::Work::stop() {
  std::unique_lock lock(mutex_);
  stop_ = true;
  wake_.notify_all();
  return ended_.wait_for(lock, options_.stop_timeout, [this] { return has_ended_; });
}

void Sampler::Work::look() {
  const int64_t before = now_ns();
  for (NvmlReader& reader : readers_) {
    const bool was_there = reader.lost().empty();
    const bool is_there = reader.read([&](int64_t time_ns, const char* name, double value, uint32_t pid) {
      log_->add(Sample{time_ns, reader.device().index, log_->intern(name), value, pid});
    });
    if (was_there && !is_there)
      log_->add(Fact{"gpu." + std::to_string(reader.device().index) + ".lost", reader.lost()});
  }
  const int64_t after = now_ns();
  if (after - flushed_ns_ > kFlush_ns) {
    log_->flush();
    flushed_ns_ = after;
  }
  if (looks_++ == 0) first_ns_ = before;
  last_ns_ = before;
  busy_ns_ += after - before;
}

void Sampler::Work::finish() {
  for (const NvmlReader& reader : readers_) {
    const std::string prefix = "gpu." + std::to_string(reader.device().index) + ".";
    for (const auto& [figure, why] : reader.not_measured()) log_->add(Fact{prefix + "not_measured." + figure, why});
    if (reader.failed() > 0) log_->add(Loss{"reading of NVML that failed", reader.failed()});
    log_->add(Fact{prefix + "power_source", reader.power_source()});
  }
  log_->add(Fact{"gpu.sampling.looks", std::to_string(looks_)});
  log_->add(
      Fact{"gpu.sampling.ms_a_look", with_digits(static_cast<double>(busy_ns_) / 1e6 / static_cast<double>(looks_))});
  if (looks_ > 1)
    log_->add(Fact{"gpu.sampling.period_seen_ms",
                   with_digits(static_cast<double>(last_ns_ - first_ns_) / 1e6 / static_cast<double>(looks_ - 1))});
  log_->add(End{});
}

Result<std::unique_ptr<Sampler>> Sampler::start(const SamplerOptions& options) {
  STROBE_ASSIGN(Nvml nvml, Nvml::open());
  STROBE_ASSIGN(Nvml::Devices devices, nvml.visible_devices());
  STROBE_ASSIGN(auto log, LogWriter::create(options.folder));
  auto work = std::make_shared<Work>(std::move(nvml), std::move(devices), std::move(log), options);
  return std::unique_ptr<Sampler>(new Sampler(std::move(work)));
}

Sampler::Sampler(std::shared_ptr<Work> work) : work_(std::move(work)), thread_([one = work_] { one->run(); }) {}

Sampler::~Sampler() {
  if (work_->stop()) {
    thread_.join();
    record::mark_clock();
  } else {
    thread_.detach();
    if (record::recording()) record::fact("gpu.sampling.hangs", "NVML did not answer at the end");
  }
}

std::unique_ptr<Sampler> start_sampling_or_say_why(const SamplerOptions& options) {
  auto sampler = Sampler::start(options);
  if (!sampler) {
    std::error_code ignored;
    if (sampler.error().kind() != ErrorKind::kNotFound || std::filesystem::exists("/proc/driver/nvidia", ignored))
      record::fact("gpu.sampling", "off: " + sampler.error().to_string());
    return nullptr;
  }
  record::mark_clock();
  return std::move(*sampler);
}

}  // namespace strobe::gpu
