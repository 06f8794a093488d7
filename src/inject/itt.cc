// ITT's entry point. The static part of a program loads the library that INTEL_LIBITTNOTIFY64 names at the program's
// first call and lets it fill the table of its functions.
#include <cstring>

#include "inject/itt_abi.h"
#include "inject/itt_objects.h"
#include "inject/start.h"

namespace strobe::inject::itt {
namespace {

void pause() {
  set_paused(true);
}
void resume() {
  set_paused(false);
}

const Function* object_functions() {
  static const Function list[] = {
      function("__itt_domain_create", create_domain),
      function("__itt_string_handle_create", create_string),
      function("__itt_pause", pause),
      function("__itt_resume", resume),
      function("__itt_detach", pause),
      function(
          "__itt_pause_scoped", +[](int) { pause(); }),
      function(
          "__itt_resume_scoped", +[](int) { resume(); }),
      {nullptr, nullptr},
  };
  return list;
}

void* find(const char* name) {
  for (const Function* list :
       {object_functions(), task_functions(), frame_functions(), counter_functions(), event_functions()}) {
    for (; list->name != nullptr; ++list)
      if (std::strcmp(list->name, name) == 0) return list->address;
  }
  return nullptr;
}

void attach(Global& program, int groups) {
  if (program.version_major <= 3 && program.version_build <= kLastBuildWithoutNull && program.version_build != 0)
    return;
  for (ApiInfo* info = program.functions; info->name != nullptr; ++info) {
    // Some of the static part's functions make objects; groups were chosen by the user of INTEL_ITTNOTIFY_GROUPS.
    void* ours = (info->group & groups) != 0 ? find(info->name) : nullptr;
    *info->function = ours != nullptr ? ours : info->null;
  }
  for (CounterInfo* counter = program.counters; counter != nullptr; counter = counter->next) adopt_counter(counter);
}

}  // namespace
}  // namespace strobe::inject::itt

extern "C" __attribute__((visibility("default"))) void __itt_api_init(strobe::inject::itt::Global* program,
                                                                      int groups) {
  using namespace strobe::inject;
  if (program == nullptr || program->functions == nullptr || !start_recording()) return;
  itt::attach(*program, groups);
}
