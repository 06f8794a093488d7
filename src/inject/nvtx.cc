// NVTX's core: what a program's calls become. NVIDIA's headers load the library that NVTX_INJECTION64_PATH names at a
// program's first call and let it fill the table of their functions.
#include <unistd.h>

#include <string>
#include <string_view>

#include "inject/arguments.h"
#include "inject/nvtx_abi.h"
#include "inject/nvtx_domain.h"
#include "inject/nvtx_payload.h"
#include "inject/range_stack.h"
#include "inject/start.h"
#include "strobe/record/annotate.h"

namespace strobe::inject::nvtx {
namespace {

const record::Name& payload_key() {
  static const record::Name key("payload");
  return key;
}

void add_payload(const EventAttributes& event, Arguments& arguments, std::string& message) {
  switch (event.payload_type) {
    case kU64:
      arguments.add_unsigned(payload_key(), event.payload.u64);
      break;
    case kI64:
      arguments.add(payload_key(), event.payload.i64);
      break;
    case kF64:
      arguments.add(payload_key(), event.payload.f64);
      break;
    case kU32:
      arguments.add(payload_key(), int64_t{event.payload.u32});
      break;
    case kI32:
      arguments.add(payload_key(), int64_t{event.payload.i32});
      break;
    case kF32:
      arguments.add(payload_key(), double{event.payload.f32});
      break;
    case kExtended:
      if (event.payload_count > 0)
        expand(static_cast<const PayloadData*>(event.payload.extended), static_cast<size_t>(event.payload_count),
               arguments, message);
      break;
    default:
      break;
  }
}

// Calls use(name, category, arguments), where name is a Name or a text.
template <typename Use>
void with_event(const void* domain_handle, const EventAttributes* given, Use use) {
  static const EventAttributes kNothing{};
  const EventAttributes& event = given != nullptr ? *given : kNothing;
  Domain& domain = domain_of(domain_handle);
  const record::Category category = category_of(domain, event.category);
  Arguments arguments;
  std::string message;
  if (event.payload_type != kNoPayload) add_payload(event, arguments, message);
  if (event.color_type == 1) {
    static const record::Name color_key("color");
    arguments.add(color_key, int64_t{event.color});
  }
  if (event.message_type == kRegistered && event.message.registered != nullptr)
    return use(static_cast<const RegisteredString*>(event.message.registered)->name, category, arguments);
  if (event.message_type == kAscii && event.message.ascii != nullptr)
    return use(std::string_view(event.message.ascii), category, arguments);
  if (event.message_type == kWide) message = narrow(event.message.wide);
  use(std::string_view(message), category, arguments);
}

template <typename Name>
int push(const void* domain, Name name, record::Category category, const Arguments& arguments) {
  if (paused.load(std::memory_order_relaxed)) return opened(domain, false);
  record::push(name, record::kNoFrame, category);
  arguments.put_on_innermost();
  return opened(domain, true);
}

template <typename Name>
uint64_t start(Name name, record::Category category, const Arguments& arguments) {
  if (paused.load(std::memory_order_relaxed)) return 0;
  const uint64_t id = record::new_id();
  record::async_begin(name, id, record::kNoFrame, category, arguments.list());
  return id;
}

void mark(const void* domain, const EventAttributes* event) {
  if (paused.load(std::memory_order_relaxed)) return;
  with_event(domain, event, [](auto name, record::Category category, const Arguments& arguments) {
    record::mark(name, record::kNoFrame, category, arguments.list());
  });
}
void mark_text(std::string_view text) {
  if (!paused.load(std::memory_order_relaxed)) record::mark(text);
}

uint64_t start_event(const void* domain, const EventAttributes* event) {
  uint64_t id = 0;
  with_event(domain, event, [&id](auto name, record::Category category, const Arguments& arguments) {
    id = start(name, category, arguments);
  });
  return id;
}
void end(uint64_t id) {
  if (id != 0) record::async_end(id);
}

int push_event(const void* domain, const EventAttributes* event) {
  int depth = 0;
  with_event(domain, event, [&](auto name, record::Category category, const Arguments& arguments) {
    depth = push(domain, name, category, arguments);
  });
  return depth;
}

// A thread that is not the caller gets its name when the trace is made.
void name_thread(uint32_t tid, const std::string& name) {
  if (tid == static_cast<uint32_t>(::gettid()))
    record::name_thread(name);
  else
    record::fact("thread_name." + std::to_string(::getpid()) + "." + std::to_string(tid), name);
}

void* create_domain(const std::string& name) {
  auto* domain = new Domain;
  domain->name = name;
  return domain;
}

void* create_resource(const void*, ResourceAttributes* attributes) {
  if (attributes == nullptr) return nullptr;
  std::string name;
  if (attributes->message_type == kAscii && attributes->message.ascii != nullptr) name = attributes->message.ascii;
  if (attributes->message_type == kWide) name = narrow(attributes->message.wide);
  if (attributes->identifier_type == kNativeThread)
    name_thread(static_cast<uint32_t>(attributes->identifier.number), name);
  static char handle;
  return &handle;
}

std::string text_of(const char* text) {
  return text == nullptr ? std::string() : std::string(text);
}

// The program's own function pointers, and the type that each expects.
class Slots {
 public:
  Slots(const CallbackTable& callbacks, Module module) {
    if (callbacks.get_module(module, &table_, &size_) == 0) size_ = 0;
  }
  template <typename F>
  void set(uint32_t id, F* function) {
    if (id < size_ && table_[id] != nullptr) *table_[id] = reinterpret_cast<Function>(function);
  }

