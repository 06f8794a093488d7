// Every kind of ITT call that the collector takes, called as ITT's static part would: through the function pointers
// that the collector fills. That a real static part agrees is shown by torch, OpenVINO and the ittapi wheel.
#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "inject/itt_abi.h"

using namespace strobe::inject::itt;

namespace {

const char* const kNames[] = {
    "domain_create",
    "string_handle_create",
    "task_begin",
    "task_begin_fn",
    "task_end",
    "task_begin_overlapped",
    "task_end_overlapped",
    "region_begin",
    "region_end",
    "marker",
    "metadata_add",
    "metadata_str_add",
    "formatted_metadata_add",
    "frame_begin_v3",
    "frame_end_v3",
    "frame_submit_v3",
    "get_timestamp",
    "event_create",
    "event_start",
    "event_end",
    "counter_create",
    "counter_create_typed",
    "counter_create_v3",
    "counter_set_value",
    "counter_set_value_v3",
    "counter_inc",
    "counter_inc_delta",
    "counter_dec",
    "counter_dec_delta",
    "counter_inc_v3",
    "counter_inc_delta_v3",
    "counter_dec_v3",
    "counter_destroy",
    "mark_create",
    "mark",
    "thread_set_name",
    "pause",
    "resume",
    "sync_prepare",
};
std::map<std::string, void*> pointers;

void not_offered() {}

template <typename F>
F* call(const char* name) {
  return reinterpret_cast<F*>(pointers.at(name));
}

}  // namespace

