#include "strobe/record/annotate_c.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <memory_resource>
#include <span>
#include <string>
#include <vector>

#include "record/names.h"
#include "record/thread_log.h"
#include "strobe/record/annotate.h"

// The names of this ABI are seen from outside of the library or program that holds the recorder.
#pragma GCC visibility push(default)

namespace strobe::record {
namespace {

// A null text is an empty one: a caller in C gets no crash out of an annotation.
std::string_view text_of(const char* text) {
  return text != nullptr ? std::string_view(text) : std::string_view();
}

// Payload as the recorder takes it; without memory from the heap for any usual number.
class ArgList {
 public:
  ArgList(const strobe_arg* args, size_t count) : list_(&pool_) {
    if (args == nullptr) return;
    list_.reserve(count);
    for (const strobe_arg& arg : std::span(args, count)) {
      const Name key = Name::with_id(arg.key);
      if (arg.type == STROBE_ARG_INT) list_.emplace_back(key, arg.value.integer);
      if (arg.type == STROBE_ARG_DOUBLE) list_.emplace_back(key, arg.value.real);
      if (arg.type == STROBE_ARG_TEXT) list_.emplace_back(key, text_of(arg.value.text));
    }
  }
  std::span<const Arg> list() const { return list_; }

 private:
  std::array<std::byte, 1024> first_;
  std::pmr::monotonic_buffer_resource pool_{first_.data(), first_.size()};
  std::pmr::vector<Arg> list_;
};

int report(const Error& error, char* message, size_t bytes) {
  if (message != nullptr && bytes > 0) {
    const std::string line = error.to_string();
    const size_t kept = std::min(line.size(), bytes - 1);
    std::memcpy(message, line.data(), kept);
    message[kept] = 0;
  }
  return error.exit_code();
}

int start_in(const char* folder, bool gpu, char* message, size_t bytes) {
  Options options;
  options.folder = text_of(folder);
  options.gpu = gpu;
  const auto started = start(options);
  return started ? 0 : report(started.error(), message, bytes);
}

}  // namespace
}  // namespace strobe::record

using strobe::record::ArgList;
using strobe::record::Category;
using strobe::record::current_log;
using strobe::record::Name;
using strobe::record::RecordType;
using strobe::record::text_of;
using strobe::record::ThreadLog;

