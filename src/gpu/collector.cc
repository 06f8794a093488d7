#include "gpu/collector.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <future>
#include <mutex>
#include <optional>
#include <set>
#include <string_view>
#include <thread>
#include <vector>

#include "gpu/buffer_pool.h"
#include "gpu/clock_pair.h"
#include "gpu/cupti_errors.h"
#include "gpu/decode.h"
#include "gpu/graph_captures.h"
#include "gpu/log_file.h"
#include "gpu/probe.h"
#include "gpu/replay_profiler.h"
#include "record/gpu_collection.h"
#include "record/high_file_numbers.h"

namespace strobe::gpu {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kClockPeriod = std::chrono::seconds(1);

// Threads of ours never take the program's signals.
class WithoutSignals {
 public:
  WithoutSignals() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  WithoutSignals(const WithoutSignals&) = delete;
  WithoutSignals& operator=(const WithoutSignals&) = delete;
  ~WithoutSignals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

bool wanted_driver_call(std::string_view name) {
  constexpr std::string_view kWanted[] = {"cuLaunch",         "cuGraphLaunch",      "cuMemcpy",
                                          "cuMemset",         "cuMemAlloc",         "cuMemFree",
                                          "cuMemHostAlloc",   "cuMemPrefetch",      "cuStreamSynchronize",
                                          "cuCtxSynchronize", "cuEventSynchronize", "cuStreamWaitEvent",
                                          "cuEventRecord"};
  for (const std::string_view wanted : kWanted)
    if (name.starts_with(wanted)) return true;
  return false;
}

// Those that frameworks make around every launch, and that do nothing.
bool is_idle_runtime_call(std::string_view name) {
  constexpr std::string_view kIdle[] = {"cudaGetDevice",
                                        "cudaGetDeviceCount",
                                        "cudaDeviceGetAttribute",
                                        "cudaGetLastError",
                                        "cudaPeekAtLastError",
                                        "cudaStreamIsCapturing",
                                        "cudaStreamGetCaptureInfo",
                                        "cudaThreadExchangeStreamCaptureMode",
                                        "cudaFuncGetAttributes",
                                        "cudaOccupancyMaxActiveBlocksPerMultiprocessor",
                                        "cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags"};
  const std::string_view plain = name.substr(0, name.find('_'));  // of "cudaGetDevice_v3020"
  return std::find(std::begin(kIdle), std::end(kIdle), plain) != std::end(kIdle);
}

// Calls take(number, name) for every function that this CUPTI knows in the domain.
template <typename Take>
void for_each_function(const Cupti& cupti, int domain, const Take& take) {
  constexpr uint32_t kMostFunctions = 2000;
  if (cupti.callback_name == nullptr) return;
  for (uint32_t function = 1; function < kMostFunctions; ++function) {
    const char* name = nullptr;
    if (cupti.callback_name(domain, function, &name) == cupti::kSuccess && name != nullptr) take(function, name);
  }
}

class Collector {
 public:
  static Result<std::unique_ptr<Collector>> start(const CollectOptions& options);
  CollectTotals stop();
  void buffer_requested(uint8_t** buffer, size_t* size, size_t* max_records);
  void buffer_completed(uint8_t* buffer, size_t valid_size);
  GraphCaptures& captures() { return captures_; }
  void abandon() { log_->abandon(); }

 private:
  Collector(const CollectOptions& options, const Cupti& cupti, Subscription subscription,
            std::unique_ptr<LogWriter> log)
      : options_(options),
        cupti_(cupti),
        subscription_(std::move(subscription)),
        captures_(cupti_),
        log_(std::move(log)),
        pool_({.buffer_bytes = options.buffer_bytes,
               .ready = std::min<size_t>(8, options.most_buffers),
               .most = options.most_buffers}),
        decoder_({text_in_memory, [this](std::string_view text) { return log_->intern(text); }}) {}

  Result<void> enable();
  cupti::Code enable_kind(uint32_t kind) const;
  void enable_driver_calls();
  void disable_idle_runtime_calls();
  void fact(std::string key, std::string value) { log_->add(Fact{std::move(key), std::move(value)}); }
  void run();
  void flush_loop();
  void decode_waiting();
  void decode(uint8_t* buffer, size_t valid_size);
  void add_call_name(const Call& call);
  void write_captures();
  void write_clocks();
  void note_losses();
  void note_complete(int64_t flushed_ns);
  bool flush_within(int timeout_ms);