int main() {
  std::vector<std::string> names;
  std::vector<ApiInfo> functions;
  names.reserve(std::size(kNames));
  for (const char* name : kNames) {
    names.push_back(std::string("__itt_") + name);
    functions.push_back({names.back().c_str(), &pointers[name], nullptr, reinterpret_cast<void*>(&not_offered), -1});
  }
  functions.push_back({nullptr, nullptr, nullptr, nullptr, 0});
  const char* path = std::getenv("INTEL_LIBITTNOTIFY64");
  void* library = path != nullptr ? ::dlopen(path, RTLD_LAZY) : nullptr;
  if (library == nullptr) return std::fprintf(stderr, "no collector: %s\n", ::dlerror()), 1;
  CounterInfo early{"early", nullptr, "lib", nullptr, kS32, 0, 0, nullptr, nullptr};
  Global global{};
  global.version_major = 3;
  global.version_build = 20251215;
  global.functions = functions.data();
  global.counters = &early;
  reinterpret_cast<void (*)(Global*, int)>(::dlsym(library, "__itt_api_init"))(&global, -1);
  if (pointers["sync_prepare"] != reinterpret_cast<void*>(&not_offered)) return std::fputs("sync_prepare\n", stderr), 1;

  auto* domain = call<Domain*(const char*)>("domain_create")("lib");
  if (domain != call<Domain*(const char*)>("domain_create")("lib") || domain->flags == 0 ||
      std::strcmp(domain->name, "lib") != 0)
    return std::fputs("domain\n", stderr), 1;
  const auto handle = [](const char* text) { return call<StringHandle*(const char*)>("string_handle_create")(text); };
  const auto task_begin = call<void(Domain*, Id, Id, StringHandle*)>("task_begin");
  const auto task_end = call<void(Domain*)>("task_end");
  const auto metadata = call<void(Domain*, Id, StringHandle*, int, size_t, void*)>("metadata_add");

  task_begin(domain, Id{}, Id{}, handle("outer"));
  int32_t shape[] = {1, -2};
  metadata(domain, Id{}, handle("shape"), kS32, 2, shape);
  double loss = 0.25;
  metadata(domain, Id{}, handle("loss"), kDouble, 1, &loss);
  uint64_t most = ~uint64_t{0};
  metadata(domain, Id{}, handle("most"), kU64, 1, &most);
  call<void(Domain*, Id, StringHandle*, const char*, size_t)>("metadata_str_add")(domain, Id{}, handle("label"), "text",
                                                                                  0);
  task_begin(domain, Id{}, Id{}, handle("inner"));
  call<void(Domain*, StringHandle*, ...)>("formatted_metadata_add")(domain, handle("%d of %s"), 3, "many");
  task_end(domain);
  task_end(domain);
  call<void(Domain*, Id, Id, void*)>("task_begin_fn")(domain, Id{}, Id{}, reinterpret_cast<void*>(&std::malloc));
  task_end(domain);

  const Id first{1, 2, 3}, second{4, 5, 6};
  const auto begin_overlapped = call<void(Domain*, Id, Id, StringHandle*)>("task_begin_overlapped");
  const auto end_overlapped = call<void(Domain*, Id)>("task_end_overlapped");
  begin_overlapped(domain, first, Id{}, handle("first"));
  begin_overlapped(domain, second, Id{}, handle("second"));
  int64_t items = 9;
  metadata(domain, first, handle("items"), kS64, 1, &items);
  end_overlapped(domain, first);
  end_overlapped(domain, second);
  call<void(Domain*, Id, Id, StringHandle*)>("region_begin")(domain, first, Id{}, handle("region"));
  call<void(Domain*, Id)>("region_end")(domain, first);
  call<void(Domain*, Id, StringHandle*, int)>("marker")(domain, Id{}, handle("marker"), 1);

  const auto frame_begin = call<void(Domain*, Id*)>("frame_begin_v3");
  const auto frame_end = call<void(Domain*, Id*)>("frame_end_v3");
  Id frame_id{7, 0, 0};
  frame_begin(domain, nullptr);
  frame_begin(domain, &frame_id);
  frame_end(domain, &frame_id);
  frame_end(domain, nullptr);
  const auto timestamp = call<unsigned long long()>("get_timestamp");
  const unsigned long long now = timestamp();
  call<void(Domain*, Id*, unsigned long long, unsigned long long)>("frame_submit_v3")(domain, nullptr, now - 3000000,
                                                                                      now - 1000000);

  const auto event_create = call<int(const char*, int)>("event_create");
  const int instant = event_create("instant", 7);
  const int lasting = event_create("lasting", 7);
  call<int(int)>("event_start")(instant);
  call<int(int)>("event_start")(lasting);
  call<int(int)>("event_end")(lasting);

  void* plain = call<void*(const char*, const char*)>("counter_create")("plain", "lib");
  call<void(void*)>("counter_inc")(plain);
  call<void(void*, unsigned long long)>("counter_inc_delta")(plain, 10);
  call<void(void*)>("counter_dec")(plain);
  call<void(void*, unsigned long long)>("counter_dec_delta")(plain, 4);
  const auto typed = call<void*(const char*, const char*, int)>("counter_create_typed");
  const auto set = call<void(void*, void*)>("counter_set_value");
  uint64_t u64 = 64;
  int64_t s64 = -64;
  uint32_t u32 = 4000000000U;
  int32_t s32 = -32;
  uint16_t u16 = 60000;
  int16_t s16 = -16;
  float f32 = 0.5F;
  double f64 = 2.5;
  set(typed("u64", "lib", kU64), &u64);
  set(typed("s64", "lib", kS64), &s64);
  set(typed("u32", "lib", kU32), &u32);
  set(typed("s32", "lib", kS32), &s32);
  set(typed("u16", "lib", kU16), &u16);
  set(typed("s16", "lib", kS16), &s16);
  set(typed("float", "lib", kFloat), &f32);
  set(typed("double", "lib", kDouble), &f64);
  set(&early, &s32);
  void* third = call<void*(Domain*, const char*, int)>("counter_create_v3")(domain, "third", kS32);
  call<void(void*, void*)>("counter_set_value_v3")(third, &s32);
  call<void(void*)>("counter_destroy")(third);
  call<void(Domain*, StringHandle*)>("counter_inc_v3")(domain, handle("named"));
  call<void(Domain*, StringHandle*, unsigned long long)>("counter_inc_delta_v3")(domain, handle("named"), 5);
  call<void(Domain*, StringHandle*)>("counter_dec_v3")(domain, handle("named"));

  const int kind = call<int(const char*)>("mark_create")("old mark");
  call<int(int, const char*)>("mark")(kind, "why");
  call<void(const char*)>("thread_set_name")("itt thread");

  call<void()>("pause")();
  task_begin(domain, Id{}, Id{}, handle("while paused"));
  call<void()>("resume")();
  task_end(domain);
  task_begin(domain, Id{}, Id{}, handle("after pause"));
  task_end(domain);
  return 0;
}
