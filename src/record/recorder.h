// One recording of this process: its files, its threads' rings and the drain thread between them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "record/ring.h"
#include "record/spool_file.h"
#include "record/thread_log.h"
#include "strobe/record/annotate.h"

namespace strobe::record {

class Recorder {
 public:
  // Makes the files and starts the drain. `calibration`: an earlier clock pair of this machine, or null.
  static Result<std::unique_ptr<Recorder>> open(const Options& options, const ClockPair* calibration);
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;
  ~Recorder();

  // A ring for a new thread, if need be after a short wait for those of threads that ended. Errors: kIo.
  Result<std::shared_ptr<Ring>> add_thread(int32_t tid);
  // Drains everything and completes the files; the rings' files go, unless the spool could not take what is in them.
  Result<Totals> finish();

  bool counter_clock() const { return counter_; }
  bool block_when_full() const { return options_.block_when_full; }
  const ClockPair& first_pair() const { return first_pair_; }
  const std::shared_ptr<DrainBell>& bell() const { return bell_; }

  void before_fork() { mutex_.lock(); }
  void after_fork_in_parent() { mutex_.unlock(); }
  // The child leaves this object alone from here on; its memory no longer is the parent's files.
  void after_fork_in_child();

 private:
  Recorder() = default;
  Result<void> open_files(const ClockPair* calibration);
  void remove_files();
  Result<std::shared_ptr<Ring>> make_ring();
  void wait_for_spare_ring();
  void drain_loop();
  void sync_loop();
  void stop_sync();
  bool drain_all(bool final);
  bool drain(Ring& ring);
  bool end_ring(Ring& ring);
  bool write(BlockKind kind, uint32_t serial, uint64_t from, uint64_t to, std::span<const uint8_t> payload,
             bool compress = false);
  template <typename T>
  bool write_value(BlockKind kind, uint32_t serial, uint64_t to, const T& value);

  Options options_;
  std::string stem_;  // of the files' names
  bool counter_ = false;
  ClockPair first_pair_;
  std::unique_ptr<SpoolFile> spool_;

  std::mutex mutex_;  // of the lists of rings
  std::vector<std::shared_ptr<Ring>> rings_;
  std::vector<std::shared_ptr<Ring>> spare_;  // of threads that ended
  uint32_t last_serial_ = 0;
  uint32_t ring_files_ = 0;

  std::thread drain_thread_;
  std::shared_ptr<DrainBell> bell_ = std::make_shared<DrainBell>();
  std::atomic<bool> stop_{false};

  // Where a sync is asked for: beside the drain, which must not wait for the disk.
  std::thread sync_thread_;
  std::mutex sync_mutex_;
  std::condition_variable sync_wake_;
  bool sync_stop_ = false;
  std::optional<Error> sync_failure_;

  // The drain's own.
  std::vector<uint8_t> encoded_;
  uint64_t records_ = 0;
  uint64_t dropped_ = 0;
  uint64_t unattached_before_ = 0;
  int64_t retry_at_ns_ = 0;
  std::optional<Error> failure_;
};

// The process's recorder (session.cc). Locks out start, stop and fork while a thread joins.
std::unique_lock<std::mutex> lock_sessions();
// To be called with the lock: the recorder that new threads join, made now in a forked child; null when none.
Recorder* recorder_to_join();

}  // namespace strobe::record