  const CollectOptions options_;
  const Cupti cupti_;
  std::optional<Subscription> subscription_;
  GraphCaptures captures_;
  std::unique_ptr<LogWriter> log_;  // from the decoding thread only, once that runs
  BufferPool pool_;
  ActivityDecoder decoder_;
  std::set<std::pair<uint32_t, uint32_t>> named_;
  std::vector<uint32_t> enabled_;
  uint64_t records_ = 0, dropped_ = 0, scrapped_ = 0;
  DecodeFaults noted_;

  struct Full {
    uint8_t* buffer;
    size_t valid_size;
  };
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<Full> full_;
  std::atomic<int64_t> flushed_ns_{0};  // CUPTI's time of the last flush that returned
  std::atomic<bool> stopping_{false};
  std::thread decoding_, flushing_;
  std::mutex flush_mutex_;
  std::condition_variable flush_wake_;
};

// Never destroyed: CUPTI's threads may call to the very end. The callbacks of CUPTI have no word of their own.
std::atomic<Collector*> active{nullptr};
std::mutex& start_mutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
pid_t started_in = 0;

// What was stopped or refused stays: CUPTI may still hold its buffers, or be inside a call of ours with it.
void retire(Collector* collector) {
  static auto* const retired = new std::vector<Collector*>;
  retired->push_back(collector);
}

void on_requested(uint8_t** buffer, size_t* size, size_t* max_records) {
  *buffer = nullptr;
  *size = 0;
  *max_records = 0;  // as many as fit
  if (Collector* collector = active.load(std::memory_order_acquire))
    collector->buffer_requested(buffer, size, max_records);
}
void on_completed(void*, uint32_t, uint8_t* buffer, size_t, size_t valid_size) {
  Collector* collector = active.load(std::memory_order_acquire);
  if (collector != nullptr && buffer != nullptr) collector->buffer_completed(buffer, valid_size);
}

void on_callback(void*, int domain, uint32_t function, const void* data) {
  if (Collector* collector = active.load(std::memory_order_acquire)) collector->captures().take(domain, function, data);
}

Result<std::unique_ptr<Collector>> Collector::start(const CollectOptions& options) {
  if (!options.in_driver_start) {
    if (auto driver = probe_driver(); !driver) return std::move(driver).error();
  }
  STROBE_ASSIGN(const Cupti cupti, Cupti::load());
  STROBE_ASSIGN(Subscription subscription, Subscription::take(cupti, on_callback));
  const record::HighFileNumbers high;
  STROBE_ASSIGN(auto log, LogWriter::create(options.folder));
  const std::filesystem::path path = log->path();
  std::unique_ptr<Collector> collector(new Collector(options, cupti, std::move(subscription), std::move(log)));
  active.store(collector.get(), std::memory_order_release);
  if (auto enabled = collector->enable(); !enabled) {
    active.store(nullptr);
    collector->log_->abandon();
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
    collector->subscription_.reset();
    retire(collector.release());
    return std::move(enabled).error();
  }
  const WithoutSignals guard;
  collector->decoding_ = std::thread([raw = collector.get()] { raw->run(); });
  collector->flushing_ = std::thread([raw = collector.get()] { raw->flush_loop(); });
  return collector;
}

Result<void> Collector::enable() {
  fact("gpu.cupti_version", std::to_string(cupti_.version));
  if (cupti_.set_thread_id_type == nullptr || cupti_.set_thread_id_type(cupti::kSystemThreadIds) != cupti::kSuccess)
    fact("gpu.thread_ids", "not the kernel's: calls cannot be put under the ranges of their threads");
  if (cupti_.set_attribute != nullptr) {
    uint8_t zeroed = 1;
    size_t size = sizeof zeroed;
    cupti_.set_attribute(cupti::kZeroedOutBuffer, &size, &zeroed);
  }
  if (const auto code = cupti_.register_callbacks(on_requested, on_completed); code != cupti::kSuccess)
    return unsupported(cupti_error(code));
  write_clocks();
  std::vector<std::pair<uint32_t, const char*>> kinds{
      {cupti::kDevice, "device"},
      {cupti::kContext, "context"},
      {cupti::kStream, "stream"},
      {cupti::kName, "name"},
      {cupti::kRuntime, "runtime"},
      {cupti::kMemcpy, "memcpy"},
      {cupti::kMemcpy2, "memcpy2"},
      {cupti::kMemset, "memset"},
      {cupti::kSynchronization, "synchronization"},
      {cupti::kCudaEvent, "cuda_event"},
      {cupti::kOverhead, "overhead"},
      {cupti::kMemory2, "memory"},
      {cupti::kMemoryPool, "memory_pool"},
  };
  if (!options_.graph_nodes) kinds.emplace_back(cupti::kGraphTrace, "graph_trace");
  if (options_.markers) kinds.emplace_back(cupti::kMarker, "marker");
  // Last, so that what describes kernels comes before them.
  kinds.emplace_back(cupti::kConcurrentKernel, "kernel");
  for (const auto& [kind, name] : kinds) {
    const auto code = enable_kind(kind);
    if (code == cupti::kSuccess) {
      enabled_.push_back(kind);
      continue;
    }
    // Without kernels there is nothing to collect; anything else is a gap that the trace tells of.
    if (kind == cupti::kConcurrentKernel || code == cupti::kInsufficientPrivileges) {
      for (const uint32_t on : enabled_) cupti_.disable(on);
      return unsupported(cupti_error(code));
    }
    fact(std::string("gpu.not_collected.") + name, cupti_error(code));
  }
  // Before the program can capture anything.
  if (options_.graph_nodes && !captures_.enable(subscription_->handle()))
    fact("gpu.not_collected.graph_captures", "this CUPTI does not tell where the nodes of graphs come from");
  if (cupti_.enable_all_sync_records != nullptr) cupti_.enable_all_sync_records(0);
  disable_idle_runtime_calls();
  enable_driver_calls();
  if (cupti_.flush_period != nullptr) cupti_.flush_period(static_cast<uint32_t>(options_.flush_period_ms));
  fact("gpu.collection", "on");
  fact("gpu.flush_period_ms", std::to_string(options_.flush_period_ms));
  return {};
}

// Devices, contexts and streams are told of when they come into being: devices while the driver initialises itself.
// Those that are there already have to be asked for.
cupti::Code Collector::enable_kind(uint32_t kind) const {
  const bool exists_before = kind == cupti::kDevice || kind == cupti::kContext || kind == cupti::kStream;
  if (exists_before && !options_.in_driver_start && cupti_.enable_and_dump != nullptr &&
      cupti_.enable_and_dump(kind) == cupti::kSuccess)
    return cupti::kSuccess;
  return cupti_.enable(kind);
}

void Collector::disable_idle_runtime_calls() {
  if (cupti_.enable_runtime_api == nullptr) return;
  for_each_function(cupti_, cupti::kDomainRuntime, [this](uint32_t function, std::string_view name) {
    if (is_idle_runtime_call(name)) cupti_.enable_runtime_api(function, 0);
  });
}

// Libraries that launch through the driver (Triton, TensorRT, CUTLASS) are seen there only; of the driver's hundreds of
// calls those that do something on a device are enough, and half as many records.
void Collector::enable_driver_calls() {
  size_t chosen = 0;
  if (cupti_.enable_driver_api != nullptr) {
    for_each_function(cupti_, cupti::kDomainDriver, [&](uint32_t function, std::string_view name) {
      if (wanted_driver_call(name) && cupti_.enable_driver_api(function, 1) == cupti::kSuccess) ++chosen;
    });
  }
  if (chosen > 0) return;
  const auto code = cupti_.enable(cupti::kDriver);
  if (code == cupti::kSuccess)
    enabled_.push_back(cupti::kDriver);
  else
    fact("gpu.not_collected.driver", cupti_error(code));
}

void Collector::buffer_requested(uint8_t** buffer, size_t* size, size_t*) {
  uint64_t now = 0;
  cupti_.timestamp(&now);
  *buffer = pool_.take(static_cast<int64_t>(now));
  if (*buffer == nullptr) {
    // The decoding thread may have some ready soon.
    wake_.notify_one();
    if (cupti_.version < cupti::kFirstVersionThatTakesNoBuffer) *buffer = pool_.take_scrap();
  }
  *size = *buffer == nullptr ? 0 : pool_.buffer_bytes();
}

void Collector::buffer_completed(uint8_t* buffer, size_t valid_size) {
  {
    const std::lock_guard lock(mutex_);
    full_.push_back({buffer, valid_size});
  }
  wake_.notify_one();
}

void Collector::run() {
  ::pthread_setname_np(::pthread_self(), "strobe-gpu");
  auto clock_due = Clock::now();
  while (!stopping_.load()) {
    {
      std::unique_lock lock(mutex_);
      wake_.wait_for(lock, milliseconds(50), [this] { return !full_.empty() || stopping_.load(); });
    }
    decode_waiting();
    write_captures();
    pool_.refill();
    if (Clock::now() >= clock_due) {
      write_clocks();
      note_losses();
      if (const int64_t flushed = flushed_ns_.exchange(0); flushed != 0) note_complete(flushed);
      log_->flush();
      clock_due = Clock::now() + kClockPeriod;
    } else if (const int64_t flushed = flushed_ns_.exchange(0); flushed != 0) {
      note_complete(flushed);
      log_->flush();
    }
  }
}

// Apart from decoding: a flush waits for the device's side, and buffers must come back meanwhile.
void Collector::flush_loop() {
  ::pthread_setname_np(::pthread_self(), "strobe-gpuflush");
  std::unique_lock lock(flush_mutex_);
  while (!flush_wake_.wait_for(lock, milliseconds(options_.flush_period_ms), [this] { return stopping_.load(); })) {
    lock.unlock();  // never held while CUPTI is called: it may wait for what stop() does
    uint64_t now = 0;
    cupti_.timestamp(&now);
    if (cupti_.flush_all(0) == cupti::kSuccess) flushed_ns_.store(static_cast<int64_t>(now));
    wake_.notify_one();
    lock.lock();
  }
}

void Collector::decode_waiting() {
  for (;;) {
    Full full{};
    {
      const std::lock_guard lock(mutex_);
      if (full_.empty()) return;
      full = full_.front();
      full_.pop_front();
    }
    decode(full.buffer, full.valid_size);
    pool_.give_back(full.buffer, full.valid_size);
    pool_.refill();
  }
}

void Collector::decode(uint8_t* buffer, size_t valid_size) {
  const size_t valid = std::min(valid_size, pool_.buffer_bytes());
  const bool scrap = pool_.is_scrap(buffer);
  // A buffer of a collection before this one, which CUPTI kept, is no longer anybody's.
  if (!scrap && !pool_.is_taken(buffer)) return;
  Record record;
  const bool whole = walk_records(
      {reinterpret_cast<const std::byte*>(buffer), valid},
      [&](const std::byte*& at) {
        auto* raw = reinterpret_cast<uint8_t*>(const_cast<std::byte*>(at));
        if (valid == 0 || cupti_.next_record(buffer, valid, &raw) != cupti::kSuccess) return false;
        at = reinterpret_cast<const std::byte*>(raw);
        return true;
      },
      [&](std::span<const std::byte> bytes) {
        if (scrap) {
          ++scrapped_;
          return;
        }
        if (!decoder_.decode(bytes, record)) return;
        if (const auto* call = std::get_if<Call>(&record)) add_call_name(*call);
        log_->add(record);
        ++records_;
      });
  if (!whole) decoder_.count_broken_buffer();
  note_losses();
}

void Collector::add_call_name(const Call& call) {
  if (!named_.emplace(call.is_driver, call.function).second || cupti_.callback_name == nullptr) return;
  const char* name = nullptr;
  const int domain = call.is_driver != 0 ? cupti::kDomainDriver : cupti::kDomainRuntime;
  if (cupti_.callback_name(domain, call.function, &name) != cupti::kSuccess || name == nullptr) return;
  log_->add(FunctionName{call.is_driver, call.function, log_->intern(name)});
}

void Collector::write_captures() {
  const uint64_t lost = captures_.drain([this](const GraphNode& node) { log_->add(node); });
  if (lost > 0) log_->add(Loss{"node of a graph whose capture was not written", lost});
}

void Collector::write_clocks() {
  if (const auto pair = read_clock_pair(cupti_.timestamp)) log_->add(*pair);
}

// What was lost since the last time.
void Collector::note_losses() {
  if (cupti_.dropped_records != nullptr) {
    size_t dropped = 0;
    if (cupti_.dropped_records(nullptr, 0, &dropped) == cupti::kSuccess && dropped > 0) {
      dropped_ += dropped;
      log_->add(Loss{"dropped", dropped});
    }
  }
  if (scrapped_ > 0) {
    dropped_ += scrapped_;
    log_->add(Loss{"dropped", scrapped_});
    scrapped_ = 0;
  }
  const DecodeFaults& now = decoder_.faults();
  if (now.short_records > noted_.short_records)
    log_->add(Loss{"GPU record shorter than its kind", now.short_records - noted_.short_records});
  if (now.broken_buffers > noted_.broken_buffers)
    log_->add(Loss{"broken buffer of GPU records", now.broken_buffers - noted_.broken_buffers});
  for (const auto& [kind, count] : now.unknown_kinds)
    if (const uint64_t before = noted_.unknown_kinds[kind]; count > before)
      log_->add(Loss{"GPU record of unknown kind " + std::to_string(kind), count - before});
  noted_ = now;
}

// What CUPTI wrote before the oldest buffer that it still has was taken has come back, if a flush has returned since.
void Collector::note_complete(int64_t flushed_ns) {
  {
    const std::lock_guard lock(mutex_);
    if (!full_.empty()) return;
  }
  log_->add(Complete{{static_cast<uint64_t>(std::min(flushed_ns, pool_.outside().oldest_ns))}});
}

bool Collector::flush_within(int timeout_ms) {
  auto done = std::make_shared<std::promise<void>>();
  auto waiting = done->get_future();
  const WithoutSignals guard;
  std::thread([flush = cupti_.flush_all, done] {
    flush(cupti::kFlushForced);
    done->set_value();
  }).detach();
  return waiting.wait_for(milliseconds(timeout_ms)) == std::future_status::ready;
}

CollectTotals Collector::stop() {
  CollectTotals totals;
  uint64_t now = 0;
  cupti_.timestamp(&now);
  totals.flush_timed_out = !flush_within(options_.stop_timeout_ms);
  {
    // Under both locks, so that neither thread misses it between its look and its wait.
    const std::scoped_lock lock(mutex_, flush_mutex_);
    stopping_.store(true);
  }
  wake_.notify_all();
  flush_wake_.notify_all();
  decoding_.join();
  if (totals.flush_timed_out) {
    flushing_.detach();  // it may be inside the same call
  } else {
    flushing_.join();
    for (const uint32_t kind : enabled_) cupti_.disable(kind);
  }
  decode_waiting();
  active.store(nullptr);
  write_captures();
  note_losses();
  if (!totals.flush_timed_out) log_->add(Complete{{now}});
  write_clocks();
  log_->add(Fact{"gpu.buffers", std::to_string(pool_.allocated())});
  log_->add(Fact{"gpu.buffers_refused", std::to_string(pool_.refused())});
  log_->add(End{totals.flush_timed_out ? 1U : 0U});
  log_->flush();
  if (log_->lost() > 0) dropped_ += log_->lost();
  subscription_.reset();
  totals.records = records_;
  totals.dropped = dropped_;
  return totals;
}

Collector* started = nullptr;

}  // namespace

Result<void> start_collecting(const CollectOptions& options) {
  const std::lock_guard lock(start_mutex());
  if (started != nullptr && started_in == ::getpid()) return usage_error("GPU work is already being collected");
  STROBE_ASSIGN(auto collector, Collector::start(options));
  started = collector.release();
  started_in = ::getpid();
  static const bool once = [] {
    // CUDA does not survive fork, nor do our threads: a child collects nothing until it runs another program.
    ::pthread_atfork(nullptr, nullptr, [] {
      active.store(nullptr);
      if (started != nullptr) started->abandon();
    });
    // Registered after the driver's own handlers and thus called before them: it still answers.
    std::atexit([] { stop_collecting(); });
    return true;
  }();
  (void)once;
  return {};
}

CollectTotals stop_collecting() {
  const std::lock_guard lock(start_mutex());
  Collector* collector = std::exchange(started, nullptr);
  if (collector == nullptr) return {};
  retire(collector);
  return started_in == ::getpid() ? collector->stop() : CollectTotals{};
}

bool collecting() {
  return active.load() != nullptr;
}

bool graph_nodes_wanted() {
  const char* wanted = std::getenv(kGraphNodesVariable);
  return wanted != nullptr && std::string_view(wanted) == "1";
}

bool start_collecting_or_say_why(const CollectOptions& options) {
  const auto begun = start_collecting(options);
  if (begun) return true;
  if (auto log = LogWriter::create(options.folder)) {
    (*log)->add(Fact{"gpu.collection", "off: " + begun.error().to_string()});
    (*log)->add(End{});
  }
  return false;
}

void provide_to_recorder() {
  record::provide_gpu_collection({start_for_recorder, [] { stop_collecting(); }});
}

std::string start_for_recorder(const std::filesystem::path& folder) {
  // By this variable the driver brings the same collector in, for the trace around this process.
  const char* injected = std::getenv("CUDA_INJECTION64_PATH");
  if (injected != nullptr && std::filesystem::path(injected).filename() == "libstrobe_inject.so") {
    if (const char* replayed = std::getenv(kReplayVariable); replayed != nullptr && *replayed != 0)
      return "`strobe record` replays this process's kernels, and its trace has their counters";
    return "`strobe record` collects this process, and its trace has the GPU work";
  }
  CollectOptions options;
  options.folder = folder;
  const auto begun = start_collecting(options);
  return begun ? "" : begun.error().to_string();
}

}  // namespace strobe::gpu
