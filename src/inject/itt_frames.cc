// ITT's frames and its older events and marks.
#include <map>
#include <mutex>
#include <vector>

#include <unistd.h>

#include "inject/itt_objects.h"
#include "inject/late_range.h"
#include "inject/start.h"
#include "strobe/record/annotate.h"

namespace strobe::inject::itt {
namespace {

// A frame is named by its domain and, where the program gives one, an id; without one there is one a thread.
using FrameKey = std::tuple<const void*, unsigned long long, unsigned long long, unsigned long long>;
struct Frames {
  std::map<FrameKey, uint64_t> open;                 // to the recorder's id
  std::map<const void*, int64_t> begun;              // of a domain so far
  std::vector<std::string> events, marks;            // names by number - 1
  std::map<std::pair<pid_t, int>, int64_t> started;  // of events, by thread and number
};
Frames& frames() {
  static auto* made = new Frames;
  return *made;
}

FrameKey key_of(const void* domain, const Id* id) {
  if (id == nullptr) return {domain, 0, 0, static_cast<unsigned long long>(::gettid())};
  return {domain, id->d1, id->d2, id->d3};
}

record::Name frame_name() {
  static const record::Name name("frame");
  return name;
}

void begin_frame(const void* object, const Domain* domain, const Id* id) {
  if (paused.load(std::memory_order_relaxed)) return;
  static const record::Name number("number");
  const uint64_t made = record::new_id();
  int64_t count = 0;
  {
    const auto lock = lock_tables();
    frames().open[key_of(object, id)] = made;
    count = frames().begun[object]++;
  }
  record::async_begin(frame_name(), made, record::kNoFrame, category_of(domain), {{number, count}});
}

void end_frame(const void* object, const Id* id) {
  uint64_t made = 0;
  {
    const auto lock = lock_tables();
    const auto found = frames().open.find(key_of(object, id));
    if (found == frames().open.end()) return;
    made = found->second;
    frames().open.erase(found);
  }
  record::async_end(made);
}

void frame_begin_v3(const Domain* domain, Id* id) {
  begin_frame(domain, domain, id);
}
void frame_end_v3(const Domain* domain, Id* id) {
  end_frame(domain, id);
}
void frame_submit_v3(const Domain* domain, Id*, unsigned long long begin, unsigned long long end) {
  if (paused.load(std::memory_order_relaxed)) return;
  put_late_range(frame_name(), domain_name(domain), static_cast<int64_t>(begin), static_cast<int64_t>(end));
}

// Frames before version 3 have a domain of their own.
void* frame_create(const char* domain) {
  return create_domain(domain);
}
void frame_begin(void* frame) {
  begin_frame(frame, static_cast<const Domain*>(frame), nullptr);
}
void frame_end(void* frame) {
  end_frame(frame, nullptr);
}

unsigned long long get_timestamp() {
  return static_cast<unsigned long long>(now_ns());
}

int add_name(std::vector<std::string>& names, const char* name, size_t length) {
  const auto lock = lock_tables();
  names.emplace_back(name == nullptr ? "" : std::string(name, length));
  return static_cast<int>(names.size());
}
std::string name_at(const std::vector<std::string>& names, int number) {
  const auto lock = lock_tables();
  return number < 1 || static_cast<size_t>(number) > names.size() ? std::string()
                                                                  : names[static_cast<size_t>(number) - 1];
}

// An event is an instant, unless its end is told later.
int event_create(const char* name, int length) {
  return add_name(frames().events, name, length < 0 ? 0 : static_cast<size_t>(length));
}
int event_start(int event) {
  if (paused.load(std::memory_order_relaxed)) return 0;
  record::mark(std::string_view(name_at(frames().events, event)));
  const auto lock = lock_tables();
  frames().started[{::gettid(), event}] = now_ns();
  return 0;
}
int event_end(int event) {
  int64_t begin = 0;
  {
    const auto lock = lock_tables();
    const auto found = frames().started.find({::gettid(), event});
    if (found == frames().started.end()) return 0;
    begin = found->second;
    frames().started.erase(found);
  }
  put_late_range(record::Name(name_at(frames().events, event)), "", begin, now_ns());
  return 0;
}

int mark_create(const char* name) {
  return add_name(frames().marks, name, name == nullptr ? 0 : std::string_view(name).size());
}
int mark(int type, const char* parameter) {
  if (paused.load(std::memory_order_relaxed)) return 0;
  static const record::Name key("parameter");
  const std::string name = name_at(frames().marks, type);
  if (parameter == nullptr)
    record::mark(std::string_view(name));
  else
    record::mark(std::string_view(name), record::kNoFrame, {}, {{key, parameter}});
  return 0;
}

void thread_set_name(const char* name) {
  if (name != nullptr) record::name_thread(name);
}
int thr_name_set(const char* name, int length) {
  if (name != nullptr && length >= 0) record::name_thread(std::string(name, static_cast<size_t>(length)));
  return 0;
}

}  // namespace

const Function* frame_functions() {
  static const Function list[] = {
      function("__itt_frame_begin_v3", frame_begin_v3),   function("__itt_frame_end_v3", frame_end_v3),
      function("__itt_frame_submit_v3", frame_submit_v3), function("__itt_frame_create", frame_create),
      function("__itt_frame_begin", frame_begin),         function("__itt_frame_end", frame_end),
      function("__itt_get_timestamp", get_timestamp),     {nullptr, nullptr},
  };
  return list;
}

const Function* event_functions() {
  static const Function list[] = {
      function("__itt_event_create", event_create),
      function("__itt_event_start", event_start),
      function("__itt_event_end", event_end),
      function("__itt_mark_create", mark_create),
      function("__itt_mark", mark),
      function("__itt_mark_global", mark),
      function("__itt_thread_set_name", thread_set_name),
      function("__itt_thr_name_set", thr_name_set),
      {nullptr, nullptr},
  };
  return list;
}

}  // namespace strobe::inject::itt
