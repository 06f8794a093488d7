#include "inject/nvtx_payload.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "inject/nvtx_domain.h"
#include "inject/range_stack.h"
#include "inject/start.h"
#include "strobe/record/annotate.h"

namespace strobe::inject::nvtx {
namespace {

constexpr size_t kMaxElements = 64;
constexpr int kMaxDepth = 8;
constexpr size_t kMaxText = 4096;

// Types of entries, beyond numbers.
constexpr uint64_t kChar = 1, kChar8 = 25, kText = 75, kTextUtf8 = 76, kRegisteredText = 80;

struct Entry {
  std::string name;
  uint64_t flags, type, detail, offset;
};
struct Schema {
  std::string name;
  std::vector<Entry> entries;
  size_t size = 0;
};
struct Enumeration {
  size_t size;
  std::map<uint64_t, std::string> names;
};
struct Tables {
  std::map<uint64_t, std::shared_ptr<const Schema>> schemas;
  std::map<uint64_t, std::shared_ptr<const Enumeration>> enumerations;
  uint64_t next_id = kFirstDynamicId;
};
// Schemas are of a domain, but their ids are given by us, or chosen by the program for all of it.
Tables& tables() {
  static auto* made = new Tables;
  return *made;
}

size_t size_of(uint64_t type) {
  switch (type) {
    case 1:
    case 2:
    case 11:
    case 12:
    case 25:
    case 32:
      return 1;
    case 3:
    case 4:
    case 13:
    case 14:
    case 26:
    case 42:
    case 50:
      return 2;
    case 5:
    case 6:
    case 15:
    case 16:
    case 19:
    case 24:
    case 27:
    case 43:
    case 52:
    case 68:
    case 69:
    case 71:
    case 73:
      return 4;
    case 7:
    case 8:
    case 9:
    case 10:
    case 17:
    case 18:
    case 20:
    case 22:
    case 23:
    case 44:
    case 67:
    case 70:
    case 72:
    case 74:
    case 75:
    case 76:
    case 77:
    case 78:
    case 80:
      return 8;
    case 21:
    case 33:
    case 34:
    case 45:
      return 16;
    default:
      return 0;
  }
}

template <typename T>
T load(const void* at) {
  T value{};
  std::memcpy(&value, at, sizeof value);
  return value;
}

std::shared_ptr<const Schema> schema_of(uint64_t id) {
  const auto lock = lock_tables();
  const auto found = tables().schemas.find(id);
  return found == tables().schemas.end() ? nullptr : found->second;
}
std::shared_ptr<const Enumeration> enumeration_of(uint64_t id) {
  const auto lock = lock_tables();
  const auto found = tables().enumerations.find(id);
  return found == tables().enumerations.end() ? nullptr : found->second;
}

// A schema of nothing but one number is that number: Python's nvtx wraps the elements of arrays so.
uint64_t scalar_of(uint64_t type) {
  if (type < kFirstStaticId) return type;
  const auto schema = schema_of(type);
  if (schema == nullptr || schema->entries.size() != 1) return 0;
  const Entry& only = schema->entries[0];
  return only.offset == 0 && (only.flags & (kPointer | kArrayMask)) == 0 && only.type < kFirstStaticId ? only.type : 0;
}

std::string text_of(const Number& number) {
  if (number.is_real) return std::to_string(number.real);
  return number.is_unsigned ? std::to_string(static_cast<uint64_t>(number.integer)) : std::to_string(number.integer);
}

void add_number(record::Name key, const Number& number, Arguments& arguments) {
  if (number.is_real)
    arguments.add(key, number.real);
  else if (number.is_unsigned)
    arguments.add_unsigned(key, static_cast<uint64_t>(number.integer));
  else
    arguments.add(key, number.integer);
}

class Expansion {
 public:
  Expansion(Arguments& arguments, std::string& message) : arguments_(arguments), message_(message) {}

  void payload(const PayloadData& data) {
    if (data.bytes == nullptr) return;
    const auto* bytes = static_cast<const char*>(data.bytes);
    if (const auto schema = schema_of(data.schema)) {
      const size_t size = data.size == SIZE_MAX ? schema->size : data.size;
      return structure(*schema, bytes, size, "", 0);
    }
    const Entry whole{"payload", 0, data.schema, 0, 0};
    if (data.schema < kFirstStaticId)
      value(whole, bytes, data.size == SIZE_MAX ? size_of(data.schema) : data.size, "payload", 0);
  }

