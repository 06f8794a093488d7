// NVTX's counter extension: each value is recorded when it is given. Batches with times of their own are not taken.
#include <map>
#include <memory>

#include "inject/nvtx_domain.h"
#include "inject/nvtx_payload.h"
#include "inject/start.h"
#include "strobe/record/annotate.h"

namespace strobe::inject::nvtx {
namespace {

struct Value {
  record::Name name;
  uint64_t type;
  uint64_t offset;
};
struct Counter {
  std::vector<Value> values;
  bool of_thread;
};
struct Counters {
  std::map<uint64_t, std::shared_ptr<const Counter>> by_id;
  uint64_t next_id = kFirstDynamicId;
};
Counters& counters() {
  static auto* made = new Counters;
  return *made;
}

uint64_t register_counter(const void* domain, const CounterAttributes* given) {
  if (given == nullptr) return 0;
  const std::string& library = domain_of(domain).name;
  const std::string name = (library.empty() ? "" : library + "/") + (given->name != nullptr ? given->name : "counter");
  auto counter = std::make_shared<Counter>();
  counter->of_thread = given->scope == kScopeThread;
  for (const Field& field : fields_of(given->schema))
    counter->values.push_back(
        {record::Name(field.name.empty() ? name : name + "." + field.name), field.type, field.offset});
  if (counter->values.empty()) counter->values.push_back({record::Name(name), 0, 0});
  const auto lock = lock_tables();
  const uint64_t id = given->id != 0 ? given->id : counters().next_id++;
  counters().by_id[id] = std::move(counter);
  return id;
}

std::shared_ptr<const Counter> counter_of(uint64_t id) {
  if (paused.load(std::memory_order_relaxed)) return nullptr;
  const auto lock = lock_tables();
  const auto found = counters().by_id.find(id);
  return found == counters().by_id.end() ? nullptr : found->second;
}

template <typename T>
void put(const Counter& counter, const Value& value, T number) {
  if (counter.of_thread)
    record::thread_counter(value.name, number);
  else
    record::counter(value.name, number);
}

void sample(const void*, uint64_t id, const void* bytes, size_t size) {
  const auto counter = counter_of(id);
  if (counter == nullptr || bytes == nullptr) return;
  for (const Value& value : counter->values) {
    Number number{};
    if (value.offset >= size ||
        !read_number(value.type, static_cast<const char*>(bytes) + value.offset, size - value.offset, number))
      continue;
    if (number.is_real)
      put(*counter, value, number.real);
    else
      put(*counter, value, number.integer);
  }
}

}  // namespace

bool attach_counters(ExtensionModule& module) {
  ExtensionSegment& segment = module.segments[0];
  const auto set = [&segment](size_t slot, auto* function) {
    if (slot < segment.slot_count) segment.slots[slot] = reinterpret_cast<intptr_t>(function);
  };
  set(kCounterRegister, &register_counter);
  set(
      kSampleInt64, +[](const void*, uint64_t id, int64_t number) {
        if (const auto counter = counter_of(id)) put(*counter, counter->values.front(), number);
      });
  set(
      kSampleFloat64, +[](const void*, uint64_t id, double number) {
        if (const auto counter = counter_of(id)) put(*counter, counter->values.front(), number);
      });
  set(kSample, &sample);
  return true;
}

}  // namespace strobe::inject::nvtx
