// Annotations: how a program says what it does, at nanoseconds' cost. Every call is safe from any thread, at any time,
// recording or not; a call while nothing records costs a load and a branch. What is written survives the death of the
// process (kill -9, abort), not a power cut. The C ABI of the same calls is strobe/record/annotate_c.h.
//
//     strobe::record::start({.folder = "out/spool"});
//     {
//       STROBE_RANGE("decode", frame);                       // until the end of the scope
//       strobe::record::Range range("infer", frame);          // the same without a macro; the name may be dynamic
//       range.arg("batch", int64_t{8});
//     }
//     strobe::record::stop();
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

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

struct Options {
  std::filesystem::path folder;  // made when missing; one folder may take several processes
  std::string process_name;      // empty: the program's own name
  size_t ring_bytes = 1 << 20;   // per thread; a full ring drops and counts unless block_when_full
  bool block_when_full = false;
  int drain_period_ms = 5;
  bool use_counter = true;  // false: CLOCK_MONOTONIC even where the processor's time-stamp counter is good
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
  explicit Range(std::string_view dynamic_name, int64_t frame = kNoFrame);
  Range(const Range&) = delete;
  Range& operator=(const Range&) = delete;
  ~Range() {
    if (session_ != 0) end();
  }
  void end();  // earlier than the scope; a second call does nothing
  // Payload of this range; to be called while it is the innermost open one of its thread.
  Range& arg(Name key, int64_t value);
  Range& arg(Name key, double value);
  Range& arg(Name key, std::string_view value);

 private:
  uint32_t session_ = 0;  // of the recording that it was begun in; 0: not open
};

// The same as push and pop; unmatched pops are counted as faults in the trace, never undefined.
void push(Name name, int64_t frame = kNoFrame);
void pop();

// An interval that may end on another thread. id: unique among the open ones of that name; new_id() gives one.
void async_begin(Name name, uint64_t id, int64_t frame = kNoFrame);
void async_end(Name name, uint64_t id);
uint64_t new_id();

// An arrow from the innermost open range at flow_out to the one at flow_in (queue hand-over, launch).
void flow_out(Name name, uint64_t id);
void flow_in(Name name, uint64_t id);

void mark(Name name, int64_t frame = kNoFrame);
void counter(Name name, double value);
void name_thread(std::string_view name);
// A fact of this process for the whole trace, e.g. "engine" = "openvino"; the last one of a key counts.
void fact(std::string_view key, std::string_view value);

}  // namespace strobe::record

#define STROBE_RANGE_CONCAT_(a, b) a##b
#define STROBE_RANGE_NAME_(a, b) STROBE_RANGE_CONCAT_(a, b)
// A range until the end of the scope; the name is a literal, interned at the first pass. An optional frame id follows.
#define STROBE_RANGE(literal, ...)                                                         \
  static const ::strobe::record::Name STROBE_RANGE_NAME_(strobe_name_, __LINE__){literal}; \
  const ::strobe::record::Range STROBE_RANGE_NAME_(                                        \
      strobe_range_, __LINE__)(STROBE_RANGE_NAME_(strobe_name_, __LINE__) __VA_OPT__(, ) __VA_ARGS__)