extern "C" {

int strobe_annotate_abi(void) {
  return STROBE_ANNOTATE_ABI;
}

int strobe_start(const char* folder, char* message, size_t message_bytes) {
  return strobe::record::start_in(folder, false, message, message_bytes);
}
int strobe_start_with_gpu(const char* folder, char* message, size_t message_bytes) {
  return strobe::record::start_in(folder, true, message, message_bytes);
}
int strobe_stop(uint64_t* dropped, char* message, size_t message_bytes) {
  const auto totals = strobe::record::stop();
  if (!totals) return strobe::record::report(totals.error(), message, message_bytes);
  if (dropped != nullptr) *dropped = totals->dropped;
  return 0;
}
int strobe_recording(void) {
  return strobe::record::recording() ? 1 : 0;
}

strobe_name strobe_intern(const char* text) {
  return strobe::record::NameTable::instance().intern(text_of(text));
}

void strobe_push(strobe_name name, int64_t frame) {
  strobe::record::push(Name::with_id(name), frame);
}
void strobe_push_text(const char* name, int64_t frame) {
  strobe::record::push(text_of(name), frame);
}
strobe_category_t strobe_category(const char* name, const char* domain) {
  return Category(text_of(name), text_of(domain)).id();
}
void strobe_push_in(strobe_category_t category, strobe_name name, int64_t frame) {
  strobe::record::push(Name::with_id(name), frame, Category::with_id(category));
}
void strobe_push_text_in(strobe_category_t category, const char* name, int64_t frame) {
  strobe::record::push(text_of(name), frame, Category::with_id(category));
}
void strobe_pop(void) {
  strobe::record::pop();
}

void strobe_arg_int(strobe_name key, int64_t value) {
  if (ThreadLog* log = current_log())
    strobe::record::put_arg(*log, RecordType::kArgInt, key, static_cast<uint64_t>(value));
}
void strobe_arg_double(strobe_name key, double value) {
  if (ThreadLog* log = current_log())
    strobe::record::put_arg(*log, RecordType::kArgDouble, key, std::bit_cast<uint64_t>(value));
}
void strobe_arg_text(strobe_name key, const char* value) {
  if (ThreadLog* log = current_log()) strobe::record::put_text_arg(*log, key, text_of(value));
}
void strobe_arg_batch(int64_t index, int64_t items) {
  if (ThreadLog* log = current_log()) strobe::record::put_batch(*log, index, items);
}

void strobe_async_begin(strobe_name name, uint64_t id, int64_t frame) {
  strobe::record::async_begin(Name::with_id(name), id, frame);
}
void strobe_async_end(strobe_name name, uint64_t id) {
  strobe::record::async_end(Name::with_id(name), id);
}
void strobe_async_begin_in(strobe_category_t category, strobe_name name, uint64_t id, int64_t frame,
                           const strobe_arg* args, size_t arg_count) {
  strobe::record::async_begin(Name::with_id(name), id, frame, Category::with_id(category),
                              ArgList(args, arg_count).list());
}
void strobe_async_begin_text_in(strobe_category_t category, const char* name, uint64_t id, int64_t frame,
                                const strobe_arg* args, size_t arg_count) {
  strobe::record::async_begin(text_of(name), id, frame, Category::with_id(category), ArgList(args, arg_count).list());
}
void strobe_async_end_args(strobe_name name, uint64_t id, const strobe_arg* args, size_t arg_count) {
  strobe::record::async_end(Name::with_id(name), id, ArgList(args, arg_count).list());
}
void strobe_async_end_text(const char* name, uint64_t id, const strobe_arg* args, size_t arg_count) {
  strobe::record::async_end(text_of(name), id, ArgList(args, arg_count).list());
}
void strobe_async_end_id(uint64_t id, const strobe_arg* args, size_t arg_count) {
  strobe::record::async_end(id, ArgList(args, arg_count).list());
}
uint64_t strobe_new_id(void) {
  return strobe::record::new_id();
}

void strobe_flow_out(strobe_name name, uint64_t id) {
  strobe::record::flow_out(Name::with_id(name), id);
}
void strobe_flow_in(strobe_name name, uint64_t id) {
  strobe::record::flow_in(Name::with_id(name), id);
}

void strobe_mark(strobe_name name, int64_t frame) {
  strobe::record::mark(Name::with_id(name), frame);
}
void strobe_mark_in(strobe_category_t category, strobe_name name, int64_t frame, const strobe_arg* args,
                    size_t arg_count) {
  strobe::record::mark(Name::with_id(name), frame, Category::with_id(category), ArgList(args, arg_count).list());
}
void strobe_mark_text_in(strobe_category_t category, const char* name, int64_t frame, const strobe_arg* args,
                         size_t arg_count) {
  strobe::record::mark(text_of(name), frame, Category::with_id(category), ArgList(args, arg_count).list());
}

void strobe_counter(strobe_name name, double value) {
  strobe::record::counter(Name::with_id(name), value);
}
void strobe_counter_int(strobe_name name, int64_t value) {
  strobe::record::counter(Name::with_id(name), value);
}
void strobe_thread_counter(strobe_name name, double value) {
  strobe::record::thread_counter(Name::with_id(name), value);
}
void strobe_thread_counter_int(strobe_name name, int64_t value) {
  strobe::record::thread_counter(Name::with_id(name), value);
}
void strobe_name_thread(const char* name) {
  strobe::record::name_thread(text_of(name));
}
void strobe_fact(const char* key, const char* value) {
  strobe::record::fact(text_of(key), text_of(value));
}

}  // extern "C"

#pragma GCC visibility pop
