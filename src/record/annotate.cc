#include "strobe/record/annotate.h"

#include <unistd.h>

#include <atomic>
#include <bit>

#include "record/names.h"
#include "record/thread_log.h"

namespace strobe::record {

namespace {

bool begin_in(ThreadLog& log, Name name, int64_t frame, Category category) {
  return category.id() == 0 ? put_begin(log, name.id(), frame) : put_begin<true>(log, name.id(), frame, category.id());
}

}  // namespace

Name::Name(std::string_view text) : id_(NameTable::instance().intern(text)) {}

Category::Category(std::string_view name, std::string_view domain)
    : id_(NameTable::instance().intern(category_text(name, domain)) + 1) {}

Range::Range(Name name, int64_t frame) {
  ThreadLog* log = current_log();
  if (log != nullptr && put_begin(*log, name.id(), frame)) session_ = log->session;
}

Range::Range(Name name, int64_t frame, Category category) {
  ThreadLog* log = current_log();
  if (log != nullptr && begin_in(*log, name, frame, category)) session_ = log->session;
}

Range::Range(std::string_view dynamic_name, int64_t frame, Category category) {
  ThreadLog* log = current_log();
  if (log != nullptr && begin_dynamic(*log, dynamic_name, frame, category.id())) session_ = log->session;
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

Range& Range::arg(Batch batch) {
  if (session_ == 0) return *this;
  ThreadLog* log = current_log();
  if (log != nullptr && log->session == session_) put_batch(*log, batch.index, batch.items);
  return *this;
}

void push(Name name, int64_t frame) {
  if (ThreadLog* log = current_log()) put_begin(*log, name.id(), frame);
}
void push(Name name, int64_t frame, Category category) {
  if (ThreadLog* log = current_log()) begin_in(*log, name, frame, category);
}
void push(std::string_view dynamic_name, int64_t frame, Category category) {
  if (ThreadLog* log = current_log()) begin_dynamic(*log, dynamic_name, frame, category.id());
}
void pop() {
  if (ThreadLog* log = current_log()) put_end(*log);
}

void async_begin(Name name, uint64_t id, int64_t frame, Category category, Args args) {
  if (ThreadLog* log = current_log())
    put_event(*log, {RecordType::kAsyncBegin, nullptr, name.id(), id, frame, category.id()}, args.list());
}
void async_begin(std::string_view dynamic_name, uint64_t id, int64_t frame, Category category, Args args) {
  if (ThreadLog* log = current_log())
    put_event(*log, {RecordType::kAsyncBegin, &dynamic_name, 0, id, frame, category.id()}, args.list());
}
void async_end(Name name, uint64_t id, Args args) {
  if (ThreadLog* log = current_log()) put_event(*log, {RecordType::kAsyncEnd, nullptr, name.id(), id}, args.list());
}
void async_end(std::string_view dynamic_name, uint64_t id, Args args) {
  if (ThreadLog* log = current_log()) put_event(*log, {RecordType::kAsyncEnd, &dynamic_name, 0, id}, args.list());
}
void async_end(uint64_t id, Args args) {
  if (ThreadLog* log = current_log()) put_event(*log, {RecordType::kAsyncEndAny, nullptr, 0, id}, args.list());
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

void mark(Name name, int64_t frame, Category category, Args args) {
  if (ThreadLog* log = current_log())
    put_event(*log, {RecordType::kMark, nullptr, name.id(), 0, frame, category.id()}, args.list());
}
void mark(std::string_view dynamic_name, int64_t frame, Category category, Args args) {
  if (ThreadLog* log = current_log())
    put_event(*log, {RecordType::kMark, &dynamic_name, 0, 0, frame, category.id()}, args.list());
}

void counter(Name name, double value) {
  if (ThreadLog* log = current_log())
    put(*log, RecordType::kCounter, 0, uint64_t{name.id()}, std::bit_cast<uint64_t>(value));
}
void counter(Name name, int64_t value) {
  if (ThreadLog* log = current_log())
    put(*log, RecordType::kCounterInt, 0, uint64_t{name.id()}, static_cast<uint64_t>(value));
}
void thread_counter(Name name, double value) {
  if (ThreadLog* log = current_log())
    put(*log, RecordType::kCounter, kOfThread, uint64_t{name.id()}, std::bit_cast<uint64_t>(value));
}
void thread_counter(Name name, int64_t value) {
  if (ThreadLog* log = current_log())
    put(*log, RecordType::kCounterInt, kOfThread, uint64_t{name.id()}, static_cast<uint64_t>(value));
}
void name_thread(std::string_view name) {
  // Joining a recording says the name that the thread has by then.
  ThreadLog* log = current_log();
  set_thread_name(name);
  if (log != nullptr) put_text(*log, first_word(RecordType::kThreadName, read_clock(log->counter)), name);
}
void fact(std::string_view key, std::string_view value) {
  if (ThreadLog* log = current_log()) put_fact(*log, key, value);
}

}  // namespace strobe::record
