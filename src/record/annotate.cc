#include "strobe/record/annotate.h"

#include <unistd.h>

#include <atomic>
#include <bit>

#include "record/names.h"
#include "record/thread_log.h"

namespace strobe::record {

Name::Name(std::string_view text) : id_(NameTable::instance().intern(text)) {}

Range::Range(Name name, int64_t frame) {
  ThreadLog* log = current_log();
  if (log != nullptr && put_begin(*log, name.id(), frame)) session_ = log->session;
}

Range::Range(std::string_view dynamic_name, int64_t frame) {
  ThreadLog* log = current_log();
  if (log != nullptr && begin_dynamic(*log, dynamic_name, frame)) session_ = log->session;
}

void Range::end() {
  if (session_ == 0) return;
  // A range of an earlier recording, or of the parent before fork(), has no begin here.
  ThreadLog& log = thread_log;
  if (session_ == active_session.load(std::memory_order_relaxed) && log.session == session_) put_end(log);
  session_ = 0;
}

Range& Range::arg(Name key, int64_t value) {
  if (session_ == 0) return *this;
  if (ThreadLog* log = current_log(); log != nullptr && log->session == session_)
    put_arg(*log, RecordType::kArgInt, key.id(), static_cast<uint64_t>(value));
  return *this;
}

Range& Range::arg(Name key, double value) {
  if (session_ == 0) return *this;
  if (ThreadLog* log = current_log(); log != nullptr && log->session == session_)
    put_arg(*log, RecordType::kArgDouble, key.id(), std::bit_cast<uint64_t>(value));
  return *this;
}

Range& Range::arg(Name key, std::string_view value) {
  if (session_ == 0) return *this;
  ThreadLog* log = current_log();
  if (log != nullptr && log->session == session_) put_text_arg(*log, key.id(), value);
  return *this;
}

void push(Name name, int64_t frame) {
  if (ThreadLog* log = current_log()) put_begin(*log, name.id(), frame);
}
void pop() {
  if (ThreadLog* log = current_log()) put_end(*log);
}

void async_begin(Name name, uint64_t id, int64_t frame) {
  ThreadLog* log = current_log();
  if (log == nullptr) return;
  if (is_wide(frame)) {
    put(*log, RecordType::kAsyncBegin, kWideFrame, uint64_t{name.id()}, id, static_cast<uint64_t>(frame));
  } else {
    put(*log, RecordType::kAsyncBegin, 0, pack_frame(name.id(), frame), id);
  }
}
void async_end(Name name, uint64_t id) {
  if (ThreadLog* log = current_log()) put(*log, RecordType::kAsyncEnd, 0, uint64_t{name.id()}, id);
}
uint64_t new_id() {
  // The process's id on top keeps the ids of processes that record into one folder apart, forked ones too.
  static std::atomic<uint64_t> last{0};
  return static_cast<uint64_t>(::getpid()) << 40 | (last.fetch_add(1, std::memory_order_relaxed) + 1);
}

void flow_out(Name name, uint64_t id) {
  if (ThreadLog* log = current_log()) put(*log, RecordType::kFlowOut, 0, uint64_t{name.id()}, id);
}
void flow_in(Name name, uint64_t id) {
  if (ThreadLog* log = current_log()) put(*log, RecordType::kFlowIn, 0, uint64_t{name.id()}, id);
}

void mark(Name name, int64_t frame) {
  ThreadLog* log = current_log();
  if (log == nullptr) return;
  if (is_wide(frame)) {
    put(*log, RecordType::kMark, kWideFrame, uint64_t{name.id()}, static_cast<uint64_t>(frame));
  } else {
    put(*log, RecordType::kMark, 0, pack_frame(name.id(), frame));
  }
}
void counter(Name name, double value) {
  if (ThreadLog* log = current_log())
    put(*log, RecordType::kCounter, 0, uint64_t{name.id()}, std::bit_cast<uint64_t>(value));
}
void name_thread(std::string_view name) {
  set_thread_name(name);
  if (ThreadLog* log = current_log())
    put_text(*log, first_word(RecordType::kThreadName, read_clock(log->counter)), name);
}
void fact(std::string_view key, std::string_view value) {
  if (ThreadLog* log = current_log()) put_fact(*log, key, value);
}

}  // namespace strobe::record
