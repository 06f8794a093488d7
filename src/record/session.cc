// Start, stop and fork: which recorder the process has.
#include <errno.h>
#include <pthread.h>

#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>

#include "record/gpu_collection.h"
#include "record/names.h"
#include "record/recorder.h"
#include "record/thread_log.h"
#include "strobe/record/annotate.h"

namespace strobe::record {
namespace {

constexpr size_t kMaxRingBytes = size_t{1} << 30;

// Never destroyed: threads may record until the process is gone.
struct Sessions {
  std::mutex mutex;
  Recorder* recorder = nullptr;
  uint32_t last_number = 0;
  Options options;
  ClockPair calibration;
  bool restart = false;  // in a forked child: the recording goes on at the first record
  std::optional<Error> restart_failure;
};
Sessions& sessions() {
  static auto* made = new Sessions;
  return *made;
}

void before_fork() {
  Sessions& all = sessions();
  all.mutex.lock();
  if (all.recorder != nullptr) all.recorder->before_fork();
  NameTable::instance().before_fork();
}

void after_fork_in_parent() {
  Sessions& all = sessions();
  NameTable::instance().after_fork(false);
  if (all.recorder != nullptr) all.recorder->after_fork_in_parent();
  all.mutex.unlock();
}

void after_fork_in_child() {
  Sessions& all = sessions();
  NameTable::instance().after_fork(true);
  if (all.recorder != nullptr) {
    // The parent's recorder is left as it lies: its drain thread does not exist here. A child that goes on to exec
    // pays nothing more.
    all.recorder->after_fork_in_child();
    all.recorder = nullptr;
    all.restart = true;
    active_session.store(++all.last_number);
  }
  all.mutex.unlock();
}

void install_handlers() {
  static const bool done = [] {
    ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
    std::atexit([] {
      if (recording()) (void)stop();
    });
    return true;
  }();
  (void)done;
}

}  // namespace

std::unique_lock<std::mutex> lock_sessions() {
  return std::unique_lock(sessions().mutex);
}

Recorder* recorder_to_join() {
  Sessions& all = sessions();
  if (!all.restart) return all.recorder;
  all.restart = false;
  auto made = Recorder::open(all.options, &all.calibration);
  if (made) {
    all.recorder = made->release();
  } else {
    all.restart_failure = std::move(made).error();
    active_session.store(0);
  }
  return all.recorder;
}

Result<void> start(const Options& options) {
  if (options.folder.empty()) return usage_error("record: no folder to record into");
  if (options.drain_period_ms < 1)
    return usage_error("record: drain period " + std::to_string(options.drain_period_ms) + " ms, expected 1 or more");
  if (options.sync_period_ms < 0)
    return usage_error("record: sync period " + std::to_string(options.sync_period_ms) +
                       " ms, expected 0 (none) or more");
  if (options.ring_bytes > kMaxRingBytes)
    return usage_error("record: ring of " + std::to_string(options.ring_bytes) + " bytes, expected at most " +
                       std::to_string(kMaxRingBytes));
  Sessions& all = sessions();
  {
    const std::lock_guard lock(all.mutex);
    if (active_session.load() != 0) return usage_error("record: already recording into " + all.options.folder.string());
    std::error_code failed;
    std::filesystem::create_directories(options.folder, failed);
    if (failed) return io_error("cannot make the folder " + options.folder.string() + ": " + failed.message());
    install_handlers();
    Options kept = options;
    kept.folder = std::filesystem::absolute(options.folder, failed);
    if (kept.process_name.empty()) kept.process_name = program_invocation_short_name;
    STROBE_ASSIGN(auto recorder, Recorder::open(kept, nullptr));
    all.options = std::move(kept);
    all.calibration = recorder->first_pair();
    all.recorder = recorder.release();
    all.restart_failure.reset();
    active_session.store(++all.last_number);
  }
  current_log();  // this thread's ring, now rather than in its first range
  if (options.gpu) start_gpu_collection(all.options.folder);
  return {};
}

Result<Totals> stop() {
  stop_gpu_collection();
  Sessions& all = sessions();
  std::unique_ptr<Recorder> recorder;
  {
    const std::lock_guard lock(all.mutex);
    active_session.store(0);
    all.restart = false;
    recorder.reset(all.recorder);
    all.recorder = nullptr;
    if (all.restart_failure) {
      Error error = std::move(*all.restart_failure);
      all.restart_failure.reset();
      return error;
    }
  }
  return recorder ? recorder->finish() : Totals{};
}

bool recording() {
  return active_session.load(std::memory_order_relaxed) != 0;
}

}  // namespace strobe::record
