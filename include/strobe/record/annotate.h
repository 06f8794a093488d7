// Annotations: how a program says what it does, at nanoseconds' cost. Every call is safe from any thread, at any time,
// recording or not; a call while nothing records costs a load and a branch. What is written survives the death of the
// process (kill -9, abort), and a power cut where Options::sync_period_ms asks for that. The C ABI of the same calls is
// strobe/record/annotate_c.h.
//
//     strobe::record::start({.folder = "out/spool"});
//     {
//       STROBE_RANGE("decode", frame);                // until the end of the scope
//       strobe::record::Range range("infer", frame);  // the same without a macro; the name may be dynamic
//       range.arg(kBatch, 8);
//     }
//     strobe::record::stop();
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "strobe/base/result.h"

namespace strobe::record {

inline constexpr int64_t kNoFrame = -1;

// An interned name: made once per call site (copied at that moment, so that a name from an unloaded library stays
// valid), then as cheap as an integer. Making one takes a lock and memory: a signal handler uses names made before.
class Name {
 public:
  explicit Name(std::string_view text);
  // A name that was interned before.
  static Name with_id(uint32_t id) { return Name(id); }
  uint32_t id() const { return id_; }

 private:
  explicit Name(uint32_t id) : id_(id) {}
  uint32_t id_;
};

// What kind of thing a range or mark is, for filters and sums: a name within a domain (usually the library that speaks;
// empty: the program itself). Made once and used like a Name. The default is none.
class Category {
 public:
  constexpr Category() = default;
  explicit Category(std::string_view name, std::string_view domain = {});
  // One that was made before.
  static constexpr Category with_id(uint32_t id) {
    Category category;
    category.id_ = id;
    return category;
  }
  constexpr uint32_t id() const { return id_; }  // 0: none

 private:
  uint32_t id_ = 0;
};

// Which one of a run's batches this is (from 0), and how many items it holds.
struct Batch {
  int64_t index = 0;
  int64_t items = 0;
};

// A payload with its key.
struct Arg {
  template <std::integral T>
  Arg(Name arg_key, T number) : key(arg_key), value(static_cast<int64_t>(number)) {}
  Arg(Name arg_key, double number) : key(arg_key), value(number) {}
  Arg(Name arg_key, std::string_view text) : key(arg_key), value(text) {}
  Arg(Name arg_key, const char* text) : key(arg_key), value(std::string_view(text)) {}
  Name key;
  std::variant<int64_t, double, std::string_view> value;
};
// Any number of them; a view, as cheap to pass as a pointer.
class Args {
 public:
  Args() = default;
  Args(std::initializer_list<Arg> list) : list_(list.begin(), list.size()) {}
  Args(std::span<const Arg> list) : list_(list) {}
  std::span<const Arg> list() const { return list_; }

 private:
  std::span<const Arg> list_;
};

struct Options {
  std::filesystem::path folder;   // made when missing; one folder may take several processes
  std::string process_name = {};  // empty: the program's own name
  size_t ring_bytes = 1 << 20;    // per thread; a full ring drops and counts unless block_when_full
  bool block_when_full = false;
  int drain_period_ms = 5;
  // What was recorded survives the end of the process in any case; with a period, what is older than it (and a tenth of
  // a second) also survives the end of the machine. 0: left to the kernel.
  int sync_period_ms = 0;
  bool use_counter = true;  // false: CLOCK_MONOTONIC even where the processor's time-stamp counter is good
  // Also collects what this process does on NVIDIA devices, into the same folder; initialises CUDA. Where there is no
  // driver nothing happens, and what else is in the way is told by the trace (fact gpu.collection), never an error. A
  // forked child is recorded, but not collected.
  bool gpu = false;
};

// Begins recording of this process. Errors: kIo (folder), kUsage (already recording).
Result<void> start(const Options& options);

struct Totals {
  uint64_t records = 0;
  uint64_t dropped = 0;  // shown with every result: silent loss is a defect
  uint64_t bytes = 0;    // written to files
};
// Ends recording: every thread's records are drained and the files are complete. Errors: kIo with what is already safe.
Result<Totals> stop();
bool recording();

// A nested interval on the calling thread. Not copyable; ends in its destructor, on the thread that began it.
class Range {
 public:
  explicit Range(Name name, int64_t frame = kNoFrame);
  Range(Name name, int64_t frame, Category category);
  explicit Range(std::string_view dynamic_name, int64_t frame = kNoFrame, Category category = {});
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() {
    if (session_ != 0) end();
  }
  void end();  // earlier than the scope; a second call does nothing
  // Payload of this range; to be called while it is the innermost open one of its thread.
  Range& arg(Name key, int64_t value);
  template <std::integral T>
  Range& arg(Name key, T value) {
    return arg(key, static_cast<int64_t>(value));
  }
  Range& arg(Name key, double value);
  Range& arg(Name key, std::string_view value);
  Range& arg(Name key, const char* value) { return arg(key, std::string_view(value)); }
  // The arguments "batch_index" and "total_items".
  Range& arg(Batch batch);

