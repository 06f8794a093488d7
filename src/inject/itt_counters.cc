// ITT's counters: values that the program sets, and those that it adds to.
#include <map>
#include <mutex>
#include <optional>

#include "inject/itt_objects.h"
#include "inject/start.h"
#include "strobe/record/annotate.h"

namespace strobe::inject::itt {
namespace {

struct Counter {
  record::Name name;
  int type;
  int64_t value = 0;  // of one that is added to
};
struct Counters {
  std::map<const void*, Counter> by_object;
  std::map<std::pair<const Domain*, const StringHandle*>, Counter> by_name;  // of the calls without an object
};
Counters& counters() {
  static auto* made = new Counters;
  return *made;
}

record::Name full_name(std::string_view domain, std::string_view name) {
  return record::Name(domain.empty() ? std::string(name) : std::string(domain) + "/" + std::string(name));
}

void* create(std::string_view name, std::string_view domain, int type) {
  auto* object = new CounterInfo{};
  const auto lock = lock_tables();
  counters().by_object.emplace(object, Counter{full_name(domain, name), type});
  return object;
}
void* counter_create_typed(const char* name, const char* domain, int type) {
  return create(name != nullptr ? name : "", domain != nullptr ? domain : "", type);
}
void* counter_create(const char* name, const char* domain) {
  return counter_create_typed(name, domain, kU64);
}
void* counter_create_v3(const Domain* domain, const char* name, int type) {
  return create(name != nullptr ? name : "", domain_name(domain), type);
}
void counter_destroy(void* object) {
  const auto lock = lock_tables();
  counters().by_object.erase(object);
}

std::optional<Counter> add(const void* object, int64_t delta) {
  const auto lock = lock_tables();
  const auto found = counters().by_object.find(object);
  if (found == counters().by_object.end()) return std::nullopt;
  found->second.value += delta;
  return found->second;
}
void add_and_put(const void* object, int64_t delta) {
  const auto counter = add(object, delta);
  if (counter && !paused.load(std::memory_order_relaxed)) record::counter(counter->name, counter->value);
}
void counter_inc(void* object) {
  add_and_put(object, 1);
}
void counter_inc_delta(void* object, unsigned long long delta) {
  add_and_put(object, static_cast<int64_t>(delta));
}
void counter_dec(void* object) {
  add_and_put(object, -1);
}
void counter_dec_delta(void* object, unsigned long long delta) {
  add_and_put(object, -static_cast<int64_t>(delta));
}

void counter_set_value(void* object, void* value) {
  const auto counter = add(object, 0);
  bool is_real = false;
  int64_t integer = 0;
  double real = 0;
  if (!counter || paused.load(std::memory_order_relaxed) || !read_value(counter->type, value, is_real, integer, real))
    return;
  if (is_real)
    record::counter(counter->name, real);
  else if (counter->type == kU64 && integer < 0)
    record::counter(counter->name, static_cast<double>(static_cast<uint64_t>(integer)));
  else
    record::counter(counter->name, integer);
}
void counter_set_value_ex(void* object, void*, unsigned long long, void* value) {
  counter_set_value(object, value);
}

void add_by_name(const Domain* domain, const StringHandle* name, int64_t delta) {
  if (name == nullptr || name->text == nullptr) return;
  int64_t value = 0;
  record::Name full("");
  {
    const auto lock = lock_tables();
    auto found = counters().by_name.find({domain, name});
    if (found == counters().by_name.end())
      found = counters()
                  .by_name.emplace(std::pair(domain, name), Counter{full_name(domain_name(domain), name->text), kS64})
                  .first;
    value = found->second.value += delta;
    full = found->second.name;
  }
  if (!paused.load(std::memory_order_relaxed)) record::counter(full, value);
}
void counter_inc_v3(const Domain* domain, StringHandle* name) {
  add_by_name(domain, name, 1);
}
void counter_inc_delta_v3(const Domain* domain, StringHandle* name, unsigned long long delta) {
  add_by_name(domain, name, static_cast<int64_t>(delta));
}
void counter_dec_v3(const Domain* domain, StringHandle* name) {
  add_by_name(domain, name, -1);
}
void counter_dec_delta_v3(const Domain* domain, StringHandle* name, unsigned long long delta) {
  add_by_name(domain, name, -static_cast<int64_t>(delta));
}

}  // namespace

void adopt_counter(CounterInfo* counter) {
  const std::string_view domain = counter->domain != nullptr ? counter->domain : "";
  const auto name = full_name(domain, counter->name != nullptr ? counter->name : "");
  const auto lock = lock_tables();
  counters().by_object.emplace(counter, Counter{name, counter->type});
}

const Function* counter_functions() {
  static const Function list[] = {
      function("__itt_counter_create", counter_create),
      function("__itt_counter_create_typed", counter_create_typed),
      function("__itt_counter_create_v3", counter_create_v3),
      function("__itt_counter_destroy", counter_destroy),
      function("__itt_counter_inc", counter_inc),
      function("__itt_counter_inc_delta", counter_inc_delta),
      function("__itt_counter_dec", counter_dec),
      function("__itt_counter_dec_delta", counter_dec_delta),
      function("__itt_counter_set_value", counter_set_value),
      function("__itt_counter_set_value_v3", counter_set_value),
      function("__itt_counter_set_value_ex", counter_set_value_ex),
      function("__itt_counter_inc_v3", counter_inc_v3),
      function("__itt_counter_inc_delta_v3", counter_inc_delta_v3),
      function("__itt_counter_dec_v3", counter_dec_v3),
      function("__itt_counter_dec_delta_v3", counter_dec_delta_v3),
      {nullptr, nullptr},
  };
  return list;
}

}  // namespace strobe::inject::itt