 private:
  void structure(const Schema& schema, const char* bytes, size_t size, const std::string& prefix, int depth) {
    if (depth > kMaxDepth) return;
    for (const Entry& entry : schema.entries) {
      if ((entry.flags & kHidden) != 0 || entry.offset >= size) continue;
      const std::string key = prefix + (entry.name.empty() ? schema.name : entry.name);
      const char* at = bytes + entry.offset;
      size_t left = size - entry.offset;
      if ((entry.flags & kPointer) != 0) {
        if (left < sizeof(void*)) continue;
        at = load<const char*>(at);
        left = SIZE_MAX;
        if (at == nullptr) continue;
      }
      if ((entry.flags & kArrayMask) != 0)
        array(schema, entry, bytes, size, at, left, key, depth);
      else
        value(entry, at, left, key, depth);
    }
  }

  void text(const Entry& entry, const std::string& key, std::string value) {
    if ((entry.flags & kIsMessageMask) == kIsMessage)
      message_ = std::move(value);
    else
      arguments_.add(record::Name(key), std::move(value));
  }

  void value(const Entry& entry, const char* at, size_t left, const std::string& key, int depth) {
    if (const uint64_t scalar = scalar_of(entry.type); scalar != entry.type && scalar != 0)
      return value({entry.name, entry.flags, scalar, 0, 0}, at, left, key, depth);
    if (const auto inner = entry.type >= kFirstStaticId ? schema_of(entry.type) : nullptr)
      return structure(*inner, at, std::min(left, inner->size), key + ".", depth + 1);
    if (const auto names = entry.type >= kFirstStaticId ? enumeration_of(entry.type) : nullptr) {
      if (names->size > left || names->size > 8) return;
      uint64_t number = 0;
      std::memcpy(&number, at, names->size);
      const auto found = names->names.find(number);
      return text(entry, key, found == names->names.end() ? std::to_string(number) : found->second);
    }
    const size_t bytes = size_of(entry.type);
    if (bytes == 0 || bytes > left) return;
    if (entry.type == kText || entry.type == kTextUtf8) {
      const auto* pointed = load<const char*>(at);
      return text(entry, key, pointed == nullptr ? std::string() : std::string(pointed, ::strnlen(pointed, kMaxText)));
    }
    if (entry.type == kRegisteredText) {
      const auto* registered = load<const RegisteredString*>(at);
      return text(entry, key, registered == nullptr ? std::string() : registered->text);
    }
    if (Number number; read_number(entry.type, at, left, number)) add_number(record::Name(key), number, arguments_);
  }

  void array(const Schema& schema, const Entry& entry, const char* bytes, size_t size, const char* at, size_t left,
             const std::string& key, int depth) {
    const uint64_t type = scalar_of(entry.type);
    const auto inner = type == 0 ? schema_of(entry.type) : nullptr;
    const size_t element = inner != nullptr ? inner->size : size_of(type);
    if (element == 0 || depth > kMaxDepth) return;
    size_t count = left / element;
    if ((entry.flags & kArrayMask) == kArrayFixed) count = std::min<size_t>(count, entry.detail);
    if ((entry.flags & kArrayMask) == kArrayLengthEntry) {
      if (entry.detail >= schema.entries.size()) return;
      const Entry& length = schema.entries[entry.detail];
      Number number{};
      if (length.offset >= size || !read_number(length.type, bytes + length.offset, size - length.offset, number) ||
          number.integer < 0)
        return;
      count = std::min(count, static_cast<size_t>(number.integer));
    } else if ((entry.flags & kArrayMask) != kArrayFixed && (entry.flags & kArrayMask) != kArrayZeroEnded) {
      return;
    }
    if (inner != nullptr) {
      for (size_t i = 0; i < std::min(count, kMaxElements); ++i) {
        const std::string place = count == 1 ? std::string() : "[" + std::to_string(i) + "]";
        structure(*inner, at + i * element, element, key + place + ".", depth + 1);
      }
      return;
    }
    if (type == kChar || type == kChar8)
      return text(entry, key, std::string(at, ::strnlen(at, std::min(count, kMaxText))));
    std::string all = "[";
    for (size_t i = 0; i < std::min(count, kMaxElements); ++i) {
      Number number{};
      if (!read_number(type, at + i * element, element, number)) return;
      if ((entry.flags & kArrayMask) == kArrayZeroEnded && number.integer == 0 && number.real == 0) break;
      all += (i == 0 ? "" : ", ") + text_of(number);
    }
    if (count > kMaxElements && (entry.flags & kArrayMask) != kArrayZeroEnded) all += ", ...";
    arguments_.add(record::Name(key), all + "]");
  }