 private:
  FunctionTable table_ = nullptr;
  unsigned size_ = 0;
};

using Event = const EventAttributes*;

void attach_core(const CallbackTable& callbacks) {
  Slots core(callbacks, kModuleCore);
  core.set(
      kMarkEx, +[](Event event) { mark(nullptr, event); });
  core.set(
      kMarkA, +[](const char* text) { mark_text(text_of(text)); });
  core.set(
      kMarkW, +[](const wchar_t* text) { mark_text(narrow(text)); });
  core.set(
      kRangeStartEx, +[](Event event) { return start_event(nullptr, event); });
  core.set(
      kRangeStartA,
      +[](const char* text) { return start(std::string_view(text != nullptr ? text : ""), {}, Arguments()); });
  core.set(
      kRangeStartW, +[](const wchar_t* text) { return start(std::string_view(narrow(text)), {}, Arguments()); });
  core.set(
      kRangeEnd, +[](uint64_t id) { end(id); });
  core.set(
      kRangePushEx, +[](Event event) { return push_event(nullptr, event); });
  core.set(
      kRangePushA,
      +[](const char* text) { return push(nullptr, std::string_view(text != nullptr ? text : ""), {}, Arguments()); });
  core.set(
      kRangePushW, +[](const wchar_t* text) { return push(nullptr, std::string_view(narrow(text)), {}, Arguments()); });
  core.set(
      kRangePop, +[] { return close_innermost(nullptr); });
  core.set(
      kNameCategoryA,
      +[](uint32_t number, const char* name) { name_category(domain_of(nullptr), number, text_of(name)); });
  core.set(
      kNameCategoryW,
      +[](uint32_t number, const wchar_t* name) { name_category(domain_of(nullptr), number, narrow(name)); });
  core.set(
      kNameOsThreadA, +[](uint32_t tid, const char* name) { name_thread(tid, text_of(name)); });
  core.set(
      kNameOsThreadW, +[](uint32_t tid, const wchar_t* name) { name_thread(tid, narrow(name)); });
}

void attach_core2(const CallbackTable& callbacks) {
  Slots core2(callbacks, kModuleCore2);
  core2.set(
      kDomainMarkEx, +[](const void* domain, Event event) { mark(domain, event); });
  core2.set(
      kDomainRangeStartEx, +[](const void* domain, Event event) { return start_event(domain, event); });
  core2.set(
      kDomainRangeEnd, +[](const void*, uint64_t id) { end(id); });
  core2.set(
      kDomainRangePushEx, +[](const void* domain, Event event) { return push_event(domain, event); });
  core2.set(
      kDomainRangePop, +[](const void* domain) { return close_innermost(domain); });
  core2.set(
      kDomainResourceCreate,
      +[](const void* domain, ResourceAttributes* resource) { return create_resource(domain, resource); });
  core2.set(
      kDomainResourceDestroy, +[](void*) {});
  core2.set(
      kDomainNameCategoryA, +[](const void* domain, uint32_t number, const char* name) {
        name_category(domain_of(domain), number, text_of(name));
      });
  core2.set(
      kDomainNameCategoryW, +[](const void* domain, uint32_t number, const wchar_t* name) {
        name_category(domain_of(domain), number, narrow(name));
      });
  core2.set(
      kDomainRegisterStringA,
      +[](const void*, const char* text) -> void* { return new RegisteredString(text_of(text)); });
  core2.set(
      kDomainRegisterStringW,
      +[](const void*, const wchar_t* text) -> void* { return new RegisteredString(narrow(text)); });
  core2.set(
      kDomainCreateA, +[](const char* name) { return create_domain(text_of(name)); });
  core2.set(
      kDomainCreateW, +[](const wchar_t* name) { return create_domain(narrow(name)); });
  // Ranges of the domain may still be open, so it stays.
  core2.set(
      kDomainDestroy, +[](void*) {});
  core2.set(
      kInitialize, +[](const void*) {});
}

}  // namespace
}  // namespace strobe::inject::nvtx

extern "C" {

// Called once for every library of the program that carries NVTX. 0: no tool, the calls become empty.
__attribute__((visibility("default"))) int InitializeInjectionNvtx2(strobe::inject::nvtx::GetExportTable get_table) {
  using namespace strobe::inject;
  if (!start_recording()) return 0;
  const auto* callbacks = static_cast<const nvtx::CallbackTable*>(get_table(nvtx::kCallbacks));
  if (callbacks == nullptr || callbacks->struct_size < sizeof *callbacks) return 0;
  nvtx::attach_core(*callbacks);
  nvtx::attach_core2(*callbacks);
  return 1;
}

__attribute__((visibility("default"))) int InitializeInjectionNvtxExtension(
    strobe::inject::nvtx::ExtensionModule* module) {
  using namespace strobe::inject;
  if (module == nullptr || module->segment_count == 0 || !start_recording()) return 0;
  if (module->module_id == nvtx::kExtensionPayload) return nvtx::attach_payload(*module) ? 1 : 0;
  if (module->module_id == nvtx::kExtensionCounters) return nvtx::attach_counters(*module) ? 1 : 0;
  return 1;  // known to exist, nothing taken from it
}
}
