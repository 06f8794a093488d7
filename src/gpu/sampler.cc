#include "gpu/sampler.h"

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <utility>

#include "record/gpu_collection.h"
#include "strobe/record/annotate.h"

namespace strobe::gpu {
namespace {

constexpr int64_t kFlush_ns = 1'000'000'000;
constexpr int64_t kLeastShare = 10;  // of a core: one in so many

int64_t now_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

std::string with_digits(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

}  // namespace

Result<std::unique_ptr<Sampler>> Sampler::start(const SamplerOptions& options) {
  STROBE_ASSIGN(Nvml nvml, Nvml::open());
  STROBE_ASSIGN(const Nvml::Devices devices, nvml.visible_devices());
  STROBE_ASSIGN(auto log, LogWriter::create(options.folder));
  std::unique_ptr<Sampler> sampler(new Sampler(std::move(nvml), std::move(log), options));
  sampler->describe(devices);
  sampler->look();
  sampler->thread_ = std::thread([one = sampler.get()] { one->run(); });
  return sampler;
}

Sampler::Sampler(Nvml nvml, std::unique_ptr<LogWriter> log, const SamplerOptions& options)
    : options_(options), nvml_(std::move(nvml)), processes_(options.proc), log_(std::move(log)) {}

void Sampler::describe(const Nvml::Devices& devices) {
  log_->add(Fact{"gpu.sampler", "nvml"});
  log_->add(Fact{"gpu.sampling", "on: NVML of driver " + nvml_.driver_version() + " (" + nvml_.path() + ")"});
  log_->add(Fact{"gpu.sampling.period_ms", std::to_string(options_.period.count())});
  if (!processes_.are_ours())
    log_->add(
        Fact{"gpu.process_numbers",
             "this is a pid namespace of its own: only processes with a number that is here, and an NVIDIA device "
             "open, are told apart; the others are summed up"});
  for (size_t i = 0; i < devices.notes.size(); ++i)
    log_->add(Fact{"gpu.sampling.note." + std::to_string(i), devices.notes[i]});
  for (const NvmlDevice& device : devices.list) {
    readers_.emplace_back(nvml_, device, processes_);
    Device record;
    record.id = device.index;
    record.name = log_->intern(device.name);
    record.uuid = device.uuid_bytes();
    record.memory_bytes = readers_.back().memory_bytes();
    log_->add(record);
    if (!device.uuid.empty()) log_->add(Fact{"gpu." + std::to_string(device.index) + ".uuid", device.uuid});
  }
}

void Sampler::run() {
  // Signals are the program's main thread's.
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  ::pthread_setname_np(::pthread_self(), "strobe gpu");
  std::unique_lock lock(mutex_);
  int64_t took_ns = 0;
  while (!stop_) {
    const std::chrono::nanoseconds rest = std::max<std::chrono::nanoseconds>(
        options_.period - std::chrono::nanoseconds(took_ns), std::chrono::nanoseconds((kLeastShare - 1) * took_ns));
    if (wake_.wait_for(lock, rest, [this] { return stop_; })) return;
    lock.unlock();
    const int64_t before = now_ns();
    look();
    took_ns = now_ns() - before;
    lock.lock();
  }
}

void Sampler::look() {
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

void Sampler::finish() {
  look();
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

Sampler::~Sampler() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_all();
  thread_.join();
  finish();
  record::mark_clock();
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
