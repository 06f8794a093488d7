#include "gpu/metrics_sampler.h"

#include <pthread.h>

#include <cmath>
#include <condition_variable>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <mutex>
#include <utility>
#include <vector>

#include "gpu/clock_pair.h"
#include "gpu/log_file.h"
#include "gpu/metrics_device.h"
#include "gpu/probe.h"
#include "record/gpu_collection.h"
#include "strobe/record/annotate.h"

namespace strobe::gpu {
namespace {

constexpr auto kFlushPeriod = std::chrono::seconds(1);

using Devices = std::vector<std::unique_ptr<MetricsDevice>>;
struct Opened {
  Devices devices;
  std::vector<std::pair<CudaDevice, std::string>> refused;
};

// Errors: why none can be had.
Result<Opened> open_all(const CuptiMetrics& cupti, uint64_t period_ns) {
  STROBE_ASSIGN(const auto devices, cuda_devices());
  Opened opened;
  for (const CudaDevice& device : devices) {
    auto one = MetricsDevice::open(cupti, device, period_ns);
    if (one)
      opened.devices.push_back(std::move(*one));
    else
      opened.refused.emplace_back(device, one.error().to_string());
  }
  if (opened.devices.empty()) return unsupported(opened.refused.front().second);
  return opened;
}

std::string figures_of(const MetricsDevice& device) {
  std::string text;
  for (const ChosenMetric& one : device.choice().metrics())
    text += (text.empty() ? "" : ", ") + std::string(one.figure);
  return text;
}

std::string library_of(const CuptiMetrics& cupti) {
  return "CUPTI " + (cupti.version == 0 ? std::string("of unknown version") : std::to_string(cupti.version)) + " (" +
         cupti.path + ")";
}

double cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

class MetricsSampler::Work {
 public:
  Work(CuptiMetrics cupti, const MetricsOptions& options) : options_(options), cupti_(std::move(cupti)) {}
  // Errors: as MetricsSampler::start.
  Result<void> begin();
  void run();
  // False: the thread has not come to its end in time.
  bool stop();

 private:
  void describe(const Opened& opened);
  void write_clocks();
  template <typename Function>
  void each(Function function);
  void note_losses();
  void finish();

  const MetricsOptions options_;
  const CuptiMetrics cupti_;
  Devices devices_;
  std::unique_ptr<LogWriter> log_;
  struct Noted {
    uint64_t missing = 0, unreadable = 0, overflows = 0;
  };
  std::vector<Noted> noted_;

  std::mutex mutex_;
  std::condition_variable wake_, ended_;
  bool stop_ = false, has_ended_ = false;
};

Result<void> MetricsSampler::Work::begin() {
  const auto period_ns = static_cast<uint64_t>(std::chrono::nanoseconds(options_.period).count());
  STROBE_ASSIGN(Opened opened, open_all(cupti_, period_ns));
  for (auto one = opened.devices.begin(); one != opened.devices.end();) {
    if (auto started = (*one)->start(); !started) {
      opened.refused.emplace_back((*one)->device(), started.error().to_string());
      one = opened.devices.erase(one);
    } else {
      ++one;
    }
  }
  if (opened.devices.empty()) return unsupported(opened.refused.front().second);
  STROBE_ASSIGN(log_, LogWriter::create(options_.folder));
  describe(opened);
  devices_ = std::move(opened.devices);
  noted_.resize(devices_.size());
  return {};
}

void MetricsSampler::Work::describe(const Opened& opened) {
  log_->add(Fact{"gpu.sampler", "metrics"});
  log_->add(Fact{"gpu.metrics", "on: " + library_of(cupti_)});
  log_->add(Fact{"gpu.metrics.period_us", std::to_string(options_.period.count())});
  const auto add_device = [this](const CudaDevice& device) {
    Device record;
    record.id = static_cast<uint32_t>(device.number);
    record.name = log_->intern(device.name);
    record.uuid = device.uuid;
    log_->add(record);
    return "gpu." + std::to_string(device.number) + ".";
  };
  for (const auto& one : opened.devices) {
    const std::string prefix = add_device(one->device());
    log_->add(Fact{prefix + "chip", one->chip()});
    if (one->by_cycles())
      log_->add(Fact{prefix + "metrics.trigger", "a count of the system clock's cycles: the period is about right"});
    for (const ChosenMetric& metric : one->choice().metrics())
      log_->add(Fact{prefix + "metric." + metric.figure, metric.metric});
    const std::string missing = prefix + "not_measured.";
    for (const auto& [figure, why] : one->choice().left_out()) log_->add(Fact{missing + figure, why});
  }
  for (const auto& [device, why] : opened.refused) log_->add(Fact{add_device(device) + "metrics", "off: " + why});
  write_clocks();
  log_->flush();
}

void MetricsSampler::Work::write_clocks() {
  if (const auto pair = read_clock_pair(cupti_.timestamp)) log_->add(*pair);
}

// function(device, put)
template <typename Function>
void MetricsSampler::Work::each(Function function) {
  for (const auto& device : devices_) {
    std::vector<TextId> names;
    for (const ChosenMetric& metric : device->choice().metrics()) names.push_back(log_->intern(metric.figure));
    const auto number = static_cast<uint32_t>(device->device().number);
    function(*device, [&](uint64_t start_ns, const std::vector<double>& values) {
      for (size_t i = 0; i < values.size(); ++i)
        if (std::isfinite(values[i])) log_->add(Metric{{start_ns}, number, names[i], values[i]});
    });
  }
}

// What was lost since the last time.
void MetricsSampler::Work::note_losses() {
  for (size_t i = 0; i < devices_.size(); ++i) {
    const MetricsDevice& device = *devices_[i];
    const auto note = [this](const char* kind, uint64_t now, uint64_t& before) {
      if (now > before) log_->add(Loss{kind, now - before});
      before = now;
    };
    note("sample of GPU counters that is missing", device.missing(), noted_[i].missing);
    note("sample of GPU counters that could not be read", device.unreadable(), noted_[i].unreadable);
    note("full buffer of GPU counters in the hardware", device.overflows(), noted_[i].overflows);
  }
}

void MetricsSampler::Work::run() {
  // Signals are the program's main thread's.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ::pthread_setname_np(::pthread_self(), "strobe counters");
  using Clock = std::chrono::steady_clock;
  auto flush_due = Clock::now() + kFlushPeriod;
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, options_.read_period, [this] { return stop_; })) {
    lock.unlock();
    each([](MetricsDevice& device, const MetricsDevice::Put& put) { device.read(put); });
    if (Clock::now() >= flush_due) {
      write_clocks();
      note_losses();
      log_->flush();
      flush_due = Clock::now() + kFlushPeriod;
    }
    lock.lock();
  }
  lock.unlock();
  finish();
  lock.lock();
  has_ended_ = true;
  ended_.notify_all();
}

