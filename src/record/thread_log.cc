#include "record/thread_log.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <initializer_list>
#include <optional>

#include "record/recorder.h"

namespace strobe::record {

std::atomic<uint32_t> active_session{0};
RingHeader unattached{};
constinit thread_local ThreadLog thread_log __attribute__((tls_model("initial-exec"))) = {};

namespace {

// The name given to the thread, kept for recordings that start later.
constinit thread_local char thread_name[64] __attribute__((tls_model("initial-exec"))) = {};

constexpr uint64_t kMaxTextBytes = 65'536;
constexpr std::string_view kCut = "...";
constexpr int64_t kFullPollNs = 50'000;

uint64_t words_of(uint64_t bytes) {
  return (bytes + 7) / 8;
}

// One text may take an eighth of the ring at most.
uint64_t max_text(const ThreadLog& log) {
  return std::min(kMaxTextBytes, log.mask + 1);
}

// At most `bytes` of the text, without half a UTF-8 character at the end.
std::string_view cut(std::string_view text, uint64_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;
  return text.substr(0, bytes);
}

void store_text(ThreadLog& log, uint64_t at, std::initializer_list<std::string_view> pieces) {
  uint64_t word = 0;
  size_t used = 0;
  for (std::string_view piece : pieces) {
    while (!piece.empty()) {
      const size_t take = std::min(8 - used, piece.size());
      std::memcpy(reinterpret_cast<char*>(&word) + used, piece.data(), take);
      piece.remove_prefix(take);
      used += take;
      if (used < 8) continue;
      store_word(log, at++, word);
      word = 0;
      used = 0;
    }
  }
  if (used > 0) store_word(log, at, word);
}

void put_pieces(ThreadLog& log, uint64_t first, uint64_t length_word, std::initializer_list<std::string_view> pieces) {
  uint64_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  const uint64_t words = 2 + words_of(bytes);
  uint64_t limit = claim(log);
  if (log.head + words > limit && !make_room(log, words, limit)) return;
  const uint64_t at = log.head;
  store_word(log, at, first);
  store_word(log, at + 1, length_word);
  store_text(log, at + 2, pieces);
  publish(log, at + words, limit);
}

void leave_session(ThreadLog& log) {
  ThreadExtra* extra = log.extra;
  log = ThreadLog{};
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (extra == nullptr) return;
  if (extra->ring) {
    extra->ring->ended.store(true, std::memory_order_release);
    extra->bell->ring();  // the ring may serve another thread soon
  }
  delete extra;
}

pthread_key_t exit_key() {
  static const pthread_key_t key = [] {
    pthread_key_t made{};
    ::pthread_key_create(&made, [](void* log) { leave_session(*static_cast<ThreadLog*>(log)); });
    return made;
  }();
  return key;
}

// Waits a moment for the drain; false when that is hopeless.
bool wait_for_drain(const ThreadLog& log) {
  DrainBell& bell = *log.extra->bell;
  if (bell.stuck.load(std::memory_order_relaxed) || active_session.load(std::memory_order_relaxed) != log.session)
    return false;
  bell.ring();
  const timespec pause{0, kFullPollNs};
  ::nanosleep(&pause, nullptr);
  return true;
}

}  // namespace

void DrainBell::ring() {
  if (rung_.exchange(1, std::memory_order_release) != 0) return;
  ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&rung_), FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void DrainBell::wait(int64_t ns) {
  const timespec pause{ns / 1'000'000'000, ns % 1'000'000'000};
  if (rung_.load(std::memory_order_acquire) == 0)
    ::syscall(SYS_futex, reinterpret_cast<uint32_t*>(&rung_), FUTEX_WAIT_PRIVATE, 0, &pause, nullptr, 0);
  rung_.store(0, std::memory_order_release);
}

bool join_session(ThreadLog& log) {
  if (log.joining) return false;
  log.joining = true;
  const auto lock = lock_sessions();
  leave_session(log);
  log.joining = true;
  Recorder* recorder = recorder_to_join();
  if (recorder == nullptr) {
    log.joining = false;
    return false;
  }
  auto extra = std::make_unique<ThreadExtra>();
  extra->bell = recorder->bell();
  extra->block_when_full = recorder->block_when_full();
  extra->dropped_depths.reserve(64);
  auto ring = recorder->add_thread(static_cast<int32_t>(::syscall(SYS_gettid)));
  log.counter = recorder->counter_clock();
  log.header = &unattached;
  if (ring) {
    extra->ring = std::move(*ring);
    log.words = extra->ring->words();
    log.mask = extra->ring->mask();
    log.header = &extra->ring->header();
    log.limit = std::min(log.mask + 1, (log.mask + 1) / 4);
  }
  log.extra = extra.release();
  ::pthread_setspecific(exit_key(), &log);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  log.session = active_session.load(std::memory_order_relaxed);
  log.joining = false;
  if (thread_name[0] != 0) put_text(log, first_word(RecordType::kThreadName, read_clock(log.counter)), thread_name);
  return true;
}

bool make_room(ThreadLog& log, uint64_t words, uint64_t& limit) {
  if (limit == 0) {  // inside a record of this very thread, or no ring
    count_drop(log);
    return false;
  }
  const ThreadExtra& extra = *log.extra;
  const uint64_t capacity = log.mask + 1;
  const uint64_t open = log.depth - extra.dropped_depths.size();
  for (;;) {
    const uint64_t lost = log.header->dropped.load(std::memory_order_relaxed) - extra.reported_drops;
    const uint64_t need = words + (lost > 0 ? 2 : 0);
    const uint64_t tail = log.header->tail.load(std::memory_order_acquire);
    const uint64_t end = tail + capacity - open;
    if (log.head - tail >= capacity / 4) extra.bell->ring();
    if (log.head + need <= end) {
      if (lost > 0) {
        store_word(log, log.head, first_word(RecordType::kDropped, read_clock(log.counter)));
        store_word(log, log.head + 1, lost);
        publish(log, log.head + 2, 0);
        log.extra->reported_drops += lost;
      }
      // Comes back after a quarter of the ring, to see how the drain is doing.
      limit = std::min(end, log.head + std::max(words, capacity / 4));
      return true;
    }
    if (!extra.block_when_full || !wait_for_drain(log)) break;
  }
  count_drop(log);
  log.limit = std::max<uint64_t>(log.head, 1);
  return false;
}

void count_drop(ThreadLog& log) {
  log.header->dropped.fetch_add(1, std::memory_order_relaxed);
}

void drop_begin(ThreadLog& log) {
  const uint64_t limit = claim(log);
  log.extra->dropped_depths.push_back(++log.depth);
  log.dropped_depth = log.depth;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  log.limit = limit;
}

void end_unusual(ThreadLog& log) {
  // An end without a begin is written as it is: the reader counts it.
  if (log.depth == 0) return put(log, RecordType::kRangeEnd, 0);
  const uint64_t limit = claim(log);
  count_drop(log);
  if (limit == 0) return;
  auto& depths = log.extra->dropped_depths;
  depths.pop_back();
  log.dropped_depth = depths.empty() ? 0 : depths.back();
  --log.depth;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  log.limit = limit;
}

namespace {

// A name made at run time, once its place in the thread's table is known.
struct DynamicName {
  DynamicName(ThreadLog& log, std::string_view text)
      : name(cut(text, max_text(log))),
        found(log.extra->names.find(name)),
        words(found.known ? 0 : 2 + words_of(name.size())) {}
  // Writes its definition where that is needed; the position after it.
  uint64_t define(ThreadLog& log, uint64_t at) const {
    if (found.known) return at;
    store_word(log, at, first_word(RecordType::kDefine, found.slot));
    store_word(log, at + 1, name.size());
    store_text(log, at + 2, {name});
    log.extra->names.put(found.slot, name);
    return at + words;
  }
  uint32_t id() const { return kDynamicName | found.slot; }

