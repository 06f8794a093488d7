#include "record/recorder.h"

#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <system_error>

#include "record/encode.h"
#include "record/names.h"

namespace strobe::record {
namespace {

constexpr uint64_t kMinRingWords = 2048;
constexpr uint64_t kChunkWords = 32 << 10;     // of one block: 256 KiB of ring
constexpr int64_t kMaxAgeNs = 100'000'000;     // records stay in the ring alone no longer than this
constexpr int64_t kCalibrationNs = 2'000'000;  // between the first two clock pairs
constexpr int64_t kFirstClockNs = 20'000'000;  // then ten times as long until kClockPeriodNs
constexpr int64_t kClockPeriodNs = 1'000'000'000;
constexpr int64_t kRetryNs = 1'000'000'000;
constexpr size_t kMaxSpareRings = 16;
constexpr int kMostWaits = 200;  // of a new thread for the ring of one that ended: 20 ms in all
constexpr int64_t kWaitNs = 100'000;

template <size_t N>
void copy_text(char (&to)[N], std::string_view text) {
  const size_t bytes = std::min(text.size(), N - 1);
  std::memcpy(to, text.data(), bytes);
  to[bytes] = 0;
}

std::string unique_stem() {
  char text[64];
  std::snprintf(text, sizeof text, "%d-%llx", static_cast<int>(::getpid()),
                static_cast<unsigned long long>(monotonic_ns()));
  return text;
}

}  // namespace

Result<std::unique_ptr<Recorder>> Recorder::open(const Options& options, const ClockPair* calibration) {
  std::unique_ptr<Recorder> recorder(new Recorder);
  recorder->options_ = options;
  recorder->stem_ = unique_stem();
  auto opened = recorder->open_files(calibration);
  if (opened) {
    // Signals are for the program's own threads.
    sigset_t all;
    sigset_t before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      if (options.sync_period_ms > 0)
        recorder->sync_thread_ = std::thread([raw = recorder.get()] { raw->sync_loop(); });
      recorder->drain_thread_ = std::thread([raw = recorder.get()] { raw->drain_loop(); });
    } catch (const std::system_error& error) {
      recorder->stop_sync();
      opened = io_error(std::string("cannot start the drain thread: ") + error.what());
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  if (!opened) {
    recorder->remove_files();
    return std::move(opened).error();
  }
  return recorder;
}

Recorder::~Recorder() = default;

Result<void> Recorder::open_files(const ClockPair* calibration) {
  const std::filesystem::path base = options_.folder / stem_;
  STROBE_ASSIGN(spool_, SpoolFile::create(base.string() + ".spool"));
  STROBE_TRY(NameTable::instance().open_file(base.string() + ".names"));
  // The first ring now, so that a full disk is an error here.
  STROBE_ASSIGN(auto ring, make_ring());
  spare_.push_back(std::move(ring));

  ClockChoice clock = options_.use_counter ? choose_clock() : ClockChoice{false, "monotonic (asked for)"};
  counter_ = clock.counter;
  SpoolHeader& header = spool_->header();
  first_pair_ = calibration != nullptr ? *calibration : sample_clocks(counter_);
  if (calibration == nullptr && counter_) {
    const timespec pause{0, kCalibrationNs};
    ::nanosleep(&pause, nullptr);
  }
  header.first = first_pair_;
  header.second = sample_clocks(counter_);
  header.pid = ::getpid();
  header.clock_is_counter = counter_ ? 1 : 0;
  copy_text(header.process_name, options_.process_name);
  copy_text(header.clock_note, clock.note);
  publish_magic(header.magic, kSpoolMagic);
  unattached_before_ = unattached.dropped.load();
  return {};
}

void Recorder::remove_files() {
  NameTable::instance().close_file();
  for (const auto& ring : spare_) ring->remove_file();
  std::error_code ignored;
  std::filesystem::remove(options_.folder / (stem_ + ".names"), ignored);
  std::filesystem::remove(options_.folder / (stem_ + ".spool"), ignored);
}

Result<std::shared_ptr<Ring>> Recorder::make_ring() {
  const uint64_t words = std::max(kMinRingWords, std::bit_floor(options_.ring_bytes / 8));
  return Ring::create(options_.folder / (stem_ + "." + std::to_string(++ring_files_) + ".ring"), words);
}

// Threads that come and go faster than the drain gets to run would take a ring each.
void Recorder::wait_for_spare_ring() {
  for (int tries = 0; tries < kMostWaits && !bell_->stuck.load(std::memory_order_relaxed); ++tries) {
    {
      const std::lock_guard lock(mutex_);
      const auto left =
          std::count_if(rings_.begin(), rings_.end(), [](const auto& ring) { return ring->ended.load(); });
      if (!spare_.empty() || left < static_cast<std::ptrdiff_t>(kMaxSpareRings)) return;
    }
    bell_->ring();
    const timespec pause{0, kWaitNs};
    ::nanosleep(&pause, nullptr);
  }
}

Result<std::shared_ptr<Ring>> Recorder::add_thread(int32_t tid) {
  wait_for_spare_ring();
  const std::lock_guard lock(mutex_);
  if (spare_.empty()) {
    STROBE_ASSIGN(auto made, make_ring());
    spare_.push_back(std::move(made));
  }
  auto ring = std::move(spare_.back());
  spare_.pop_back();
  ring->assign(++last_serial_, tid);
  rings_.push_back(ring);
  return ring;
}

Result<Totals> Recorder::finish() {
  stop_.store(true);
  bell_->ring();
  drain_thread_.join();
  stop_sync();
  if (!failure_ && sync_failure_) failure_ = std::move(sync_failure_);
  Totals totals{records_, dropped_, spool_->bytes() + NameTable::instance().close_file()};
  if (failure_) {
    return std::move(*failure_).at("the recording is incomplete: " + std::to_string(totals.records) +
                                   " records are safe, " + std::to_string(totals.dropped) + " lost");
  }
  for (const auto& ring : rings_) ring->remove_file();
  for (const auto& ring : spare_) ring->remove_file();
  return totals;
}

// Makes what there is safe once a period, and once more at the end.
void Recorder::sync_loop() {
  ::pthread_setname_np(::pthread_self(), "strobe-sync");
  // The files' names, which are new in the folder, once.
  if (const int folder = ::open(options_.folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); folder >= 0) {
    ::fsync(folder);
    ::close(folder);
  }
  std::unique_lock lock(sync_mutex_);
  for (bool stopping = false; !stopping;) {
    stopping =
        sync_wake_.wait_for(lock, std::chrono::milliseconds(options_.sync_period_ms), [this] { return sync_stop_; });
    // Names first: no record that is safe may name what is not.
    auto synced = NameTable::instance().sync();
    if (synced) synced = spool_->sync();
    if (!synced) sync_failure_ = std::move(synced).error();
  }
}

void Recorder::stop_sync() {
  if (!sync_thread_.joinable()) return;
  {
    const std::lock_guard lock(sync_mutex_);
    sync_stop_ = true;
  }
  sync_wake_.notify_one();
  sync_thread_.join();
}

void Recorder::after_fork_in_child() {
  for (const auto& ring : rings_) ring->detach_from_file();
  for (const auto& ring : spare_) ring->detach_from_file();
  spool_->detach_from_file();
}

void Recorder::drain_loop() {
  ::pthread_setname_np(::pthread_self(), "strobe-drain");
  const int64_t period = int64_t{options_.drain_period_ms} * 1'000'000;
  int64_t clock_step = kFirstClockNs;
  int64_t clock_due = monotonic_ns() + clock_step;
  while (!stop_.load()) {
    bell_->wait(period);
    drain_all(false);
    const int64_t now = monotonic_ns();
    if (now >= clock_due) {
      write_value(BlockKind::kClock, 0, 0, sample_clocks(counter_));
      clock_step = std::min(clock_step * 10, kClockPeriodNs);
      clock_due = now + clock_step;
    }
    NameTable::instance().flush();
  }
  retry_at_ns_ = 0;
  bool whole = drain_all(true);
  whole = NameTable::instance().flush() && whole;
  whole = write_value(BlockKind::kClock, 0, 0, sample_clocks(counter_)) && whole;
  if (whole) whole = write(BlockKind::kProcessEnd, 0, 0, 0, {});
  if (whole) {
    failure_.reset();
  } else if (!failure_) {
    failure_ = io_error("cannot write the names of " + stem_);
  }
}

bool Recorder::drain_all(bool final) {
  std::vector<std::shared_ptr<Ring>> rings;
  {
    const std::lock_guard lock(mutex_);
    rings = rings_;
  }
  const uint64_t unattached_now = unattached.dropped.load() - unattached_before_;
  spool_->header().unattached_dropped.store(unattached_now);
  const int64_t now = monotonic_ns();
  bool whole = true;
  uint64_t lost = unattached_now;
  for (const auto& ring : rings) {
    // In this order: once `ended` is seen, so is the last record.
    const bool ended = ring->ended.load(std::memory_order_acquire) || final;
    const uint64_t waiting = ring->header().head.load(std::memory_order_acquire) - ring->header().tail.load();
    const bool due = ended || waiting >= ring->capacity() / 16 || now - ring->drained_ns >= kMaxAgeNs;
    if (due && waiting > 0 && !drain(*ring)) {
      whole = false;
    } else if (ended && !end_ring(*ring)) {
      whole = false;
    }
    if (final) lost += ring->header().dropped.load();
  }
  if (final) dropped_ += lost;
  return whole;
}

bool Recorder::drain(Ring& ring) {
  RingHeader& header = ring.header();
  const uint32_t serial = header.serial.load();
  if (!ring.announced) {
    ring.announced = write_value(BlockKind::kThreadBegin, serial, 0, ThreadInfo{header.tid, 0});
    if (!ring.announced) return false;
  }
  uint64_t tail = header.tail.load();
  const uint64_t head = header.head.load(std::memory_order_acquire);
  while (tail < head) {
    Encoded encoded = encode(ring.view(), tail, std::min(head, tail + kChunkWords), encoded_);
    // Words that are no record can only come from the program writing where it should not: they are stepped over, and
    // the hole in the positions says so.
    if (encoded.to == tail) {
      tail = head;
      header.tail.store(tail, std::memory_order_release);
      break;
    }
    // Far behind: time matters more than space.
    const bool compress = head - tail < ring.capacity() / 2;
    if (!write(BlockKind::kRecords, serial, tail, encoded.to, encoded_, compress)) return false;
    records_ += encoded.records;
    tail = encoded.to;
    header.tail.store(tail, std::memory_order_release);
  }
  ring.drained_ns = monotonic_ns();
  return true;
}

bool Recorder::end_ring(Ring& ring) {
  const uint32_t serial = ring.header().serial.load();
  const uint64_t lost = ring.header().dropped.load();
  if (!ring.announced)
    ring.announced = write_value(BlockKind::kThreadBegin, serial, 0, ThreadInfo{ring.header().tid, 0});
  if (!ring.announced || !write_value(BlockKind::kThreadEnd, serial, ring.header().tail.load(), lost)) return false;
  if (!ring.ended.load()) return true;  // its thread lives on: the recording ends
  const std::lock_guard lock(mutex_);
  const auto found = std::find_if(rings_.begin(), rings_.end(), [&](const auto& held) { return held.get() == &ring; });
  auto held = std::move(*found);
  rings_.erase(found);
  if (!stop_.load()) {
    dropped_ += lost;
    held->header().dropped.store(0);
  }
  if (spare_.size() < kMaxSpareRings) {
    spare_.push_back(std::move(held));
  } else {
    held->remove_file();
  }
  return true;
}

bool Recorder::write(BlockKind kind, uint32_t serial, uint64_t from, uint64_t to, std::span<const uint8_t> payload,
                     bool compress) {
  if (bell_->stuck.load(std::memory_order_relaxed) && monotonic_ns() < retry_at_ns_) return false;
  BlockHeader header{};
  header.kind = kind;
  header.serial = serial;
  header.from = from;
  header.to = to;
  auto appended = spool_->append(header, payload, compress);
  if (!appended) {
    failure_ = std::move(appended).error();
    retry_at_ns_ = monotonic_ns() + kRetryNs;
  }
  bell_->stuck.store(!appended, std::memory_order_relaxed);
  return appended.has_value();
}

template <typename T>
bool Recorder::write_value(BlockKind kind, uint32_t serial, uint64_t to, const T& value) {
  return write(kind, serial, 0, to, {reinterpret_cast<const uint8_t*>(&value), sizeof value});
}

}  // namespace strobe::record
