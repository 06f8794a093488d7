// ITT's tasks, regions, markers and metadata.
#include <dlfcn.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <map>

#include "inject/itt_objects.h"
#include "inject/range_stack.h"
#include "inject/start.h"
#include "strobe/record/annotate.h"

namespace strobe::inject::itt {
namespace {

bool is_none(const Id& id) {
  return id.d1 == 0 && id.d2 == 0 && id.d3 == 0;
}

// Tasks and regions that may overlap, by the program's id.
struct Overlapped {
  uint64_t id;
  Arguments arguments;  // that came while it was open
};
using Key = std::tuple<unsigned long long, unsigned long long, unsigned long long>;
std::map<Key, Overlapped>& overlapped() {
  static auto* made = new std::map<Key, Overlapped>;
  return *made;
}
Key key_of(const Id& id) {
  return {id.d1, id.d2, id.d3};
}

template <typename Name>
void begin_task(const Domain* domain, Name name) {
  const bool record = !paused.load(std::memory_order_relaxed);
  if (record) record::push(name, record::kNoFrame, category_of(domain));
  opened(domain, record);
}

void task_begin(const Domain* domain, Id, Id, StringHandle* name) {
  begin_task(domain, name_of(name));
}

void task_begin_fn(const Domain* domain, Id, Id, void* function) {
  Dl_info info{};
  if (::dladdr(function, &info) != 0 && info.dli_sname != nullptr)
    return begin_task(domain, std::string_view(info.dli_sname));
  char text[32];
  std::snprintf(text, sizeof text, "function %p", function);
  begin_task(domain, std::string_view(text));
}

void task_end(const Domain* domain) {
  close_innermost(domain);
}

void begin_overlapped(const Domain* domain, Id id, Id, StringHandle* name) {
  if (paused.load(std::memory_order_relaxed)) return;
  const uint64_t made = record::new_id();
  record::async_begin(name_of(name), made, record::kNoFrame, category_of(domain));
  const auto lock = lock_tables();
  overlapped()[key_of(id)] = {made, {}};
}

void end_overlapped(const Domain*, Id id) {
  Overlapped ended{};
  {
    const auto lock = lock_tables();
    const auto found = overlapped().find(key_of(id));
    if (found == overlapped().end()) return;
    ended = std::move(found->second);
    overlapped().erase(found);
  }
  record::async_end(ended.id, ended.arguments.list());
}

void marker(const Domain* domain, Id, StringHandle* name, int) {
  if (!paused.load(std::memory_order_relaxed)) record::mark(name_of(name), record::kNoFrame, category_of(domain));
}

// Metadata belongs to what the id names: an overlapped task, else the innermost open range of this thread.
template <typename Add>
void add_metadata(const Domain* domain, const Id& id, const Add& add) {
  if (paused.load(std::memory_order_relaxed)) return;
  if (!is_none(id)) {
    const auto lock = lock_tables();
    const auto found = overlapped().find(key_of(id));
    if (found != overlapped().end()) return add(found->second.arguments);
  }
  Arguments arguments;
  add(arguments);
  if (innermost_is(domain)) return arguments.put_on_innermost();
  static const record::Name name("metadata");
  record::mark(name, record::kNoFrame, category_of(domain), arguments.list());
}

void metadata_add(const Domain* domain, Id id, StringHandle* key, int type, size_t count, void* data) {
  add_metadata(domain, id, [&](Arguments& arguments) { add_values(name_of(key), type, count, data, arguments); });
}

void metadata_str_add(const Domain* domain, Id id, StringHandle* key, const char* data, size_t length) {
  if (data == nullptr) return;
  // Length 0: the text ends with 0.
  const std::string text(data, length == 0 ? std::strlen(data) : ::strnlen(data, length));
  add_metadata(domain, id, [&](Arguments& arguments) { arguments.add(name_of(key), text); });
}

void metadata_add_with_scope(const Domain* domain, int, StringHandle* key, int type, size_t count, void* data) {
  metadata_add(domain, Id{}, key, type, count, data);
}
void metadata_str_add_with_scope(const Domain* domain, int, StringHandle* key, const char* data, size_t length) {
  metadata_str_add(domain, Id{}, key, data, length);
}

void add_formatted(const Domain* domain, const Id& id, const StringHandle* format, va_list values) {
  if (format == nullptr || format->text == nullptr) return;
  static const record::Name key("metadata");
  char text[1024];
  std::vsnprintf(text, sizeof text, format->text, values);
  add_metadata(domain, id, [&](Arguments& arguments) { arguments.add(key, std::string(text)); });
}
void formatted_metadata_add(const Domain* domain, StringHandle* format, ...) {
  va_list values;
  va_start(values, format);
  add_formatted(domain, Id{}, format, values);
  va_end(values);
}
void formatted_metadata_add_overlapped(const Domain* domain, Id id, StringHandle* format, ...) {
  va_list values;
  va_start(values, format);
  add_formatted(domain, id, format, values);
  va_end(values);
}

// Those with a clock of the program's own are taken at the time of the call.
void task_begin_ex(const Domain* domain, void*, unsigned long long, Id id, Id parent, StringHandle* name) {
  task_begin(domain, id, parent, name);
}
void task_begin_fn_ex(const Domain* domain, void*, unsigned long long, Id id, Id parent, void* function) {
  task_begin_fn(domain, id, parent, function);
}
void task_end_ex(const Domain* domain, void*, unsigned long long) {
  task_end(domain);
}
void begin_overlapped_ex(const Domain* domain, void*, unsigned long long, Id id, Id parent, StringHandle* name) {
  begin_overlapped(domain, id, parent, name);
}
void end_overlapped_ex(const Domain* domain, void*, unsigned long long, Id id) {
  end_overlapped(domain, id);
}
void marker_ex(const Domain* domain, void*, unsigned long long, Id id, StringHandle* name, int scope) {
  marker(domain, id, name, scope);
}

}  // namespace

const Function* task_functions() {
  static const Function list[] = {
      function("__itt_task_begin", task_begin),
      function("__itt_task_begin_fn", task_begin_fn),
      function("__itt_task_end", task_end),
      function("__itt_task_begin_ex", task_begin_ex),
      function("__itt_task_begin_fn_ex", task_begin_fn_ex),
      function("__itt_task_end_ex", task_end_ex),
      function("__itt_task_begin_overlapped", begin_overlapped),
      function("__itt_task_end_overlapped", end_overlapped),
      function("__itt_task_begin_overlapped_ex", begin_overlapped_ex),
      function("__itt_task_end_overlapped_ex", end_overlapped_ex),
      function("__itt_region_begin", begin_overlapped),
      function("__itt_region_end", end_overlapped),
      function("__itt_marker", marker),
      function("__itt_marker_ex", marker_ex),
      function("__itt_metadata_add", metadata_add),
      function("__itt_metadata_str_add", metadata_str_add),
      function("__itt_metadata_add_with_scope", metadata_add_with_scope),
      function("__itt_metadata_str_add_with_scope", metadata_str_add_with_scope),
      function("__itt_formatted_metadata_add", formatted_metadata_add),
      function("__itt_formatted_metadata_add_overlapped", formatted_metadata_add_overlapped),
      {nullptr, nullptr},
  };
  return list;
}

}  // namespace strobe::inject::itt