  std::string_view name;
  DynamicNames::Found found;
  uint64_t words;  // of the definition
};

// A text as it will be kept, and what says that it was cut.
struct Kept {
  Kept(const ThreadLog& log, std::string_view text)
      : begin(cut(text, max_text(log) - kCut.size())), end(begin.size() < text.size() ? kCut : std::string_view{}) {}
  uint64_t bytes() const { return begin.size() + end.size(); }
  std::string_view begin, end;
};

uint64_t words_of(const ThreadLog& log, const Arg& arg) {
  const auto* text = std::get_if<std::string_view>(&arg.value);
  return 2 + (text != nullptr ? words_of(Kept(log, *text).bytes()) : 0);
}

uint64_t store_arg(ThreadLog& log, uint64_t at, const Arg& arg) {
  const auto put = [&](RecordType type, uint64_t word) {
    store_word(log, at, first_word(type, arg.key.id()) | uint64_t{kOfEvent} << kClockBits);
    store_word(log, at + 1, word);
  };
  if (const auto* integer = std::get_if<int64_t>(&arg.value)) {
    put(RecordType::kArgInt, static_cast<uint64_t>(*integer));
  } else if (const auto* real = std::get_if<double>(&arg.value)) {
    put(RecordType::kArgDouble, std::bit_cast<uint64_t>(*real));
  } else {
    const Kept text(log, std::get<std::string_view>(arg.value));
    put(RecordType::kArgText, text.bytes());
    store_text(log, at + 2, {text.begin, text.end});
  }
  return at + words_of(log, arg);
}

}  // namespace

bool begin_dynamic(ThreadLog& log, std::string_view text, int64_t frame, uint32_t category) {
  uint64_t limit = claim(log);
  if (limit == 0) return count_drop(log), false;
  const DynamicName name(log, text);
  const bool wide = is_wide(frame);
  const uint64_t begin_words = 2 + (wide ? 1 : 0) + (category != 0 ? 1 : 0);
  if (log.head + name.words + begin_words + 1 > limit && !make_room(log, name.words + begin_words + 1, limit))
    return drop_begin(log), true;
  const uint64_t at = name.define(log, log.head);
  ++log.depth;
  store_word(log, at + 1, pack_frame(name.id(), frame));
  if (wide) store_word(log, at + 2, static_cast<uint64_t>(frame));
  if (category != 0) store_word(log, at + begin_words - 1, category);
  const uint8_t flags = (wide ? kWideFrame : 0) | (category != 0 ? kCategorized : 0);
  store_word(log, at, first_word(RecordType::kRangeBegin, read_clock(log.counter)) | uint64_t{flags} << kClockBits);
  publish(log, at + begin_words, limit - 1);
  return true;
}

void put_event(ThreadLog& log, const EventRecord& event, std::span<const Arg> args) {
  uint64_t limit = claim(log);
  if (limit == 0) return count_drop(log);
  std::optional<DynamicName> dynamic;
  if (event.dynamic_name != nullptr) dynamic.emplace(log, *event.dynamic_name);
  const uint32_t name = dynamic ? dynamic->id() : event.name;
  const bool is_mark = event.type == RecordType::kMark;
  const bool is_begin = is_mark || event.type == RecordType::kAsyncBegin;
  const bool wide = is_begin && is_wide(event.frame);
  const bool categorized = is_begin && event.category != 0;
  const bool named = event.type != RecordType::kAsyncEndAny;
  uint64_t words = dynamic ? dynamic->words : 0;
  words += 1 + (named ? 1 : 0) + (is_mark ? 0 : 1) + (wide ? 1 : 0) + (categorized ? 1 : 0);
  for (const Arg& arg : args) words += words_of(log, arg);
  if (log.head + words > limit && !make_room(log, words, limit)) return;
  uint64_t at = dynamic ? dynamic->define(log, log.head) : log.head;
  const uint8_t flags = (wide ? kWideFrame : 0) | (categorized ? kCategorized : 0);
  store_word(log, at++, first_word(event.type, read_clock(log.counter)) | uint64_t{flags} << kClockBits);
  if (named) store_word(log, at++, is_begin ? pack_frame(name, event.frame) : name);
  if (!is_mark) store_word(log, at++, event.id);
  if (wide) store_word(log, at++, static_cast<uint64_t>(event.frame));
  if (categorized) store_word(log, at++, event.category);
  for (const Arg& arg : args) at = store_arg(log, at, arg);
  publish(log, at, limit);
}

void put_text(ThreadLog& log, uint64_t first, std::string_view text) {
  if (log.limit == 0) return count_drop(log);
  const Kept kept(log, text);
  put_pieces(log, first, kept.bytes(), {kept.begin, kept.end});
}

void put_text_arg(ThreadLog& log, uint32_t key, std::string_view value) {
  if (log.depth == log.dropped_depth && log.depth > 0) return count_drop(log);
  put_text(log, first_word(RecordType::kArgText, key), value);
}

void put_batch(ThreadLog& log, int64_t index, int64_t items) {
  static const Name index_key("batch_index");
  static const Name items_key("total_items");
  put_arg(log, RecordType::kArgInt, index_key.id(), static_cast<uint64_t>(index));
  put_arg(log, RecordType::kArgInt, items_key.id(), static_cast<uint64_t>(items));
}

void put_fact(ThreadLog& log, std::string_view key, std::string_view value) {
  if (log.limit == 0) return count_drop(log);
  key = cut(key, max_text(log) / 2);
  const std::string_view kept = cut(value, max_text(log) / 2 - kCut.size());
  const std::string_view end = kept.size() < value.size() ? kCut : std::string_view{};
  put_pieces(log, first_word(RecordType::kFact, read_clock(log.counter)), (kept.size() + end.size()) << 32 | key.size(),
             {key, kept, end});
}

void set_thread_name(std::string_view name) {
  name = cut(name, sizeof thread_name - 1);
  std::memcpy(thread_name, name.data(), name.size());
  thread_name[name.size()] = 0;
}

}  // namespace strobe::record
