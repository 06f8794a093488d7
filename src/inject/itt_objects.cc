#include "inject/itt_objects.h"

#include <atomic>
#include <cstring>
#include <map>

#include "inject/start.h"

namespace strobe::inject::itt {
namespace {

struct Objects {
  std::map<std::string, Domain*, std::less<>> domains;
  std::map<std::string, StringHandle*, std::less<>> strings;
};
Objects& objects() {
  static auto* made = new Objects;
  return *made;
}

// Objects are made here or by the static part, which sets the field to 0; every thread would store the same id.
template <typename Object>
std::atomic_ref<int> cached_id(const Object* object) {
  return std::atomic_ref<int>(const_cast<Object*>(object)->extra1);
}

template <typename T>
T load(const void* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

size_t size_of(int type) {
  switch (type) {
    case kU64:
    case kS64:
    case kDouble:
      return 8;
    case kU32:
    case kS32:
    case kFloat:
      return 4;
    case kU16:
    case kS16:
      return 2;
    default:
      return 0;
  }
}

}  // namespace

Domain* create_domain(const char* name) {
  if (name == nullptr) return nullptr;
  const auto lock = lock_tables();
  auto found = objects().domains.find(std::string_view(name));
  if (found == objects().domains.end()) {
    found = objects().domains.emplace(name, nullptr).first;
    found->second = new Domain{1, found->first.c_str(), nullptr, 0, nullptr, nullptr};
  }
  return found->second;
}

StringHandle* create_string(const char* text) {
  if (text == nullptr) return nullptr;
  const auto lock = lock_tables();
  auto found = objects().strings.find(std::string_view(text));
  if (found == objects().strings.end()) {
    found = objects().strings.emplace(text, nullptr).first;
    found->second = new StringHandle{found->first.c_str(), nullptr, 0, nullptr, nullptr};
  }
  return found->second;
}

std::string_view domain_name(const Domain* domain) {
  return domain == nullptr || domain->name == nullptr ? std::string_view() : std::string_view(domain->name);
}

record::Category category_of(const Domain* domain) {
  if (domain_name(domain).empty()) return {};
  const auto cached = cached_id(domain);
  int id = cached.load(std::memory_order_relaxed);
  if (id == 0) cached.store(id = static_cast<int>(record::Category("", domain_name(domain)).id()));
  return record::Category::with_id(static_cast<uint32_t>(id));
}

record::Name name_of(const StringHandle* handle) {
  if (handle == nullptr || handle->text == nullptr) {
    static const record::Name nameless("");
    return nameless;
  }
  const auto cached = cached_id(handle);
  int id = cached.load(std::memory_order_relaxed);
  if (id == 0) cached.store(id = static_cast<int>(record::Name(handle->text).id()) + 1);
  return record::Name::with_id(static_cast<uint32_t>(id - 1));
}

bool read_value(int type, const void* data, bool& is_real, int64_t& integer, double& real) {
  if (data == nullptr) return false;
  is_real = type == kFloat || type == kDouble;
  switch (type) {
    case kU64:
    case kS64:
      integer = load<int64_t>(data);
      return true;
    case kU32:
      integer = load<uint32_t>(data);
      return true;
    case kS32:
      integer = load<int32_t>(data);
      return true;
    case kU16:
      integer = load<uint16_t>(data);
      return true;
    case kS16:
      integer = load<int16_t>(data);
      return true;
    case kFloat:
      real = double{load<float>(data)};
      return true;
    case kDouble:
      real = load<double>(data);
      return true;
    default:
      return false;
  }
}

void add_values(record::Name key, int type, size_t count, const void* data, Arguments& arguments) {
  constexpr size_t kMaxElements = 64;
  bool is_real = false;
  int64_t integer = 0;
  double real = 0;
  if (count == 1) {
    if (!read_value(type, data, is_real, integer, real)) return;
    if (is_real)
      arguments.add(key, real);
    else if (type == kU64)
      arguments.add_unsigned(key, static_cast<uint64_t>(integer));
    else
      arguments.add(key, integer);
    return;
  }
  std::string all = "[";
  for (size_t i = 0; i < count && i < kMaxElements; ++i) {
    if (!read_value(type, static_cast<const char*>(data) + i * size_of(type), is_real, integer, real)) return;
    if (i > 0) all += ", ";
    if (is_real)
      all += std::to_string(real);
    else
      all += type == kU64 ? std::to_string(static_cast<uint64_t>(integer)) : std::to_string(integer);
  }
  arguments.add(key, all + (count > kMaxElements ? ", ...]" : "]"));
}

}  // namespace strobe::inject::itt
