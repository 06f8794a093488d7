// The hot path: one thread appending records to its ring. No lock, no allocation, no system call, except to wake the
// drain once a quarter ring.
//
// Invariant: head <= limit <= tail + capacity - (open recorded ranges). So a range that was begun can always be ended,
// and a full ring never breaks the nesting. While a record is written limit is 0, so that a signal handler that
// records on the same thread fails the space check instead of tearing the record; it is counted as lost.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "record/clock.h"
#include "record/dynamic_names.h"
#include "record/layout.h"
#include "record/ring.h"
#include "strobe/record/annotate.h"

namespace strobe::record {

// Which recording is on: 0 none; every start takes a new number.
extern std::atomic<uint32_t> active_session;

// How threads reach the drain, which may be gone by then.
class DrainBell {
 public:
  void ring();
  // Until the bell is rung, at most so long.
  void wait(int64_t ns);
  // The spool cannot be written at the moment: nobody should wait for space.
  std::atomic<bool> stuck{false};

 private:
  std::atomic<uint32_t> rung_{0};
};

// The part of a thread's state that no single record needs.
struct ThreadExtra {
  std::shared_ptr<Ring> ring;  // null: none could be made; everything is lost and counted
  std::shared_ptr<DrainBell> bell;
  uint64_t reported_drops = 0;           // as the ring's own records say
  std::vector<uint32_t> dropped_depths;  // of open ranges whose begin was lost, ascending
  DynamicNames names;
  bool block_when_full = false;
};

struct ThreadLog {
  uint32_t session;        // that this thread's ring belongs to
  uint32_t depth;          // open ranges, recorded or lost
  uint32_t dropped_depth;  // the innermost open range whose begin was lost; 0: none
  bool counter;            // the clock
  bool joining;            // a signal handler must not join once more
  uint64_t head;
  uint64_t limit;
  uint64_t* words;
  uint64_t mask;
  RingHeader* header;
  ThreadExtra* extra;
};
// Where threads without a ring count their losses.
extern RingHeader unattached;
extern constinit thread_local ThreadLog thread_log __attribute__((tls_model("initial-exec")));

// Slow paths (thread_log.cc). join: gives the thread a ring of the active session; false when nothing records.
bool join_session(ThreadLog& log);
// Finds room for `words` more; false when the record is lost (counted). `limit` is what the caller took from log.limit;
// on success log.limit is still 0 and `limit` renewed.
bool make_room(ThreadLog& log, uint64_t words, uint64_t& limit);
void drop_begin(ThreadLog& log);
void end_unusual(ThreadLog& log);
void count_drop(ThreadLog& log);
// [first] [length] [text...]; with a `key`, lengths and texts of both in one. Longer texts than max_text are cut.
void put_text(ThreadLog& log, uint64_t first, std::string_view text);
void put_text_arg(ThreadLog& log, uint32_t key, std::string_view value);
// The arguments that a record::Batch becomes.
void put_batch(ThreadLog& log, int64_t index, int64_t items);
void put_fact(ThreadLog& log, std::string_view key, std::string_view value);
bool begin_dynamic(ThreadLog& log, std::string_view name, int64_t frame, uint32_t category);
// A mark, asynchronous begin or end with all that may belong to it, in one piece: all of it is recorded or lost.
struct EventRecord {
  RecordType type;
  const std::string_view* dynamic_name = nullptr;  // null: `name`
  uint32_t name = 0;
  uint64_t id = 0;
  int64_t frame = kNoFrame;
  uint32_t category = 0;
};
void put_event(ThreadLog& log, const EventRecord& event, std::span<const Arg> args);
void set_thread_name(std::string_view name);

// The calling thread's log when something records, else null.
inline ThreadLog* current_log() {
  const uint32_t session = active_session.load(std::memory_order_relaxed);
  if (session == 0) return nullptr;
  ThreadLog& log = thread_log;
  if (log.session != session) [[unlikely]]
    return join_session(log) ? &log : nullptr;
  return &log;
}

inline void store_word(ThreadLog& log, uint64_t position, uint64_t word) {
  log.words[position & log.mask] = word;
}

inline uint64_t claim(ThreadLog& log) {
  const uint64_t limit = log.limit;
  log.limit = 0;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  return limit;
}
inline void publish(ThreadLog& log, uint64_t head, uint64_t limit) {
  log.head = head;
  log.header->head.store(head, std::memory_order_release);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  log.limit = limit;
}

inline uint64_t pack_frame(uint32_t name, int64_t frame) {
  return static_cast<uint64_t>(frame + 1) << 32 | name;
}
inline bool is_wide(int64_t frame) {
  return static_cast<uint64_t>(frame) + 1 > 0xFFFF'FFFFU;
}

// Appends [flags, type | clock] and the words.
template <typename... Words>
inline void put(ThreadLog& log, RecordType type, uint8_t flags, Words... words) {
  constexpr uint64_t kWords = 1 + sizeof...(Words);
  uint64_t limit = claim(log);
  if (log.head + kWords > limit) [[unlikely]] {
    if (!make_room(log, kWords, limit)) return;
  }
  uint64_t at = log.head;
  store_word(log, at++, first_word(type, read_clock(log.counter)) | uint64_t{flags} << kClockBits);
  (store_word(log, at++, words), ...);
  publish(log, at, limit);
}

// Begins a range; false when it must not be ended (a signal handler inside a record).
template <bool kHasCategory = false>
inline bool put_begin(ThreadLog& log, uint32_t name, int64_t frame, [[maybe_unused]] uint32_t category = 0) {
  uint64_t limit = claim(log);
  const bool wide = is_wide(frame);
  const uint64_t words = (wide ? 3 : 2) + (kHasCategory ? 1 : 0);
  if (log.head + words + 1 > limit) [[unlikely]] {
    if (limit == 0) return count_drop(log), false;
    if (!make_room(log, words + 1, limit)) return drop_begin(log), true;
  }
  ++log.depth;
  const uint64_t at = log.head;
  store_word(log, at + 1, pack_frame(name, frame));
  if (wide) [[unlikely]]
    store_word(log, at + 2, static_cast<uint64_t>(frame));
  if constexpr (kHasCategory) store_word(log, at + words - 1, category);
  const uint8_t flags = (wide ? kWideFrame : 0) | (kHasCategory ? kCategorized : 0);
  store_word(log, at, first_word(RecordType::kRangeBegin, read_clock(log.counter)) | uint64_t{flags} << kClockBits);
  publish(log, at + words, limit - 1);
  return true;
}

inline void put_end(ThreadLog& log) {
  const uint64_t now = read_clock(log.counter);
  // Also catches depth 0, an end without a begin.
  if (log.depth == log.dropped_depth) [[unlikely]]
    return end_unusual(log);
  const uint64_t limit = claim(log);
  if (limit == 0) [[unlikely]]
    return count_drop(log);
  --log.depth;
  const uint64_t at = log.head;
  store_word(log, at, first_word(RecordType::kRangeEnd, now));
  publish(log, at + 1, limit + 1);
}

inline void put_arg(ThreadLog& log, RecordType type, uint32_t key, uint64_t value) {
  if (log.depth == log.dropped_depth && log.depth > 0) [[unlikely]]
    return count_drop(log);
  uint64_t limit = claim(log);
  if (log.head + 2 > limit) [[unlikely]] {
    if (!make_room(log, 2, limit)) return;
  }
  const uint64_t at = log.head;
  store_word(log, at, first_word(type, key));
  store_word(log, at + 1, value);
  publish(log, at + 2, limit);
}

}  // namespace strobe::record