 private:
  uint32_t session_ = 0;  // of the recording that it was begun in; 0: not open
};

// The same as push and pop; unmatched pops are counted as faults in the trace, never undefined.
void push(Name name, int64_t frame = kNoFrame);
void push(Name name, int64_t frame, Category category);
void push(std::string_view dynamic_name, int64_t frame = kNoFrame, Category category = {});
void pop();

// An interval that may end on another thread. id: unique among the open ones of that name; new_id() gives one that is
// unique altogether.
void async_begin(Name name, uint64_t id, int64_t frame = kNoFrame, Category category = {}, Args args = {});
void async_begin(std::string_view dynamic_name, uint64_t id, int64_t frame = kNoFrame, Category category = {},
                 Args args = {});
void async_end(Name name, uint64_t id, Args args = {});
void async_end(std::string_view dynamic_name, uint64_t id, Args args = {});
// By id alone: ends the latest one of this process that began with it, under whatever name.
void async_end(uint64_t id, Args args = {});
uint64_t new_id();

// An arrow from the innermost open range at flow_out to the one at flow_in (queue hand-over, launch).
void flow_out(Name name, uint64_t id);
void flow_in(Name name, uint64_t id);

void mark(Name name, int64_t frame = kNoFrame, Category category = {}, Args args = {});
void mark(std::string_view dynamic_name, int64_t frame = kNoFrame, Category category = {}, Args args = {});

// A number over time, of the process or of the calling thread. Whole numbers take less space.
void counter(Name name, double value);
void counter(Name name, int64_t value);
template <std::integral T>
void counter(Name name, T value) {
  counter(name, static_cast<int64_t>(value));
}
void thread_counter(Name name, double value);
void thread_counter(Name name, int64_t value);
template <std::integral T>
void thread_counter(Name name, T value) {
  thread_counter(name, static_cast<int64_t>(value));
}

void name_thread(std::string_view name);
// A fact of this process for the whole trace, e.g. "engine" = "openvino"; the last one of a key counts.
void fact(std::string_view key, std::string_view value);

}  // namespace strobe::record

#define STROBE_RANGE_CONCAT_(a, b) a##b
#define STROBE_RANGE_NAME_(a, b) STROBE_RANGE_CONCAT_(a, b)
// A range until the end of the scope; the name is a literal, interned at the first pass. An optional frame id follows,
// and after it an optional Category.
#define STROBE_RANGE(literal, ...)                                                         \
  static const ::strobe::record::Name STROBE_RANGE_NAME_(strobe_name_, __LINE__){literal}; \
  const ::strobe::record::Range STROBE_RANGE_NAME_(                                        \
      strobe_range_, __LINE__)(STROBE_RANGE_NAME_(strobe_name_, __LINE__) __VA_OPT__(, ) __VA_ARGS__)