  Arguments& arguments_;
  std::string& message_;
};

uint64_t register_schema(const void*, const SchemaAttributes* given) {
  if (given == nullptr) return 0;
  const auto has = [given](uint64_t fields) { return (given->fields & fields) == fields; };
  if (!has(kSchemaEntries | kSchemaEntryCount) || given->entries == nullptr) return 0;
  auto schema = std::make_shared<Schema>();
  schema->name = has(kSchemaName) && given->name != nullptr ? given->name : "payload";
  schema->size = has(kSchemaStaticSize) ? given->static_size : 0;
  uint64_t end = 0;
  for (size_t i = 0; i < given->entry_count; ++i) {
    const SchemaEntry& from = given->entries[i];
    // Offset 0 behind the first entry: right after the one before, aligned to itself.
    uint64_t bytes = (from.flags & kPointer) != 0 ? sizeof(void*) : size_of(scalar_of(from.type));
    if (bytes == 0) {
      if (const auto inner = schema_of(from.type)) bytes = inner->size;
      if (const auto names = enumeration_of(from.type)) bytes = names->size;
    }
    const uint64_t align = bytes > 0 && bytes <= 8 && (bytes & (bytes - 1)) == 0 ? bytes : 8;
    const uint64_t offset = from.offset == 0 && i > 0 ? (end + align - 1) / align * align : from.offset;
    const bool fixed = (from.flags & kPointer) == 0 && (from.flags & kArrayMask) == kArrayFixed;
    end = offset + bytes * (fixed ? from.detail : 1);
    schema->entries.push_back({from.name != nullptr ? from.name : "", from.flags, from.type, from.detail, offset});
  }
  if (schema->size == 0) schema->size = end;
  const auto lock = lock_tables();
  const uint64_t id = has(kSchemaId) && given->id != 0 ? given->id : tables().next_id++;
  tables().schemas[id] = std::move(schema);
  return id;
}

uint64_t register_enumeration(const void*, const EnumAttributes* given) {
  if (given == nullptr) return 0;
  const auto has = [given](uint64_t fields) { return (given->fields & fields) == fields; };
  if (!has(kEnumEntries | kEnumEntryCount) || given->entries == nullptr) return 0;
  auto enumeration = std::make_shared<Enumeration>();
  enumeration->size = has(kEnumSize) ? given->size : sizeof(int);
  for (size_t i = 0; i < given->entry_count; ++i)
    enumeration->names[given->entries[i].value] = given->entries[i].name != nullptr ? given->entries[i].name : "";
  const auto lock = lock_tables();
  const uint64_t id = has(kEnumId) && given->id != 0 ? given->id : tables().next_id++;
  tables().enumerations[id] = std::move(enumeration);
  return id;
}

// Calls use(name, category, arguments) for an event that is nothing but payload.
template <typename Use>
void with_payload(const void* domain, const PayloadData* payloads, size_t count, Use use) {
  Arguments arguments;
  std::string name;
  expand(payloads, count, arguments, name);
  if (name.empty() && count > 0) {
    if (const auto schema = schema_of(payloads[0].schema)) name = schema->name;
  }
  use(std::string_view(name), category_of(domain_of(domain), 0), arguments);
}

int push_payload(const void* domain, const PayloadData* payloads, size_t count) {
  if (paused.load(std::memory_order_relaxed)) return opened(domain, false);
  with_payload(domain, payloads, count, [](auto name, record::Category category, const Arguments& arguments) {
    record::push(name, record::kNoFrame, category);
    arguments.put_on_innermost();
  });
  return opened(domain, true);
}

int pop_payload(const void* domain, const PayloadData* payloads, size_t count) {
  if (innermost_is(domain)) {
    Arguments arguments;
    std::string message;
    expand(payloads, count, arguments, message);
    arguments.put_on_innermost();
  }
  return close_innermost(domain);
}

uint64_t start_payload(const void* domain, const PayloadData* payloads, size_t count) {
  if (paused.load(std::memory_order_relaxed)) return 0;
  const uint64_t id = record::new_id();
  with_payload(domain, payloads, count, [id](auto name, record::Category category, const Arguments& arguments) {
    record::async_begin(name, id, record::kNoFrame, category, arguments.list());
  });
  return id;
}

void end_payload(const void*, uint64_t id, const PayloadData* payloads, size_t count) {
  if (id == 0) return;
  Arguments arguments;
  std::string message;
  expand(payloads, count, arguments, message);
  record::async_end(id, arguments.list());
}

void mark_payload(const void* domain, const PayloadData* payloads, size_t count) {
  if (paused.load(std::memory_order_relaxed)) return;
  with_payload(domain, payloads, count, [](auto name, record::Category category, const Arguments& arguments) {
    record::mark(name, record::kNoFrame, category, arguments.list());
  });
}

}  // namespace

void expand(const PayloadData* payloads, size_t count, Arguments& arguments, std::string& message) {
  if (payloads == nullptr) return;
  Expansion expansion(arguments, message);
  for (size_t i = 0; i < count; ++i) expansion.payload(payloads[i]);
}

bool read_number(uint64_t type, const void* at, size_t left, Number& number) {
  if (size_of(type) > left) return false;
  const auto set = [&number](int64_t value, bool is_unsigned = false) {
    number = {false, is_unsigned, value, 0};
    return true;
  };
  switch (type) {
    case 1:
    case 11:
      return set(load<int8_t>(at));
    case 2:
    case 12:
    case 25:
    case 32:
      return set(load<uint8_t>(at));
    case 3:
    case 13:
      return set(load<int16_t>(at));
    case 4:
    case 14:
    case 26:
      return set(load<uint16_t>(at));
    case 5:
    case 15:
      return set(load<int32_t>(at));
    case 6:
    case 16:
    case 24:
    case 27:
    case 68:
    case 69:
    case 71:
    case 73:
      return set(load<uint32_t>(at));
    case 7:
    case 9:
    case 17:
      return set(load<int64_t>(at));
    case 8:
    case 10:
    case 18:
    case 22:
    case 23:
    case 67:
    case 70:
    case 72:
    case 74:
      return set(load<int64_t>(at), true);
    case 19:
    case 43:
      number = {true, false, 0, double{load<float>(at)}};
      return true;
    case 20:
    case 44:
      number = {true, false, 0, load<double>(at)};
      return true;
    case 50: {  // bfloat16: the upper half of a float
      const uint32_t bits = uint32_t{load<uint16_t>(at)} << 16;
      number = {true, false, 0, double{load<float>(&bits)}};
      return true;
    }
    default:
      return false;
  }
}

std::vector<Field> fields_of(uint64_t id) {
  std::vector<Field> fields;
  if (const auto schema = schema_of(id)) {
    for (const Entry& entry : schema->entries) fields.push_back({entry.name, entry.type, entry.offset});
  } else if (id != 0 && id < kFirstStaticId) {
    fields.push_back({"", id, 0});
  }
  return fields;
}

bool attach_payload(ExtensionModule& module) {
  ExtensionSegment& segment = module.segments[0];
  const auto set = [&segment](size_t slot, auto* function) {
    if (slot < segment.slot_count) segment.slots[slot] = reinterpret_cast<intptr_t>(function);
  };
  set(kSchemaRegister, &register_schema);
  set(kEnumRegister, &register_enumeration);
  set(kMarkPayload, &mark_payload);
  set(kRangePushPayload, &push_payload);
  set(kRangePopPayload, &pop_payload);
  set(kRangeStartPayload, &start_payload);
  set(kRangeEndPayload, &end_payload);
  set(
      kDomainIsEnabled, +[](const void*) -> uint8_t { return paused.load() ? 0 : 1; });
  set(
      kScopeRegister, +[](const void*, const void*) -> uint64_t {
        const auto lock = lock_tables();
        return tables().next_id++;
      });
  return true;
}

}  // namespace strobe::inject::nvtx