void MetricsSampler::Work::finish() {
  each([](MetricsDevice& device, const MetricsDevice::Put& put) { device.stop(put); });
  note_losses();
  write_clocks();
  for (const auto& device : devices_) {
    const std::string prefix = "gpu." + std::to_string(device->device().number) + ".metrics.";
    log_->add(Fact{prefix + "samples", std::to_string(device->samples())});
    if (!device->broken().empty()) log_->add(Fact{prefix + "broken", device->broken()});
    if (!device->clock_note().empty()) log_->add(Fact{prefix + "clock", device->clock_note()});
  }
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", cpu_s());
  log_->add(Fact{"gpu.metrics.cpu_s", text});
  log_->add(End{});
  log_.reset();
  devices_.clear();
}

bool MetricsSampler::Work::stop() {
  std::unique_lock lock(mutex_);
  stop_ = true;
  wake_.notify_all();
  return ended_.wait_for(lock, options_.stop_timeout, [this] { return has_ended_; });
}

Result<std::unique_ptr<MetricsSampler>> MetricsSampler::start(const MetricsOptions& options) {
  // The driver first: where there is none, that is the reason, and not a missing CUPTI.
  if (auto driver = probe_driver(); !driver) return std::move(driver).error();
  STROBE_ASSIGN(CuptiMetrics cupti, CuptiMetrics::load());
  auto work = std::make_shared<Work>(std::move(cupti), options);
  STROBE_TRY(work->begin());
  return std::unique_ptr<MetricsSampler>(new MetricsSampler(std::move(work)));
}

MetricsSampler::MetricsSampler(std::shared_ptr<Work> work)
    : work_(std::move(work)), thread_([one = work_] { one->run(); }) {}

MetricsSampler::~MetricsSampler() {
  if (work_->stop()) {
    thread_.join();
    record::mark_clock();
  } else {
    thread_.detach();
    if (record::recording()) record::fact("gpu.metrics.hangs", "CUPTI did not answer at the end");
  }
}

std::unique_ptr<MetricsSampler> start_metrics_or_say_why(const MetricsOptions& options) {
  auto sampler = MetricsSampler::start(options);
  if (!sampler) {
    record::fact("gpu.metrics", "off: " + sampler.error().to_string());
    return nullptr;
  }
  record::mark_clock();
  return std::move(*sampler);
}

MetricsProbe probe_metrics() {
  MetricsProbe result;
  auto driver = probe_driver();
  if (!driver) {
    result.line = driver.error().to_string();
    return result;
  }
  result.has_driver = true;
  const auto cupti = CuptiMetrics::load();
  if (!cupti) {
    result.line = cupti.error().to_string();
    return result;
  }
  const auto opened = open_all(*cupti, uint64_t{kMetricsPeriodUs} * 1000);
  if (!opened) {
    result.line = opened.error().to_string();
    return result;
  }
  result.works = true;
  for (const auto& one : opened->devices) {
    result.line += (result.line.empty() ? "" : "; ") + one->chip() + ": " + figures_of(*one);
    for (const auto& [figure, why] : one->choice().left_out())
      result.line.append("; no ").append(figure).append(", ").append(why);
  }
  for (const auto& [device, why] : opened->refused)
    result.line += "; GPU " + std::to_string(device.number) + ": " + why;
  return result;
}

}  // namespace strobe::gpu
